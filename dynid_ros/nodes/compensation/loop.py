"""The control loop of `gravity_compensation`: one joint state in, one command out, and a watch in between."""

import time
from collections.abc import Callable, Sequence
from functools import wraps
from threading import RLock
from typing import Any, TypeVar, cast

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from dynid_ros.control import GravityCompensator
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.effort_commands import EffortCommands
from dynid_ros.nodes.compensation.links import CompensationLinks
from dynid_ros.nodes.compensation.load import CompensationLoad
from dynid_ros.nodes.compensation.setpoint import CompensationSetpoint
from dynid_ros.nodes.shared.command_topic import publishers_of
from dynid_ros.nodes.shared.joint_states import JointOrder
from dynid_ros.nodes.shared.prompt_wait import PromptWait

QUEUE = 10
# Best effort matches every publisher and never delays a new state to repeat an old one. The queue is deeper than one
# only because a gripper's states, on the same topic, would otherwise push out the arm's.
JOINT_STATES = QoSProfile(depth=QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT)
WATCH_PERIOD = 0.01
LEAVE_PERIOD = 0.05
ACKNOWLEDGEMENT = 0.5


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
    then. `load`, `links` and `setpoint` end with the loop.
    """

    def __init__(
        self,
        node: LifecycleNode,
        compensator: GravityCompensator,
        joint_names: Sequence[str],
        commands: EffortCommands,
        changed: Callable[[], None],
        *,
        load: CompensationLoad,
        links: CompensationLinks,
        setpoint: CompensationSetpoint,
    ) -> None:
        self.compensator = compensator
        self.load = load
        self.links = links
        self.setpoint = setpoint
        self.commands = commands
        self.joint_names = list(joint_names)
        self.heard = time.monotonic()
        self.states = 0
        self.largest = 0.0
        self.limited: set[str] = set()
        self._node = node
        self._joints = frozenset(joint_names)
        self._order = JointOrder(joint_names)
        self._changed = changed
        self._enable_pending = False
        self._stamp: float | None = None
        self._enabling = False
        self._rests_since: float | None = None
        self.lock = RLock()
        self._running = False
        # simulated time may stand still
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(LEAVE_PERIOD, self._leave, clock=steady)
        self._subscription = node.create_subscription(JointState, "joint_states", self._on_joint_state, JOINT_STATES)
        self._state_comes = PromptWait(node, self._subscription)

    @property
    def joint_states_topic(self) -> str:
        """Full name."""
        return self._subscription.topic_name

    @property
    def running(self) -> bool:
        """Whether commands may be published."""
        return self._running

    @locked
    def start(self, enable: bool) -> None:
        """Allow commands; `enable`: ramp in with the first good joint state."""
        self.heard = time.monotonic()
        self._enable_pending = enable
        self._running = True

    @locked
    def end(self) -> None:
        """Bring the output to zero by the fault ramp, see it delivered, and publish no more; blocks meanwhile."""
        if not self.running:
            return
        self._running = self._enable_pending = False
        self.compensator.stop(time.monotonic())
        while (torque := self.compensator.watch(time.monotonic())) is not None:
            self.commands.publish(torque, self.compensator.desired)
            time.sleep(WATCH_PERIOD)
        if not self.commands.topic.acknowledged(ACKNOWLEDGEMENT):
            self._node.get_logger().warning("the controller did not acknowledge the last command, which was zero")
        self.commands.topic.close()

    @locked
    def destroy(self) -> None:
        """Remove the topics and the timer from the node."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_subscription(self._subscription)
        self.commands.topic.close()
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
            raise ControlError(f"cannot enable: {topic.others or self._deaf()}")
        topic.open()
        self._enabling = True

    @locked
    def enable(self) -> None:
        """Ramp in; see `prepare` and `GravityCompensator.enable`."""
        try:
            self.prepare()
            if not self.has_listener:
                raise ControlError(f"cannot enable: {self._deaf()}")
            self._check_model()
            self.compensator.enable(time.monotonic())
        except ControlError as error:
            raise ControlError(f"{error}{publishers_of(self._node, 'joint_states')}") from error
        finally:
            self._enabling = False
        self._enable_pending = False
        self._changed()

    @locked
    def interrupt(self, reason: str) -> None:
        """Go to zero for a reason that is not of the joint states."""
        self.compensator.interrupt(time.monotonic(), reason)
        self._changed()

    @locked
    def disable(self) -> None:
        """Ramp out."""
        self._enable_pending = False
        self.compensator.disable()
        self._changed()

    def follow(self, seconds: float) -> bool:
        """Act on the next joint state as soon as it comes, no later than after `seconds`; whether one came."""
        if not self._state_comes(seconds):
            return False
        self._act_on(self._newest(None))
        return True

    def serve(self) -> None:
        """Act on what is queued, from within a callback that takes long."""
        self._act_on(self._newest(None))
        self.watch()

    @locked
    def look(self) -> None:
        """Watch, where commands may be published; asked for at a steady rate, by a thread of its own."""
        if self.running:
            self.watch()

    def wake(self) -> None:
        """End a wait of `follow` that is under way, from another thread."""
        self._state_comes.wake()

    @locked
    def watch(self) -> None:
        """Find stale states, a controller that is gone and others who command, drive the fault ramp."""
        now = time.monotonic()
        if self.running and self.commands.topic.is_open:
            if not self.has_listener:
                self.compensator.interrupt(now, self._deaf())
            elif (others := self.commands.topic.others) and not self.commands.topic.unnamed:
                self.compensator.interrupt(now, others)
        self._command(self.compensator.watch(now))

    def _on_joint_state(self, message: JointState) -> None:
        self._act_on(self._newest(message))

    def _newest(self, message: JointState | None) -> JointState | None:
        """The newest queued joint state that speaks of this arm; older ones are passed over."""
        newest = None
        for _ in range(QUEUE + 1):
            if message is not None and not self._joints.isdisjoint(message.name):
                newest = message
            with self._subscription.handle:
                taken = self._subscription.handle.take_message(JointState, False)
            if taken is None:
                break
            message = taken[0]
        return newest

    @locked
    def _act_on(self, message: JointState | None) -> None:
        if message is None:
            return
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec or None
        if stamp is not None and stamp == self._stamp:
            return  # the same state sent again is no news of the arm
        self._stamp = stamp
        self.states += 1
        self.heard = now = time.monotonic()
        try:
            position = self._order.pick(message, "position")
            needed = self.compensator.joints.feedback.needs_velocity
            velocity = self._order.pick(message, "velocity") if needed else None
        except DynidError as error:
            self.compensator.fault(now, str(error))
            self._command(self.compensator.watch(now))
            return
        self._command(self.compensator.update(now, position, stamp, self.links.at(now, position), velocity))
        if self._enable_pending:
            self._enable_when_fit()

    def _deaf(self) -> str:
        return f"no controller listens on {self.commands.topic.name}; start it, or set command_topic"

    def _check_model(self) -> None:
        try:
            self.load.check()
        except ControlError as error:
            raise ControlError(f"cannot enable: {error}") from error

    @locked
    def _leave(self) -> None:
        """Have no publisher where there is nothing to command, as soon as the last command, zero, has arrived.

        In the executor's thread, which may be about to wait for an event of the publisher.
        """
        now, topic = time.monotonic(), self.commands.topic
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
        if torque is not None and self.running:
            self.commands.publish(torque, self.compensator.desired)
            self.largest = max(self.largest, *map(abs, torque))
            self.limited.update(self.compensator.limited)
        self._changed()
