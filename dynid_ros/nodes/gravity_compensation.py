"""Lifecycle node `gravity_compensation`: takes gravity off the controller's shoulders.

One command for each joint state, from `identified.yaml`, the URDF, the load that the arm carries and, where joints are
flexible, where its links are: as springs let them sag, or as a topic tells. The rules for ramps, limits and faults are
those of `dynid_ros.control.GravityCompensator`. While disabled, and after a fault has reached zero, nothing is
published, so that somebody else may command. The end of the process (SIGINT, SIGTERM, an exception) brings the output
to zero by the fault ramp first. SIGKILL and a loss of power cannot be answered here: the controller or the hardware
below must drop its last command after a timeout (`forward_command_controller` does not).
"""

import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.control import GravityCompensator, JointSettings, LoadedGravity, State
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation_links import CompensationLinks
from dynid_ros.nodes.compensation_load import CompensationLoad
from dynid_ros.nodes.compensation_loop import CompensationLoop
from dynid_ros.nodes.compensation_parameters import PARAMETERS, feedforward, timing
from dynid_ros.nodes.diagnostics import ERROR, OK, WARN, Diagnostics
from dynid_ros.nodes.effort_commands import ROUTES
from dynid_ros.nodes.lifecycle import guard_transitions, transition
from dynid_ros.nodes.parameters import declare
from dynid_ros.nodes.robot_description import LATCHED, robot_description
from dynid_ros.nodes.running import answer

AUTOSTART_PERIOD = 0.1
REMINDER_PERIOD = 5.0
SERVE_PERIOD = 0.001


