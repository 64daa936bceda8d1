"""Control loop of `gravity_compensation`: one torque command for each joint state, and a periodic check for faults."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from threading import RLock

from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, MeasuredEffort, State, Timing
from dynid_ros.control.servo_offset import SetpointWatch
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.base_imu import CompensationImu
from dynid_ros.nodes.compensation.controller import CompensationController
from dynid_ros.nodes.compensation.controller_state import ControllerPlan, EffortCommands
from dynid_ros.nodes.compensation.inputs import (
    CompensationLinks,
    CompensationLoad,
    CompensationSetpoint,
    JointStateInput,
    ReadModel,
)
from dynid_ros.nodes.shared.process import locked, steady_timer
from dynid_ros.nodes.shared.topics import publishers_of

WATCH_PERIOD_S = 0.01
"""Period of the check for faults, s."""
END_PERIOD_S = 0.002
"""Period of the loop that lowers the arm before the process ends, s."""
LEAVE_PERIOD_S = 0.05
"""Period of the check whether the publisher of commands can be removed, s."""
ACKNOWLEDGEMENT_TIMEOUT_S = 0.5
"""Longest wait until the controller has acknowledged the last command, s."""
END_DESCENT_S = 8.0
"""Time in which the arm is lowered if the process must end, s; launch kills a process 10 s after Ctrl-C."""
MAX_SINK_FRACTION = 0.1
"""Largest part of the supporting torque that `enable` may take away, as a fraction of the gravity torque."""


@dataclass(eq=False)
class CompensationLoop:
    """Gravity compensation that answers each message of the topic `joint_states` by a torque command.

    The publisher of commands exists only while the arm is compensated: not before `start`, not while disabled, and not
    after a fault has ramped the torque to zero. `destroy` also destroys `load`, `links`, `setpoint`, `plan` and `imu`.

    Attributes:
        joint_names: names of the joints, in the model's order.
        commands: publisher of the torque commands.
        changed: function that is called after each step that may change the state of the compensator.
        controller: client of the controller that receives the commands.
        imu: direction of gravity, measured by an IMU on the base.
        load: model and load in force.
        links: measured link positions of flexible joints.
        setpoint: input of set-points of the desired pose.
        plan: planned motion of another controller, whose torque may be added.
        tolerance: largest error of effort in joint states, as a fraction of the effort limits.
        began: description of the torque at which the last ramp in began.
        running: whether commands may be published.
        largest: largest absolute commanded torque since the last status report, N m (N).
        limited: names of the joints whose torque was clipped to its limit since the last status report.
        states: input of the joint states.
    """

    node: LifecycleNode
    compensator: GravityCompensator
    joint_names: Sequence[str]
    commands: EffortCommands
    changed: Callable[[], None]
    _: KW_ONLY
    controller: CompensationController
    imu: CompensationImu
    load: CompensationLoad
    links: CompensationLinks
    setpoint: CompensationSetpoint
    plan: ControllerPlan
    tolerance: float

    def __post_init__(self) -> None:
        self.largest = 0.0
        self.limited: set[str] = set()
        self._enable_pending = False
        self._enabling = False
        self._confirmed = False
        self._rests_since: float | None = None
        self.lock = RLock()
        self.running = False
        self._foreign = 0  # commands of other publishers that were already reacted to
        self.began = ""
        self._setpoint_watch = SetpointWatch()
        with self.lock:  # where another thread spins the node, a joint state may come before this assignment
            self.states = JointStateInput(self.node, self.joint_names, self._on_joint_state)
        self._timer = steady_timer(self.node, LEAVE_PERIOD_S, self._close_publisher)

    @locked
    def start(self, enable: bool) -> None:
        """Allow commands to be published.

        Args:
            enable: whether to ramp in with the first good joint state.
        """
        self.states.heard = time.monotonic()
        self._enable_pending = enable
        self.running = True

    @locked
    def end(self) -> None:
        """Lower the arm, ramp the torque to zero and close the publisher; block until the controller received zero."""
        if not self.running:
            return
        self._enable_pending = False
        self.compensator.stop(time.monotonic(), END_DESCENT_S)
        follows = True
        while not self.compensator.at_rest:
            try:
                self._act_on(self.states.waiting(None) if follows else ())
            except Exception:  # programming error: ignore the joint states and ramp the last torque to zero
                follows = False
                self.compensator.stop(time.monotonic())
            if (torque := self.compensator.watch(time.monotonic())) is not None:
                self._publish(torque)
            time.sleep(END_PERIOD_S)
        self.running = False
        if not self.commands.topic.acknowledged(ACKNOWLEDGEMENT_TIMEOUT_S):
            self.node.get_logger().warning("The controller did not acknowledge the last command, which was zero.")
        self.commands.topic.close()

    @locked
    def destroy(self) -> None:
        """Remove the topics and the timer from the node."""
        self.node.destroy_timer(self._timer)
        self.states.destroy()
        self.commands.topic.close()
        self.controller.release()
        for topic in (self.imu, self.load, self.links, self.setpoint, self.plan):
            topic.destroy()

    @property
    def has_listener(self) -> bool:
        """Whether a controller subscribes to the commands."""
        return self.commands.topic.listeners > 0

    @locked
    def prepare(self) -> None:
        """Create the publisher of commands; it is removed when `enable` fails or the torque is zero again.

        Raises:
            ControlError: the topic has another publisher, or no subscriber; a later one would receive a torque step.
        """
        topic = self.commands.topic
        if not self.has_listener or topic.others:
            raise ControlError(f"cannot enable: {topic.others or self._no_subscriber()}")
        topic.open()
        self._enabling = True

    @locked
    def enable(self) -> None:
        """Ramp the torque in; for errors see `prepare` and `GravityCompensator.enable`."""
        try:
            self.prepare()
            if not self.has_listener:
                raise ControlError(f"cannot enable: {self._no_subscriber()}")
            self._check_model()
            self.controller.check()
            self._enable_compensator(time.monotonic())
        except ControlError as error:
            raise ControlError(f"{error}{publishers_of(self.node, 'joint_states')}") from error
        finally:
            self._enabling = False
        self._enable_pending = False
        self.changed()

    @locked
    def interrupt(self, reason: str) -> None:
        """End with a fault and ramp to zero, because commands have no effect or reach another controller."""
        self.compensator.interrupt(time.monotonic(), reason, fade=True)
        self.changed()

    @locked
    def announce(self, load: CarriedLoad | None) -> None:
        """Change the load that the arm carries; None: no load. For errors see `CompensationLoad.take`."""
        self.load.take(load)
        self.changed()

    @locked
    def use(self, model: ReadModel) -> None:
        """Change the model of the arm; for errors see `CompensationLoad.replace`."""
        self._check_stiffness(model.joints)
        gravity = self.imu.tilting(model.gravity)
        self.load.replace(replace(model, gravity=gravity), self.measured())

    @locked
    def follow_controller(self, reason: str, joints: Sequence[str]) -> None:
        """End with a fault because the controller differs from the configured one.

        Args:
            reason: reason of the fault.
            joints: joints of the controller, if it commands efforts. If only their order changed, the arm is lowered
                with the new order; otherwise the torque ramps to zero at once.
        """
        has_same_joints = sorted(joints) == sorted(self.joint_names[i] for i in self.commands.order)
        if has_same_joints:
            self.commands.use_order(joints)
        self.compensator.interrupt(time.monotonic(), reason, fade=not has_same_joints)
        self.changed()

    @locked
    def released(self) -> None:
        """Check that the arm does not move by itself after another controller has released it to this torque."""
        self.compensator.released()

    @locked
    def measured(self) -> MeasuredEffort | None:
        """Return the measured position and the effort that holds the arm there; None if unknown."""
        if not self.controller.effort_is_torque:
            return None
        try:
            certain = bool(self.controller.holds_by_position)
            return self.states.measured(self.compensator.joints.torque, self.tolerance, certain=certain)
        except DynidError:
            return None

    @locked
    def adjust(self, joints: JointSettings, timing: Timing, largest_deflection: float, tolerance: float) -> None:
        """Change gains, limits and durations; the torque changes by at most `max_rate`.

        Args:
            joints: limits and gains of the joints.
            timing: durations of ramps and timeouts.
            largest_deflection: largest plausible distance of a measured link from its motor, rad (m).
            tolerance: largest error of effort in joint states, as a fraction of the effort limits.

        Raises:
            DynidError: the gains need velocities that joint states lack; further errors as in
                `GravityCompensator.adjust`.
        """
        if joints.feedback.needs_velocity and not self.compensator.at_rest:
            self.states.last("velocity")  # raises an error if there is none
        self._check_stiffness(joints)
        follows_setpoint = joints.feedback.holds or self.controller.holds_pose
        self.plan.use(joints, follows_setpoint=follows_setpoint)
        self.compensator.adjust(joints, timing)
        self.tolerance = tolerance
        self.links.timeout = timing.timeout
        self.links.largest = largest_deflection
        self.setpoint.follows = follows_setpoint

    @locked
    def gravity_torque(self) -> JointState | None:
        """Return the gravity torque of arm and load in the present pose, as `effort`; None if the pose is unknown."""
        now = time.monotonic()
        position = self.compensator.position
        if not position or now - self.states.heard > self.links.timeout:
            return None
        try:
            effort = self.load.gravity(position, self.links.at(now, position))
        except ControlError:  # the springs have no equilibrium
            return None
        return JointState(header=self.states.header, name=self.joint_names, position=position, effort=effort)

    @locked
    def disable(self) -> None:
        """Ramp the torque out and lower the arm."""
        self._enable_pending = False
        self.compensator.disable(time.monotonic())
        self.changed()

    def follow(self, seconds: float) -> bool:
        """Wait for the next joint state for at most `seconds`, process it, and return whether one arrived."""
        if not self.states.wait(seconds):
            return False
        self._act_on(self.states.waiting(None))
        return True

    def serve(self) -> None:
        """Process queued joint states and check for faults; a long callback calls this repeatedly."""
        self._act_on(self.states.waiting(None))
        self.watch()

    @locked
    def look(self) -> None:
        """Check for faults while commands may be published; a separate thread calls this periodically."""
        if self.running:
            self.watch()

    def wake(self) -> None:
        """End a wait of `follow` from another thread."""
        self.states.wake()

    @locked
    def watch(self) -> None:
        """Check joint states, IMU, controller and other publishers for faults, and publish the torque of a ramp."""
        now = time.monotonic()
        if self.running and self.commands.topic.is_open:
            if not self.has_listener:
                self.compensator.interrupt(now, self._no_subscriber(), fade=True)
            elif (foreign := self.commands.topic.count_foreign()) > self._foreign:
                # A first foreign message may remain the only one, and the next command overwrites it: lower the arm.
                # Further messages come from a publisher that commands in turn with this one: ramp to zero.
                topic = self.commands.topic
                other = f"somebody else published on {topic.name}; end that node, because two would command in turn"
                self.compensator.interrupt(now, topic.others or other, fade=self._foreign > 0)
                self._foreign = foreign
            elif problem := self.imu.doubt(now):
                self.compensator.interrupt(now, problem)
            elif problem := self.controller.unheeded:
                self.compensator.drop(now, problem)
        self._command(self.compensator.watch(now))

    @locked
    def _on_joint_state(self, message: JointState) -> None:
        self._act_on(self.states.waiting(message))

    @locked
    def _act_on(self, messages: Sequence[JointState]) -> None:
        """Process the newest joint state; at zero torque process all, to detect two drivers that disagree."""
        for message in messages if self.compensator.at_rest else messages[-1:]:
            self._act_on_one(message)

    def _act_on_one(self, message: JointState) -> None:
        now = time.monotonic()
        order = self.states.order
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
            with suppress(DynidError):  # optional: without it, `update` differentiates positions
                velocity = order.pick(message, "velocity")
        links = self.links.at(now, position)
        self.imu.follow(now, free=self.compensator.at_rest)
        torque = self.compensator.update(now, position, self.states.stamp, links, velocity, age=self.states.age)
        self._command(torque)
        self._watch_setpoints(now, position)
        if self._enable_pending:
            self._enable_when_fit()

    def _check_stiffness(self, joints: JointSettings) -> None:
        """Raise an error if the stiffness of servos changes while offsets act: the set-points would jump."""
        old = self.compensator.joints.servo
        new = joints.servo
        if old is not None and new is not None and old.stiffness != new.stiffness and not self.compensator.at_rest:
            raise ControlError("the stiffness of the servos changes, and the set-points would jump; disable first")

    def _watch_setpoints(self, now: float, position: Sequence[float]) -> None:
        """End with a fault if position servos do not follow their set-points."""
        compensator = self.compensator
        servo = compensator.joints.servo
        if servo is None or compensator.state not in (State.RAMPING_IN, State.ACTIVE):
            return
        if problem := self._setpoint_watch.doubt(now, self.joint_names, servo, position, compensator.desired):
            compensator.interrupt(now, problem, fade=True)
            self.changed()

    def _enable_compensator(self, now: float) -> None:
        """Enable the compensator; start from the torque that acts now and from the pose that the controller holds."""
        compensator = self.compensator
        if compensator.state in (State.RAMPING_IN, State.ACTIVE):
            return
        start = None
        self.began = "from the present command"
        joints = compensator.joints
        gravity = self.load.gravity(compensator.position) if compensator.position else []
        if compensator.at_rest and joints.servo is None:
            start, self.began = self.controller.start(
                now, gravity, lambda: self.states.measured(joints.torque, self.tolerance)
            )
            self._check_support(start, gravity)
        first_pose, next_pose = self.controller.pose(now, compensator.position)
        if compensator.at_rest and joints.servo is not None:
            self.began = "from the last set-point"
            if first_pose is None and gravity:
                first_pose, start = joints.servo.present(compensator.position, gravity, joints.gain, joints.torque)
                self.began = "from the set-point that the resting arm shows"
        compensator.enable(now, start, first_pose, confirmed=self._confirmed)
        self.commands.topic.forget_foreign()
        self._foreign = 0
        if next_pose is not None:
            with suppress(ControlError):  # the pose may be beyond the position limits
                compensator.aim(next_pose)

    def _publish(self, torque: Sequence[float]) -> None:
        servo = self.compensator.joints.servo
        desired = self.compensator.desired
        self.commands.publish(torque, desired if servo is None else servo.command(desired, torque))
        self.controller.sent(time.monotonic(), torque, self.compensator.desired)

    def _no_subscriber(self) -> str:
        return f"no controller listens on {self.commands.topic.name}; start it, or set command_topic"

    def _check_support(self, start: Sequence[float] | None, gravity: Sequence[float]) -> None:
        """Raise an error if the ramp would clearly lower the torque that supports the arm now."""
        joints = self.compensator.joints
        for name, acting, model_torque, gain in zip(joints.names, start or (), gravity, joints.gain, strict=False):
            scale = acting / model_torque if model_torque else 0.0
            if scale > gain + MAX_SINK_FRACTION and not self.controller.holds_by_position:
                raise ControlError(
                    f"{acting:.3g} N m (N), {scale:.0%} of the gravity torque, act on joint '{name}' already, and "
                    f"scale is {gain:g}: the arm would sink. Set scale to {scale:.1f} first"
                )

    def _check_model(self) -> None:
        """Raise an error if the IMU, the load or the model contradicts the measurements."""
        try:
            self.imu.check()
            self._confirmed = self.load.check(self.measured())
        except ControlError as error:
            raise ControlError(f"cannot enable: {error}") from error

    @locked
    def _close_publisher(self) -> None:
        """Remove the publisher when the torque is zero and the controller has acknowledged this last command.

        Only the executor's thread may call this: while it waits for an event of the publisher, no other thread may
        remove the publisher.
        """
        now = time.monotonic()
        topic = self.commands.topic
        self.controller.look(commands=topic.is_open, others=not topic.is_open and bool(topic.others))
        if not topic.is_open or self._enabling or self._enable_pending or not self.compensator.at_rest:
            self._rests_since = None
        elif self._rests_since is None:
            self._rests_since = now
        elif now - self._rests_since > ACKNOWLEDGEMENT_TIMEOUT_S or topic.acknowledged():
            topic.close()

    def _enable_when_fit(self) -> None:
        try:
            self.enable()
        except ControlError as error:
            self.node.get_logger().warning(str(error), throttle_duration_sec=5.0)

    def _command(self, torque: list[float] | None) -> None:
        if self.compensator.notice:
            self.load.take_back()
        if torque is not None and self.running:
            self._publish(torque)
            self.largest = max(self.largest, *map(abs, torque))
            self.limited.update(self.compensator.limited)
        self.changed()
