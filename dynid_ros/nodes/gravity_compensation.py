"""Lifecycle node `gravity_compensation`: feed-forward of the gravity torque to a controller.

The node sends one command for each joint state. The torque is computed from `identified.yaml`, the URDF, the load and,
for flexible joints, the link positions (measured, or computed from the springs). With gains, PD feedback about a
desired pose and friction compensation are added. The commands have the joint order of the controller.

`dynid_ros.control.GravityCompensator` documents ramps, limits and faults. The node has no publisher of commands while
disabled, or once the torque is zero after a fault, so that another node may command. While enabled, no other node may
command. At the end of the process (SIGINT, SIGTERM, an exception) the output first ramps to zero. After SIGKILL or a
loss of power, the controller or the hardware must drop the last command after a timeout (`forward_command_controller`
does not).

Topics: `~/gravity_torque` (sensor_msgs/JointState, 25 Hz once configured) has the gravity torque of the present pose
with the load and without `scale`, as `effort`. `~/state` (latched) has the state as one line. `~/load_in_force`
(latched) has the load in the model.
"""

import functools
import math
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from types import SimpleNamespace
from typing import Any, TypeVar

from rclpy.executors import Executor, SingleThreadedExecutor, TimeoutException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.control import State
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.configuration import (
    MODEL,
    PARAMETERS,
    CompensationModel,
    joint_settings,
    make_loop,
    parameter_load,
    timing,
)
from dynid_ros.nodes.compensation.controller import CompensationController
from dynid_ros.nodes.compensation.loop import WATCH_PERIOD_S, CompensationLoop
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, silence
from dynid_ros.nodes.shared.parameters import declare, refresh_values
from dynid_ros.nodes.shared.process import SteadyThread, answer, run_undisturbed, steady_timer
from dynid_ros.nodes.shared.topics import LATCHED

MIN_REPORTED_FRACTION = 0.05
"""Smallest torque that is reported although disabled, as a fraction of the joint's limit."""
AUTOSTART_PERIOD_S = 0.1
SCALE_CHECK_PERIOD_S = 0.1
UNCONFIGURED_PERIOD_S = 0.1
REMINDER_PERIOD_S = 5.0
SERVE_PERIOD_S = 0.001
OTHER_CALLBACKS_PERIOD_S = 0.004  # between two polls of all callbacks except joint states
MAX_OTHER_CALLBACKS = 10  # between two polls of joint states
TORQUE_PERIOD_S = 0.04
LISTENER_TIMEOUT_S = 1.0  # above the time to discover a running controller

NodeType = TypeVar("NodeType", bound=LifecycleNode)


class CompensationStatus:
    """Diagnostic status of the loop; rates and largest values cover the time since the last status."""

    def __init__(self) -> None:
        self._time = time.monotonic()

    def of(self, loop: CompensationLoop, state: str) -> Status:
        """Return the status of the loop while the node is in `state`."""
        now = time.monotonic()
        seconds = now - self._time
        self._time = now
        commands = loop.commands.topic
        values: dict[str, object] = {
            "joint_states_per_second": f"{loop.states.states / max(seconds, 1e-3):.1f}",
            "seconds_since_joint_state": f"{now - loop.states.heard:.2f}",
            "largest_torque": f"{loop.largest:.3f}",
            "at_torque_limit": ", ".join(sorted(loop.limited)) or "none",
            "longest_gap_of_joint_states": f"{loop.states.longest_gap:.3f}",
            "controller_state": loop.controller.view.state,
            "faults": loop.compensator.faults,
            "load": loop.load.load or "none",
            "loads_refused": loop.load.refused,
            "setpoints_refused": loop.setpoint.refused,
            "links": loop.links.problem or ("measured" if loop.links.topic else "not measured"),
            "planned_motion": self._planned(loop),
            "gravity": loop.imu.described,
            "command_topic": commands.name,
            "subscribers": commands.listeners,
        }
        for name, torque in zip(loop.joint_names, loop.compensator.torque, strict=True):
            values[f"torque {name}"] = f"{torque:.3f}"
        warning = self._warning(loop)
        loop.states.states = 0
        loop.largest = 0.0
        loop.limited.clear()
        if loop.compensator.state is State.FAULT:
            return ERROR, state, values
        return (WARN, f"{state}; {warning}", values) if warning else (OK, state, values)

    def _warning(self, loop: CompensationLoop) -> str:
        """Return a warning about the loop; empty without one."""
        if loop.limited:
            return f"torque exceeds the torque limit of {', '.join(sorted(loop.limited))}"
        if problem := loop.compensator.notice or loop.load.problem or loop.setpoint.problem:
            return problem
        if loop.links.problem:
            return f"links not measured: {loop.links.problem}"
        commands = loop.commands.topic
        if loop.compensator.state is not State.DISABLED:
            if inactive := loop.controller.inactive:
                return inactive
            if not commands.listeners:
                return f"{commands.name} has no subscriber: the torque reaches no controller"
        silent = loop.running and silence(loop.states.topic, loop.states.heard)
        return silent or commands.others or self._acting(loop) or loop.controller.warning

    @staticmethod
    def _planned(loop: CompensationLoop) -> str:
        """Return "added", "not added", or the reason why a planned motion is not followed."""
        if not any(loop.compensator.joints.planned_scale):
            return "not added"
        return loop.compensator.plan.problem or "added"

    def _acting(self, loop: CompensationLoop) -> str:
        """Return a message about torque that acts although disabled; empty without one."""
        if loop.compensator.state is not State.DISABLED:
            return ""
        joints = loop.compensator.joints
        efforts = loop.controller.acts(time.monotonic(), lambda: loop.states.last("effort"))
        for name, effort, limit in zip(joints.names, efforts, joints.torque, strict=False):
            if abs(effort) > MIN_REPORTED_FRACTION * limit:
                return f"{effort:.3g} N m (N) act on joint '{name}' although disabled; an earlier command left it"
        return ""