class GravityCompensation(LifecycleNode):
    """The node; see the module."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("gravity_compensation", **arguments)
        self._settings = declare(self, PARAMETERS)
        self._description = ""
        self._loop: CompensationLoop | None = None
        self._phase = "unconfigured"
        self._reported = ""
        self._status_time = time.monotonic()
        self._state_publisher = self.create_publisher(String, "~/state", LATCHED)
        guard_transitions(self)
        self.create_service(SetBool, "~/enable", self._on_enable)
        self.create_service(Trigger, "~/reload", answer(self, self._reload))
        if not self._settings.robot_description:
            # a transition runs inside the executor and cannot wait for it
            self.create_subscription(String, "robot_description", self._on_description, LATCHED)
        Diagnostics(self, self._status)
        if self._settings.autostart:
            self._autostart_timer = self.create_timer(AUTOSTART_PERIOD, self._autostart)
        self._report()

    @transition
    def on_configure(self) -> None:
        """Load the model, prepare inputs and outputs."""
        gravity, joints = self._read()
        settings = self._settings
        if settings.output not in ROUTES:
            raise ControlError(f"parameter output is '{settings.output}'; expected {' or '.join(ROUTES)}")
        controller_joints = [name for name in settings.controller_joints if name]
        commands = ROUTES[settings.output](self, settings.command_topic, joints.names, controller_joints)
        missing = [name for name in joints.names if controller_joints and name not in controller_joints]
        if missing:
            self.get_logger().warning(f"controller_joints lacks {', '.join(missing)}: no compensation there")
        compensator = GravityCompensator(gravity, joints, timing(settings))
        load = CompensationLoad(self, settings.load_topic if settings.use_load else "", compensator, gravity, joints)
        links = CompensationLinks(
            self,
            settings.link_states_topic,
            joints.names,
            timeout=settings.timeout,
            largest_deflection=settings.largest_deflection,
        )
        self._loop = CompensationLoop(self, compensator, joints.names, commands, self._report, load=load, links=links)
        self._enter("inactive")

    @transition
    def on_activate(self) -> None:
        """Watch, and publish once enabled."""
        self._configured_loop().start(self._settings.enable_on_activate)
        self._enter("active")

    @transition
    def on_deactivate(self) -> None:
        """Bring the output to zero within the fault ramp, then be silent."""
        self.end()
        self._enter("inactive")

    @transition
    def on_cleanup(self) -> None:
        """Forget the model."""
        self._release("unconfigured")

    @transition
    def on_shutdown(self) -> None:
        """End for good, from any state: zero first."""
        self._release("finalized")

    @transition
    def on_error(self) -> None:
        """After an unexpected exception: zero, and back to unconfigured."""
        self._release("unconfigured")

    def end(self) -> None:
        """Bring the output to zero; the process may end afterwards."""
        if self._loop is not None:
            self._loop.end()

    def _release(self, phase: str) -> None:
        self.end()
        if self._loop is not None:
            self._loop.destroy()
            self._loop = None
        self._enter(phase)

    def _enter(self, phase: str) -> None:
        self._phase = phase
        self._report()

    def _autostart(self) -> None:
        if not (self._settings.robot_description or self._description):
            self.get_logger().warning(
                "autostart waits for the topic robot_description",
                throttle_duration_sec=REMINDER_PERIOD,
                skip_first=True,
            )
            return
        self.destroy_timer(self._autostart_timer)
        if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    def _on_description(self, message: String) -> None:
        self._description = message.data

    def _read(self) -> tuple[LoadedGravity, JointSettings]:
        settings = self._settings
        if not (settings.robot_description or self._description):
            raise ControlError(
                "no URDF has arrived on the topic robot_description yet; start robot_state_publisher or set the "
                "parameter robot_description, then configure again"
            )
        return feedforward(settings, self._description or robot_description(self, settings.robot_description))

    def _reload(self) -> str:
        loop = self._configured_loop()
        with ThreadPoolExecutor(max_workers=1) as pool:
            loading = pool.submit(self._read)
            while not loading.done():  # the torque must go on while the file is read
                loop.serve()
                time.sleep(SERVE_PERIOD)
        try:
            gravity, joints = loading.result()
            loop.load.replace(gravity, joints)
        except DynidError as error:
            raise ControlError(f"the model in force stays: {error}") from error
        self.get_logger().info(f"{self._settings.model_file} is in force")
        return f"{self._settings.model_file} is in force"

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        return answer(self, self._enable if request.data else self._disable)(request, response)

    def _enable(self) -> str:
        loop = self._active_loop()
        loop.enable()
        return f"{loop.compensator.state.value}; {self._settings.ramp_time:g} s from zero to all"

    def _disable(self) -> str:
        loop = self._active_loop()
        loop.disable()
        return loop.compensator.state.value

    def _configured_loop(self) -> CompensationLoop:
        if self._loop is None:
            raise ControlError(f"no model is loaded yet; configure first: {self._command_line('configure')}")
        return self._loop

    def _active_loop(self) -> CompensationLoop:
        loop = self._configured_loop()
        if not loop.running:
            raise ControlError(f"the node is {self._phase}; activate it first: {self._command_line('activate')}")
        return loop

    def _command_line(self, name: str) -> str:
        return f"ros2 lifecycle set {self.get_fully_qualified_name()} {name}"

    def _state(self) -> str:
        if self._phase != "active" or self._loop is None:
            return self._phase
        compensator = self._loop.compensator
        state = compensator.state
        return f"{state.value}: {compensator.fault_reason}" if state is State.FAULT else state.value

    def _report(self) -> None:
        state = self._state()
        if state == self._reported:
            return
        self._reported = state
        self._state_publisher.publish(String(data=state))
        if state.startswith(State.FAULT.value):
            self.get_logger().error(f"{state}. The torque goes to zero; enable again when the cause is gone")
        else:
            self.get_logger().info(state)

    def _status(self) -> tuple[bytes, str, dict[str, object]]:
        now = time.monotonic()
        seconds, self._status_time = now - self._status_time, now
        values: dict[str, object] = {"model_file": self._settings.model_file}
        loop, level, message = self._loop, OK, self._state()
        if loop is None:
            return level, message, values
        limited = ", ".join(sorted(loop.limited))
        values |= {
            "joint_states_per_second": f"{loop.states / max(seconds, 1e-3):.1f}",
            "largest_torque": f"{loop.largest:.3f}",
            "at_torque_limit": limited or "none",
            "faults": loop.compensator.faults,
            "load": loop.load.load or "none",
            "loads_refused": loop.load.refused,
            "links": loop.links.problem or ("measured" if self._settings.link_states_topic else "not measured"),
            "subscribers": loop.commands.publisher.get_subscription_count(),
        }
        loop.states, loop.largest = 0, 0.0
        loop.limited.clear()
        if loop.compensator.state is State.FAULT:
            level = ERROR
        elif limited:
            level, message = WARN, f"{message}; gravity torque exceeds the torque limit of {limited}"
            self.get_logger().warning(message)
        elif loop.load.problem:
            level, message = WARN, f"{message}; {loop.load.problem}"
        elif loop.links.problem:
            level, message = WARN, f"{message}; links not measured: {loop.links.problem}"
        return level, message, values


def main(arguments: list[str] | None = None) -> None:
    """Run the node; it outlives SIGINT and SIGTERM for as long as its output needs to reach zero."""
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    ending: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: ending.append(received))
    node = None
    try:
        node = GravityCompensation()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        while not ending:
            executor.spin_once(timeout_sec=0.1)
    except DynidError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    finally:
        if node is not None:
            node.end()
            node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
