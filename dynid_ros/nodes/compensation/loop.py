"""The control loop of `gravity_compensation`: one joint state in, one command out, and a watch in between."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from threading import RLock
from typing import Any, TypeVar, cast

from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, MeasuredEffort, State, Timing
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.base_imu import CompensationImu
from dynid_ros.nodes.compensation.controller import CompensationController
from dynid_ros.nodes.compensation.inputs import (
    CompensationLinks,
    CompensationLoad,
    CompensationSetpoint,
    JointStateInput,
)
from dynid_ros.nodes.compensation.read_model import ReadModel
from dynid_ros.nodes.compensation.ros2_control import EffortCommands
from dynid_ros.nodes.shared.command_topic import publishers_of
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Status, silence
from dynid_ros.nodes.shared.steady_thread import steady_timer

WATCH_PERIOD = 0.01
END_PERIOD = 0.002
LEAVE_PERIOD = 0.05
ACKNOWLEDGEMENT = 0.5
END_DESCENT_S = 8.0
"""Time within which an arm is lowered where the process must end, s: launch kills a process 10 s after Ctrl-C."""
MAX_SINK_FRACTION = 0.1
"""Part of the gravity torque by which the torque that acts may exceed the one that is to act after `enable`."""


F = TypeVar("F", bound=Callable[..., Any])


def locked(method: F) -> F:
    """One thread at a time: what follows joint states and what watches them are two."""

    @wraps(method)
    def call(loop: "CompensationLoop", *arguments: Any) -> Any:
        with loop.lock:
            return method(loop, *arguments)

    return cast(F, call)


class CompensationLoop:
    """Runs `compensator` on the topic `joint_states`; `changed` is called after every step that may change its state.

    Nothing is published before `start`, while disabled, nor after a fault has reached zero; nor has it a publisher
    then. `load`, `links`, `setpoint` and `imu` end with the loop. `tolerance` is the largest error of effort in the
    joint states, as a part of the effort limits.

    Attributes:
        began: where the last ramp in began, in words.
    """

    def __init__(
        self,
        node: LifecycleNode,
        compensator: GravityCompensator,
        joint_names: Sequence[str],
        commands: EffortCommands,
        changed: Callable[[], None],
        *,
        controller: CompensationController,
        imu: CompensationImu,
        load: CompensationLoad,
        links: CompensationLinks,
        setpoint: CompensationSetpoint,
        tolerance: float,
    ) -> None:
        self.compensator = compensator
        self.controller = controller
        self.imu = imu
        self.load = load
        self.links = links
        self.setpoint = setpoint
        self.commands = commands
        self.joint_names = list(joint_names)
        self.largest = 0.0
        self.limited: set[str] = set()
        self._node = node
        self._changed = changed
        self._enable_pending = False
        self._enabling = False
        self._confirmed = False
        self._rests_since: float | None = None
        self.lock = RLock()
        self._running = False
        self._tolerance = tolerance
        self._foreign = 0
        self.began = ""
        self._timer = steady_timer(node, LEAVE_PERIOD, self._leave)
        self.states = JointStateInput(node, joint_names, self._on_joint_state)

    @property
    def running(self) -> bool:
        """Whether commands may be published."""
        return self._running

    @locked
    def start(self, enable: bool) -> None:
        """Allow commands; `enable`: ramp in with the first good joint state."""
        self.states.heard = time.monotonic()
        self._enable_pending = enable
        self._running = True

    @locked
    def end(self) -> None:
        """Lower the arm, bring the output to zero, see it delivered, and publish no more; blocks meanwhile."""
        if not self.running:
            return
        self._enable_pending = False
        self.compensator.stop(time.monotonic(), END_DESCENT_S)
        follows = True
        while not self.compensator.at_rest:
            try:
                self._act_on(self.states.waiting(None) if follows else ())
            except Exception:  # a fault of the code: no torque can be right, and the last one must not stay
                follows = False
                self.compensator.stop(time.monotonic())
            if (torque := self.compensator.watch(time.monotonic())) is not None:
                self._publish(torque)
            time.sleep(END_PERIOD)
        self._running = False
        if not self.commands.topic.acknowledged(ACKNOWLEDGEMENT):
            self._node.get_logger().warning("the controller did not acknowledge the last command, which was zero")
        self.commands.topic.close()

    @locked
    def destroy(self) -> None:
        """Remove the topics and the timer from the node."""
        self._node.destroy_timer(self._timer)
        self.states.destroy()
        self.commands.topic.close()
        self.controller.release()
        self.imu.destroy()
        self.load.destroy()
        self.links.destroy()
        self.setpoint.destroy()

    @property
    def has_listener(self) -> bool:
        """Whether anybody listens to the commands."""
        return self.commands.topic.listeners > 0

    @locked
    def prepare(self) -> None:
        """Become the publisher of the commands, until `enable` fails or the torque is zero again.

        Raises:
            ControlError: somebody else publishes there, or nobody listens: a torque would step for the one who comes.
        """
        topic = self.commands.topic
        if not self.has_listener or topic.others:
            raise ControlError(f"cannot enable: {topic.others or self._no_subscriber()}")
        topic.open()
        self._enabling = True

    @locked
    def enable(self) -> None:
        """Ramp in; see `prepare` and `GravityCompensator.enable`."""
        try:
            self.prepare()
            if not self.has_listener:
                raise ControlError(f"cannot enable: {self._no_subscriber()}")
            self._check_model()
            self.controller.check()
            self._begin(time.monotonic())
        except ControlError as error:
            raise ControlError(f"{error}{publishers_of(self._node, 'joint_states')}") from error
        finally:
            self._enabling = False
        self._enable_pending = False
        self._changed()

    @locked
    def interrupt(self, reason: str) -> None:
        """Go to zero at once, as commands do not act, or act elsewhere."""
        self.compensator.interrupt(time.monotonic(), reason, fade=True)
        self._changed()

    @locked
    def announce(self, load: CarriedLoad | None) -> None:
        """Count with another load from now on; raises as `CompensationLoad.take` does."""
        self.load.take(load)
        self._changed()

    @locked
    def use(self, model: ReadModel) -> None:
        """Use another model; raises as `CompensationLoad.replace` does."""
        gravity = self.imu.tilting(model.gravity)
        self.load.replace(dataclasses.replace(model, gravity=gravity), self.measured())

    @locked
    def follow_controller(self, reason: str, joints: Sequence[str]) -> None:
        """End because the controller is another than the one that was configured for.

        Args:
            reason: of the fault.
            joints: its joints, where it still commands efforts; those of the model in another order get their torques.
        """
        known = sorted(joints) == sorted(self.joint_names[i] for i in self.commands.order)
        if known:
            self.commands.use_order(joints)
        self.compensator.interrupt(time.monotonic(), reason, fade=not known)
        self._changed()

    @locked
    def released(self) -> None:
        """Watch the arm, which the controller has just been given."""
        self.compensator.released()

    @locked
    def measured(self) -> MeasuredEffort | None:
        """Return the effort that holds the arm; None where it is not known."""
        if not self.controller.effort_is_torque:
            return None
        try:
            certain = bool(self.controller.holds_by_position)
            return self.states.measured(self.compensator.joints.torque, self._tolerance, certain=certain)
        except DynidError:
            return None

    @locked
    def adjust(self, joints: JointSettings, timing: Timing, largest_deflection: float, tolerance: float) -> None:
        """Use other gains, limits and times; the torque goes where they have it no faster than `max_rate`.

        Args:
            joints: settings.
            timing: durations.
            largest_deflection: of measured links from their motors that is believed, rad (m).
            tolerance: largest error of effort in the joint states, as a part of the effort limits.

        Raises:
            DynidError: they need a velocity that no joint state has, or as `GravityCompensator.adjust`.
        """
        if joints.feedback.needs_velocity and not self.compensator.at_rest:
            self.states.last("velocity")
        self.compensator.adjust(joints, timing)
        self._tolerance = tolerance
        self.links.timeout, self.links.largest = timing.timeout, largest_deflection
        self.setpoint.follows = joints.feedback.holds or self.controller.follows_trajectories

    @locked
    def gravity_torque(self) -> JointState | None:
        """Torque by which the model holds the arm, and what it carries, where it is now; None: nobody knows where."""
        now, position = time.monotonic(), self.compensator.position
        if not position or now - self.states.heard > self.links.timeout:
            return None
        try:
            effort = self.load.gravity(position, self.links.at(now, position))
        except ControlError:  # no place at which the springs carry it
            return None
        return JointState(header=self.states.header, name=self.joint_names, position=position, effort=effort)

    @locked
    def disable(self) -> None:
        """Ramp out."""
        self._enable_pending = False
        self.compensator.disable(time.monotonic())
        self._changed()

    def follow(self, seconds: float) -> bool:
        """Act on the next joint state as soon as it comes, no later than after `seconds`; whether one came."""
        if not self.states.wait(seconds):
            return False
        self._act_on(self.states.waiting(None))
        return True

    def serve(self) -> None:
        """Act on what is queued, from within a callback that takes long."""
        self._act_on(self.states.waiting(None))
        self.watch()

    @locked
    def look(self) -> None:
        """Watch, where commands may be published; asked for at a steady rate, by a thread of its own."""
        if self.running:
            self.watch()

    def wake(self) -> None:
        """End a wait of `follow` that is under way, from another thread."""
        self.states.wake()

    @locked
    def watch(self) -> None:
        """Find stale states, a controller that is gone and others who command, drive the fault ramp."""
        now = time.monotonic()
        if self.running and self.commands.topic.is_open:
            if not self.has_listener:
                self.compensator.interrupt(now, self._no_subscriber(), fade=True)
            elif (foreign := self.commands.topic.count_foreign()) > self._foreign:
                # A stray message is overwritten by the next command. Of two that go on, one has to leave.
                self.compensator.interrupt(now, self._foreign_commands(), fade=self._foreign > 0)
                self._foreign = foreign
            elif problem := self.imu.doubt(now):
                self.compensator.interrupt(now, problem)
            elif problem := self.controller.unheeded:
                self.compensator.drop(now, problem)
        self._command(self.compensator.watch(now))

    def _on_joint_state(self, message: JointState) -> None:
        self._act_on(self.states.waiting(message))

    @locked
    def _act_on(self, messages: Sequence[JointState]) -> None:
        """On the newest; at rest on each, by which two drivers that disagree are found."""
        for message in messages if self.compensator.at_rest else messages[-1:]:
            self._act_on_one(message)

    def _act_on_one(self, message: JointState) -> None:
        now, order = time.monotonic(), self.states.order
        if not self.states.is_news(message, now):
            return
        try:
            position = order.pick(message, "position")
            needed = self.compensator.joints.feedback.needs_velocity
            velocity = order.pick(message, "velocity") if needed else None
        except DynidError as error:
            self.compensator.fault(now, str(error))
            self._command(self.compensator.watch(now))
            return
        if velocity is None:
            with suppress(DynidError):  # a help to the brakes; without it positions are differentiated
                velocity = order.pick(message, "velocity")
        links = self.links.at(now, position)
        self.imu.follow(now, free=self.compensator.at_rest)
        torque = self.compensator.update(now, position, self.states.stamp, links, velocity, age=self.states.age)
        self._command(torque)
        if self._enable_pending:
            self._enable_when_fit()

    def _begin(self, now: float) -> None:
        """Enable from the torque that acts, at the pose that the controller holds."""
        compensator = self.compensator
        if compensator.state in (State.RAMPING_IN, State.ACTIVE):
            return
        start = None
        self.began = "from the torque that acts"
        if compensator.at_rest:
            gravity = self.load.gravity(compensator.position) if compensator.position else []
            start, self.began = self.controller.start(
                now, gravity, lambda: self.states.measured(compensator.joints.torque, self._tolerance)
            )
            self._check_support(start, gravity)
        begin, then = self.controller.pose(now, compensator.position)
        compensator.enable(now, start, begin, confirmed=self._confirmed)
        self._foreign = 0
        if then is not None:
            with suppress(ControlError):  # it is where the limits are
                compensator.aim(then)

    def _publish(self, torque: Sequence[float]) -> None:
        self.commands.publish(torque, self.compensator.desired)
        self.controller.sent(time.monotonic(), torque, self.compensator.desired)

    def _no_subscriber(self) -> str:
        return f"no controller listens on {self.commands.topic.name}; start it, or set command_topic"

    def _foreign_commands(self) -> str:
        """Name who else publishes commands."""
        if others := self.commands.topic.others:
            return others
        return f"somebody else published on {self.commands.topic.name}; end it, as two would command in turn"

    def _check_support(self, start: Sequence[float] | None, gravity: Sequence[float]) -> None:
        """Refuse a ramp that would take support away from an arm that hangs on the torque that acts."""
        joints = self.compensator.joints
        for name, acting, torque, gain in zip(joints.names, start or (), gravity, joints.gain, strict=False):
            scale = acting / torque if torque else 0.0
            if scale > gain + MAX_SINK_FRACTION and not self.controller.holds_by_position:
                raise ControlError(
                    f"{acting:.3g} N m (N), {scale:.0%} of the gravity torque, act on joint '{name}' already, and "
                    f"scale is {gain:g}: the arm would sink. Set scale to {scale:.1f} first"
                )

    def _check_model(self) -> None:
        try:
            self.imu.check()
            self._confirmed = self.load.check(self.measured())
        except ControlError as error:
            raise ControlError(f"cannot enable: {error}") from error

    @locked
    def _leave(self) -> None:
        """Have no publisher where there is nothing to command, as soon as the last command, zero, has arrived.

        In the executor's thread, which may be about to wait for an event of the publisher.
        """
        now, topic = time.monotonic(), self.commands.topic
        self.controller.look(commands=topic.is_open, others=not topic.is_open and bool(topic.others))
        if not topic.is_open or self._enabling or self._enable_pending or not self.compensator.at_rest:
            self._rests_since = None
        elif self._rests_since is None:
            self._rests_since = now
        elif now - self._rests_since > ACKNOWLEDGEMENT or topic.acknowledged():
            topic.close()

    def _enable_when_fit(self) -> None:
        try:
            self.enable()
        except ControlError as error:
            self._node.get_logger().warning(str(error), throttle_duration_sec=5.0)

    def _command(self, torque: list[float] | None) -> None:
        if self.compensator.notice:
            self.load.take_back()
        if torque is not None and self.running:
            self._publish(torque)
            self.largest = max(self.largest, *map(abs, torque))
            self.limited.update(self.compensator.limited)
        self._changed()


FELT = 0.05
"""Part of its limit from which on a torque that nobody commanded is reported."""


class CompensationStatus:
    """Looks at the loop; rates and largest values are those since the last look."""

    def __init__(self) -> None:
        self._time = time.monotonic()

    def of(self, loop: CompensationLoop, state: str) -> Status:
        """Status while the node is in `state`."""
        now = time.monotonic()
        seconds, self._time = now - self._time, now
        commands = loop.commands.topic
        values: dict[str, object] = {
            "joint_states_per_second": f"{loop.states.states / max(seconds, 1e-3):.1f}",
            "seconds_since_joint_state": f"{now - loop.states.heard:.2f}",
            "largest_torque": f"{loop.largest:.3f}",
            "at_torque_limit": ", ".join(sorted(loop.limited)) or "none",
            "longest_gap_of_joint_states": f"{loop.states.longest_gap:.3f}",
            "controller_state": loop.controller.watch.state if loop.controller.watch else "unknown",
            "faults": loop.compensator.faults,
            "load": loop.load.load or "none",
            "loads_refused": loop.load.refused,
            "setpoints_refused": loop.setpoint.refused,
            "links": loop.links.problem or ("measured" if loop.links.topic else "not measured"),
            "gravity": loop.imu.described,
            "command_topic": commands.name,
            "subscribers": commands.listeners,
        }
        for name, torque in zip(loop.joint_names, loop.compensator.torque, strict=True):
            values[f"torque {name}"] = f"{torque:.3f}"
        warning = self._warning(loop)
        loop.states.states, loop.largest = 0, 0.0
        loop.limited.clear()
        if loop.compensator.state is State.FAULT:
            return ERROR, state, values
        return (WARN, f"{state}; {warning}", values) if warning else (OK, state, values)

    def _warning(self, loop: CompensationLoop) -> str:
        """What is wrong and is no fault; empty: nothing."""
        if loop.limited:
            return f"torque exceeds the torque limit of {', '.join(sorted(loop.limited))}"
        if problem := loop.compensator.notice or loop.load.problem or loop.setpoint.problem:
            return problem
        if loop.links.problem:
            return f"links not measured: {loop.links.problem}"
        unheard = loop.compensator.state is not State.DISABLED and loop.controller.inactive
        if unheard:
            return unheard
        commands = loop.commands.topic
        if loop.compensator.state is not State.DISABLED and not commands.listeners:
            return f"nobody listens on {commands.name}: the torque reaches no controller"
        quiet = loop.running and silence(loop.states.topic, loop.states.heard)
        return quiet or commands.others or self._acting(loop) or loop.controller.warning

    def _acting(self, loop: CompensationLoop) -> str:
        """Torque that acts although none is commanded, in words; empty: none, or nobody knows."""
        if loop.compensator.state is not State.DISABLED:
            return ""
        joints = loop.compensator.joints
        efforts = loop.controller.acts(time.monotonic(), lambda: loop.states.last("effort"))
        for name, effort, limit in zip(joints.names, efforts, joints.torque, strict=False):
            if abs(effort) > FELT * limit:
                return f"{effort:.3g} N m (N) act on joint '{name}' although disabled, from a command before"
        return ""