def transition(action: Callable[[NodeType], None]) -> Callable[[NodeType, LifecycleState], TransitionCallbackReturn]:
    """Return a transition callback for a method: a `DynidError` is a failure, any other exception an error.

    Both are logged. Without this callback rclpy would ignore exceptions, or end the process.
    """

    @functools.wraps(action)
    def callback(node: NodeType, _previous: LifecycleState) -> TransitionCallbackReturn:
        try:
            action(node)
        except DynidError as error:
            node.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception:
            node.get_logger().error(traceback.format_exc())
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS

    return callback


def guard_transitions(node: LifecycleNode) -> None:
    """Answer a forbidden transition with `success = False`; rclpy alone would raise an exception out of `spin`."""
    service = next(service for service in node.services if service.srv_name.endswith("/change_state"))
    change = service.callback

    def callback(request: Any, response: Any) -> Any:
        try:
            return change(request, response)
        except RuntimeError as error:
            node.get_logger().error(f"The transition was refused: {error}")
            response.success = False
            return response

    service.callback = callback


def serve_ready(executor: Executor, max_callbacks: int) -> int:
    """Run up to `max_callbacks` ready callbacks, one message each, and return their number.

    Exceptions of the callbacks are raised.
    """
    for count in range(max_callbacks):
        try:
            handler, *_ = executor.wait_for_ready_callbacks(timeout_sec=0.0)
        except TimeoutException:
            return count
        handler()
        if (error := handler.exception()) is not None:
            raise error
    return max_callbacks


class GravityCompensation(LifecycleNode):
    """Lifecycle node of gravity compensation; see the module.

    Attributes:
        steady: thread that checks periodically for faults.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__("gravity_compensation", **arguments)
        self._loop: CompensationLoop | None = None
        self._settings = declare(self, PARAMETERS, self._adjust)
        self._phase = "unconfigured"
        self._reporting = Lock()  # two threads change the state
        self._reported_state = self._refusal = ""
        self._status_of_loop = CompensationStatus()
        self._state_publisher = self.create_publisher(String, "~/state", LATCHED)
        self._torque_publisher = self.create_publisher(JointState, "~/gravity_torque", 10)
        steady_timer(self, TORQUE_PERIOD_S, self._publish_torque)
        steady_timer(self, SCALE_CHECK_PERIOD_S, self._restore_scale)
        guard_transitions(self)
        self.create_service(SetBool, "~/enable", answer(self, self._enable, self._disable))
        self.create_service(Trigger, "~/reload", answer(self, self._reload))
        self._model = CompensationModel(self, self._settings, self._on_description)
        self._controller = CompensationController(
            self, self._settings, self._on_controller, self._interrupt, self._released
        )
        Diagnostics(self, self._status, hardware=lambda: self._model.robot)
        if self._settings.autostart:
            self._autostart_timer = steady_timer(self, AUTOSTART_PERIOD_S, self._autostart)
        self._next_poll = 0.0
        self._report()
        self.steady = SteadyThread(self, self._watch, WATCH_PERIOD_S)

    @transition
    def on_configure(self) -> None:
        """Load the model and create inputs and outputs."""
        try:
            self._configure()
        except Exception as error:
            unexpected = "" if isinstance(error, DynidError) else f"unexpected {type(error).__name__}: "
            self._refusal = f"{self._phase}: {unexpected}{error}"
            raise

    def _configure(self) -> None:
        refresh_values(self, self._settings, PARAMETERS)
        model = self._model.read()
        self._loop = make_loop(self, self._settings, model, controller=self._controller, changed=self._report)
        self._applied_load = list(self._settings.carried_load)
        if (load := parameter_load(self._settings, model.arm.robot.tip)) is not None:
            self._loop.load.take(load)
        self._enter("inactive")

    @transition
    def on_activate(self) -> None:
        """Watch joint states, and publish once enabled."""
        self._configured_loop().start(self._settings.enable_on_activate)
        self._enter("active")

    @transition
    def on_deactivate(self) -> None:
        """Ramp the output to zero within the fault ramp, then stop publishing."""
        self.end()
        self._enter("inactive")

    @transition
    def on_cleanup(self) -> None:
        """Forget the model."""
        self._release("unconfigured")

    @transition
    def on_shutdown(self) -> None:
        """Ramp the output to zero and release the model, from any state."""
        self._release("finalized")

    @transition
    def on_error(self) -> None:
        """Ramp the output to zero after an unexpected exception, and return to unconfigured."""
        self._release("unconfigured", self._refusal)

    def turn(self, executor: SingleThreadedExecutor) -> None:
        """Process the next joint state before all other callbacks."""
        if self._loop is None:
            executor.spin_once(timeout_sec=UNCONFIGURED_PERIOD_S)
        elif not self._loop.follow(OTHER_CALLBACKS_PERIOD_S) or time.monotonic() >= self._next_poll:
            # Right after a joint state there is time for other callbacks before the next one.
            served = serve_ready(executor, MAX_OTHER_CALLBACKS)
            self._next_poll = time.monotonic() + (0.0 if served else OTHER_CALLBACKS_PERIOD_S)

    def wake(self) -> None:
        """End a wait of `turn` for joint states from another thread."""
        if (loop := self._loop) is not None:
            loop.wake()

    def end(self) -> None:
        """Ramp the output to zero; the process may end afterwards."""
        if self._loop is not None:
            self._loop.end()

    def destroy_node(self) -> None:
        """End the watch, then the node."""
        if hasattr(self, "steady"):
            self.steady.end()
        super().destroy_node()

    def _watch(self) -> None:
        if (loop := self._loop) is not None:
            loop.look()

    def _restore_scale(self) -> None:
        """Reset the parameter `scale` after the compensator withdrew a higher one."""
        if (loop := self._loop) is not None and loop.compensator.notice:
            gain = list(loop.compensator.joints.gain)
            wanted = list(self._settings.scale)
            if gain != (wanted * len(gain) if len(wanted) == 1 else wanted):
                self.set_parameters([Parameter("scale", value=gain)])

    def _publish_torque(self) -> None:
        """Publish the gravity torque of the model, for comparison with effort before `enable`."""
        loop = self._loop if self._torque_publisher.get_subscription_count() else None
        if loop is not None and (torque := loop.gravity_torque()) is not None:
            self._torque_publisher.publish(torque)

    def _release(self, phase: str, refusal: str = "") -> None:
        self.end()
        if self._loop is not None:
            self._loop.destroy()
            self._loop = None
        self._enter(phase, refusal)

    def _enter(self, phase: str, refusal: str = "") -> None:
        self._phase = phase
        self._refusal = refusal
        self._report()

    def _autostart(self) -> None:
        if waits := self._missing():
            self.get_logger().warning(
                f"The autostart waits: {waits}.", throttle_duration_sec=REMINDER_PERIOD_S, skip_first=True
            )
            return
        self._autostart_timer.cancel()
        if self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    def _missing(self) -> str:
        """Return the missing input of a configuration; empty if complete."""
        if self._model.waits:
            return "there is no URDF on the topic robot_description yet"
        return self._controller.missing

    def _on_description(self) -> None:
        if self._loop is not None:
            self.get_logger().warning(
                "Another URDF arrived on robot_description; the model in force stays until ~/reload or configure."
            )
        else:
            self._retry_autostart()

    def _retry_autostart(self) -> None:
        if self._refusal and self._settings.autostart:
            self._autostart_timer.reset()

    def _interrupt(self, reason: str) -> None:
        if self._loop is not None:
            self._loop.interrupt(reason)

    def _released(self) -> None:
        if self._loop is not None:
            self._loop.released()

    def _on_controller(self) -> None:
        if self._loop is not None:
            if other_controller := self._controller.other_controller:
                self._loop.follow_controller(other_controller, self._controller.commanded_joints)
            self._report()
        else:
            self._retry_autostart()

    def _adjust(self, settings: SimpleNamespace) -> None:
        """Apply changed parameters; see `declare`."""
        times = timing(settings)
        if (loop := self._loop) is None:
            return
        arm = loop.load.model.arm
        joints = joint_settings(settings, arm)
        if repr(list(settings.carried_load)) != repr(self._applied_load):
            loop.announce(parameter_load(settings, arm.robot.tip))
            self._applied_load = list(settings.carried_load)
        loop.adjust(joints, times, settings.largest_deflection, settings.effort_tolerance)

    def _reload(self) -> str:
        loop = self._configured_loop()
        refresh_values(self, self._settings, MODEL)
        with ThreadPoolExecutor(max_workers=1) as pool:
            loading = pool.submit(self._model.read)
            self._serve_until(loading.done)
        try:
            model = loading.result()
            loop.use(model)
        except DynidError as error:
            raise ControlError(f"the model in force stays: {error}") from error
        message = f"The model of {self._settings.model_file} is in force."
        self.get_logger().info(message)
        return message

    def _serve_until(self, done: Callable[[], bool], timeout: float = math.inf) -> None:
        """Wait within a callback until `done`, at most `timeout` s, while the control loop continues."""
        loop = self._configured_loop()
        deadline = time.monotonic() + timeout
        while not done() and time.monotonic() < deadline:
            loop.serve()
            time.sleep(SERVE_PERIOD_S)

    def _enable(self) -> str:
        loop = self._active_loop()
        self._controller.check()
        self._serve_until(lambda: loop.has_listener and not loop.commands.topic.unnamed, LISTENER_TIMEOUT_S)
        loop.prepare()
        self._serve_until(lambda: loop.has_listener, LISTENER_TIMEOUT_S)
        loop.enable()
        scale = ", ".join(f"{value:g}" for value in sorted({*loop.compensator.joints.gain}))
        ramp = f"The torque ramps in {loop.began}; scale {scale} acts in {self._settings.ramp_time:g} s."
        inactive = self._controller.inactive
        return f"{ramp} Note that {inactive}." if inactive else ramp

    def _disable(self) -> str:
        loop = self._active_loop()
        loop.disable()
        if loop.compensator.descends:
            return "The torque ramps out and lowers the arm."
        return f"The compensation is {loop.compensator.state.value}."

    def _configured_loop(self) -> CompensationLoop:
        if self._loop is None:
            reason = self._refusal or (self._missing() if self._settings.autostart else "")
            problem = "no model is loaded yet; configure first"
            if reason:
                problem = f"no model is loaded: {reason}; mend that, then configure again"
            raise ControlError(f"{problem}: {self._command_line('configure')}")
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
        if state is State.FAULT:
            return f"{state.value}: {compensator.fault_reason}"
        return f"{state.value}; {compensator.notice}" if compensator.notice else state.value

    def _report(self) -> None:
        with self._reporting:
            state = self._state()
            if state == self._reported_state:
                return
            self._reported_state = state
            self._state_publisher.publish(String(data=state))  # under the lock, which keeps the order of the states
        if state.startswith(State.FAULT.value):
            loop = self._loop
            descends = loop is not None and loop.compensator.descends
            then = "The arm is held, then lowered" if descends else "The torque goes to zero"
            self.get_logger().error(f"{state}. {then}; enable again when the cause is gone")
        elif "; " in state:
            self.get_logger().error(state)
        else:
            self.get_logger().info(state)

    def _status(self) -> Status:
        state = self._state()
        model = {"model_file": self._settings.model_file, "controller": self._controller.described}
        if self._loop is None:
            return (ERROR, self._refusal, {**model}) if self._refusal else (OK, state, {**model})
        limited = bool(self._loop.limited)
        level, message, values = self._status_of_loop.of(self._loop, state)
        if limited:
            self.get_logger().warning(message, throttle_duration_sec=REMINDER_PERIOD_S)
        return level, message, model | values


def main(arguments: list[str] | None = None) -> None:
    """Run the node; after SIGINT or SIGTERM it continues until its output has reached zero."""
    run_undisturbed(
        GravityCompensation, arguments, turn=lambda node, executor: node.turn(executor), wake=lambda node: node.wake()
    )
