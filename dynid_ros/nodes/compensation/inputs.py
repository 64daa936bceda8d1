"""What `gravity_compensation` listens to: joint states, links of flexible joints, set-points and loads.

Joint states are conditions: without them the torque fades. The other three help, and what cannot be meant is refused.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from geometry_msgs.msg import InertiaStamped
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from dynid_ros.control import CarriedLoad, GravityCompensator, LoadedGravity, MeasuredEffort
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.read_model import ReadModel
from dynid_ros.nodes.shared.joint_states import JointOrder, nanoseconds, newest_states
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.topics import LATCHED

LOG_PERIOD = 5.0
"""s between two lines of the log on what is refused."""


class PromptWait:
    """Waits for a message of one subscription, which stays in reach of the executor as well.

    The executor of rclpy gathers everything that a node has each time it waits, some 0.4 ms for a node with services.
    At 1 kHz that is nearly half the time, and a message that comes meanwhile has to wait. This takes some 0.05 ms.
    """

    def __init__(self, node: Node, subscription: Subscription) -> None:
        self._subscription = subscription
        self._wait_set = rclpy_implementation.WaitSet(1, 1, 0, 0, 0, 0, node.context.handle)
        self._guard = GuardCondition(None, None, context=node.context)

    def __call__(self, seconds: float) -> bool:
        """Whether there is a message; waits for one at most so long."""
        with self._subscription.handle:
            self._wait_set.clear_entities()
            self._wait_set.add_subscription(self._subscription.handle)
            self._wait_set.add_guard_condition(self._guard.handle)
            self._wait_set.wait(round(seconds * 1e9))
            return bool(self._wait_set.get_ready_entities("subscription"))

    def wake(self) -> None:
        """End a wait that is under way, from another thread."""
        self._guard.trigger()


MAX_AGE_S = 0.1
"""Age beyond which the stamps of joint states are those of another clock, s."""
QUEUE_DEPTH = 10
# Deeper than one only because a gripper's states, on the same topic, would otherwise push out the arm's.


class JointStateInput:
    """Topic `joint_states` of one arm.

    Attributes:
        order: of its joints.
        stamp: of the last state, s of the driver's clock; None: it has none.
        heard: when the last one came, or when it began to be listened for, s of the monotonic clock.
        states: that came; may be set back.
        longest_gap: between two that came, s.
    """

    def __init__(self, node: Node, joint_names: Sequence[str], on_message: Callable[[JointState], None]) -> None:
        self.order = JointOrder(joint_names)
        self.stamp: float | None = None
        self.heard = time.monotonic()
        self.states = 0
        self.longest_gap = 0.0
        self._node = node
        self._message: JointState | None = None
        self._age = 0.0
        self._subscription = node.create_subscription(
            JointState, "joint_states", on_message, newest_states(QUEUE_DEPTH)
        )
        self._comes = PromptWait(node, self._subscription)

    @property
    def topic(self) -> str:
        """Full name."""
        return self._subscription.topic_name

    @property
    def header(self) -> Header:
        """Of the last state."""
        return self._message.header if self._message is not None else Header()

    def wait(self, seconds: float) -> bool:
        """Whether there is a state; waits for one at most so long."""
        return self._comes(seconds)

    def wake(self) -> None:
        """End a wait that is under way, from another thread."""
        self._comes.wake()

    def waiting(self, message: JointState | None) -> list[JointState]:
        """Queued states that speak of this arm, `message` the first of them, the newest last."""
        states = []
        for _ in range(QUEUE_DEPTH + 1):
            if message is not None and self.order.concerns(message):
                states.append(message)
            with self._subscription.handle:
                taken = self._subscription.handle.take_message(JointState, False)
            if taken is None:
                break
            message = taken[0]
        return states

    def is_news(self, message: JointState, now: float) -> bool:
        """Whether it is news of the arm; the same state sent again is none."""
        stamp = 1e-9 * nanoseconds(message.header) or None
        if stamp is not None and stamp == self.stamp:
            return False
        if self._message is not None:
            self.longest_gap = max(self.longest_gap, now - self.heard)
        self.stamp, self._message, self.heard = stamp, message, now
        self.states += 1
        age = 0.0 if stamp is None else 1e-9 * self._node.get_clock().now().nanoseconds - stamp
        self._age = age if 0.0 < age < MAX_AGE_S else 0.0
        return True

    def measured(self, limits: Sequence[float], tolerance: float, *, certain: bool = False) -> MeasuredEffort:
        """Return position and effort of the last state; raises as `JointOrder.pick` does.

        Args:
            limits: (n,) torque limits, N m (N).
            tolerance: largest error of the efforts, as a part of the limits.
            certain: whether a position controller holds the arm.
        """
        error = [tolerance * limit for limit in limits]
        return MeasuredEffort(self.last("position"), self.last("effort"), error, certain)

    @property
    def age(self) -> float:
        """Time between the stamp of the last state and its arrival, s; 0 where the clocks do not agree."""
        return self._age

    def last(self, field: str) -> list[float]:
        """Values (n,) of a field of the last state; raises as `JointOrder.pick` does."""
        if self._message is None:
            raise ControlError("no joint state has arrived yet")
        return self.order.pick(self._message, field)

    def destroy(self) -> None:
        """Remove the topic from the node."""
        self._node.destroy_subscription(self._subscription)


class Listener:
    """Listens to one topic of a node; to none where its name is empty.

    Attributes:
        problem: what is wrong with what came last; empty: nothing.
        refused: number of messages refused.
    """

    def __init__(self, node: Node, kind: type, topic: str, act: Callable[[Any], None], qos: QoSProfile | int) -> None:
        self.problem = ""
        self.refused = 0
        self._node = node
        self._subscription = node.create_subscription(kind, topic, act, qos) if topic else None

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _refuse(self, problem: str) -> None:
        self.refused += 1
        self.problem = problem
        self._node.get_logger().warning(problem, throttle_duration_sec=LOG_PERIOD)


class CompensationLinks(Listener):
    """Positions of the links as a topic has them; none where they cannot be believed.

    What a link encoder or a camera says is a help, not a condition: without it the links are where the springs of the
    model file let them sag to, and where it has no springs, where the motors are. States older than `timeout`, s, and
    links further than `largest_deflection`, rad (m), from their motors are not believed.
    """

    def __init__(
        self, node: LifecycleNode, topic: str, joint_names: Sequence[str], *, timeout: float, largest_deflection: float
    ) -> None:
        super().__init__(node, JointState, topic, self._on_state, newest_states(QUEUE_DEPTH))
        self.timeout, self.largest = timeout, largest_deflection
        self.problem = f"no state of the links has come on {topic} yet" if topic else ""
        self.topic = topic
        self._names = list(joint_names)
        self._order = JointOrder(joint_names)
        self._message: JointState | None = None
        self._stamp = 0
        self._received = 0.0

    def at(self, now: float, motors: Sequence[float]) -> list[float] | None:
        """Positions (n,) of the links at `now`, s of the monotonic clock, while the motors are at `motors` (n,)."""
        if self._message is None:
            return None
        try:
            links = self._order.pick(self._message, "position")
        except DynidError as error:
            self.problem = f"{self.topic}: {error}"
            return None
        self.problem = self._doubt(now - self._received, links, motors)
        return None if self.problem else links

    def _on_state(self, message: JointState) -> None:
        stamp = nanoseconds(message.header)
        if not self._order.concerns(message) or (stamp and stamp == self._stamp):
            return  # of another arm, or the same state sent again
        self._message, self._stamp, self._received = message, stamp, time.monotonic()

    def _doubt(self, age: float, links: Sequence[float], motors: Sequence[float]) -> str:
        if age > self.timeout:
            return f"{self.topic}: no new state of the links for {age:.2f} s"
        for name, link, motor in zip(self._names, links, motors, strict=True):
            if abs(link - motor) > self.largest:
                return (
                    f"{self.topic}: the link of joint '{name}' is {link - motor:+.4f} from its motor; at most "
                    f"{self.largest:g} are believed (parameter largest_deflection)"
                )
        return ""


class CompensationSetpoint(Listener):
    """Aims `compensator` where `sensor_msgs/JointState` on a topic says; joints that it does not name stay.

    What cannot be meant is refused as a whole, and the pose before stays desired: joints of another robot, numbers that
    are none, positions beyond limits, and set-points for an arm that nothing pulls there, or that is not enabled.
    `follows`: whether the desired pose has an effect.
    """

    def __init__(
        self,
        node: LifecycleNode,
        topic: str,
        compensator: GravityCompensator,
        joint_names: Sequence[str],
        *,
        follows: bool,
    ) -> None:
        super().__init__(node, JointState, topic, self._on_setpoint, 10)
        self._compensator = compensator
        self._names = list(joint_names)
        self.follows = follows

    def _on_setpoint(self, message: JointState) -> None:
        try:
            self._compensator.aim(self._target(message))
        except ControlError as error:
            self._refuse(f"a set-point was refused, the desired pose stays: {error}")
        else:
            self.problem = ""

    def _target(self, message: JointState) -> list[float]:
        """(n,) NaN where the message does not name the joint."""
        if not self.follows:
            raise ControlError("nothing pulls the arm there; give it stiffness and damping")
        names, positions = list(message.name), list(message.position)
        unknown = [name for name in names if name not in self._names]
        if unknown or not names:
            raise ControlError(
                f"it names {', '.join(unknown) or 'no joint'}; the model's joints are {', '.join(self._names)}"
            )
        if len(positions) != len(names) or len(set(names)) != len(names):
            raise ControlError(f"it has {len(positions)} positions for joints {', '.join(names)}; expected one each")
        for name, position in zip(names, positions, strict=True):
            if not math.isfinite(position):
                raise ControlError(f"position of joint '{name}' is {position}; expected a finite number")
        target = dict(zip(names, positions, strict=True))
        return [target.get(name, math.nan) for name in self._names]


AHEAD = 10**9  # ns by which the clocks of two computers may differ
LOAD_TOPIC = NodeParameter(
    "load_topic", "load", "latched geometry_msgs/InertiaStamped, the load in the tip link's frame; empty: none"
)


def published_load(node: Node, message: InertiaStamped, newest: int) -> tuple[CarriedLoad, int]:
    """The load that a message tells of, and the time that it speaks of, ns; 0 if it does not say.

    Args:
        node: whose clock counts.
        message: the message.
        newest: time of the load in force.

    Raises:
        ControlError: no such load can be, or the message is of the future, or older than the load in force.
    """
    stamp = nanoseconds(message.header)
    ahead = stamp - node.get_clock().now().nanoseconds
    if stamp < 0:
        raise ControlError(f"its stamp is {stamp / 1e9:.1f} s, before the clock began; expected 0 or a time")
    if stamp and ahead > AHEAD:
        raise ControlError(f"its stamp is {ahead / 1e9:.1f} s in the future; set the clocks")
    if stamp and stamp < newest:
        raise ControlError(f"its stamp is {(newest - stamp) / 1e9:.3f} s older than that of the load in force")
    inertia = message.inertia
    about = tuple(getattr(inertia, name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    center = (inertia.com.x, inertia.com.y, inertia.com.z)
    return CarriedLoad(inertia.m, center, message.header.frame_id.lstrip("/"), about), stamp


class CompensationLoad(Listener):
    """Keeps `compensator` supplied with the gravity torque of the arm and of the load that was announced last.

    A load that the joints cannot carry is refused, and the one in force stays. Any other comes in at once, but without
    a step. The load in force stays, too, when its publisher is gone: the arm does not fall because a program ended.
    Inertias are not used, as gravity does not depend on them.
    """

    def __init__(self, node: LifecycleNode, topic: str, compensator: GravityCompensator, model: ReadModel) -> None:
        super().__init__(node, InertiaStamped, topic, self._on_message, LATCHED)
        self._compensator = compensator
        self._model = model
        self._stamp = 0
        self._publisher = node.create_publisher(InertiaStamped, "~/load_in_force", LATCHED)
        self._publish()

    @property
    def load(self) -> CarriedLoad | None:
        """The load in force; None if none was announced."""
        return self.gravity.load

    @property
    def gravity(self) -> LoadedGravity:
        """Torque of the arm with the load in force."""
        return self._model.gravity

    @property
    def model(self) -> ReadModel:
        """The model in force."""
        return self._model

    def check(self, measured: MeasuredEffort | None) -> bool:
        """Look at model and load before the arm is held by them.

        Args:
            measured: effort that holds the arm; None: unknown.

        Returns:
            Whether measured effort confirms the model.

        Raises:
            ControlError: model or load cannot be right.
        """
        if not self._compensator.at_rest:
            return False
        self._model.change.check_load(self.gravity)
        return self._model.change.check_arm(self.gravity, measured)

    def replace(self, model: ReadModel, measured: MeasuredEffort | None) -> None:
        """Use another model, and its load; the load in force if it tells of none.

        Raises:
            ControlError: the model does not fit, or cannot be right; the one in force stays.
        """
        gravity = model.gravity
        if gravity.load is None:
            gravity = gravity.carrying(self.load)
        same_joints = model.joints.names == self._compensator.joints.names
        model.change.check_load(gravity)
        if self._compensator.at_rest or not same_joints:
            model.change.check_arm(gravity, measured)
        else:
            model.change.check_change(self._model.change, self.gravity, gravity, measured)
        self._compensator.replace(gravity, model.joints)
        self._use(dataclasses.replace(model, gravity=gravity))
        self.problem = ""

    def take(self, load: CarriedLoad | None) -> None:
        """Count with another load from now on.

        Raises:
            ControlError: the arm cannot carry it; the load in force stays.
        """
        gravity = self.gravity.carrying(load)
        position = () if self._compensator.at_rest else self._compensator.position
        self._model.change.check_load(gravity, position)
        self._compensator.replace(gravity, self._compensator.joints, load=True)
        self._use(dataclasses.replace(self._model, gravity=gravity))
        self.problem = ""

    def take_back(self) -> None:
        """Go back to the gravity torque that the compensator uses, after it took a change back."""
        gravity = self._compensator.gravity
        if isinstance(gravity, LoadedGravity) and gravity is not self.gravity:
            self._use(dataclasses.replace(self._model, gravity=gravity))

    def destroy(self) -> None:
        """Remove the topics from the node."""
        super().destroy()
        self._node.destroy_publisher(self._publisher)

    def _use(self, model: ReadModel) -> None:
        self._model = model
        self._publish()

    def _publish(self) -> None:
        """Publish the load in force; a mass of 0 is none."""
        message = InertiaStamped()
        message.header.stamp = self._node.get_clock().now().to_msg()
        load = self.load or CarriedLoad(0.0, (0.0, 0.0, 0.0), self._model.arm.robot.tip)
        message.header.frame_id = load.frame
        message.inertia.m = load.mass
        message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = load.center
        self._publisher.publish(message)

    def _on_message(self, message: InertiaStamped) -> None:
        try:
            load, stamp = published_load(self._node, message, self._stamp)
            self.take(load)
        except ControlError as error:
            self._refuse(f"a load was refused, the one in force stays ({self.load or 'none'}): {error}")
            return
        self._stamp = stamp or self._stamp
        self._node.get_logger().info(f"load in force: {load}", throttle_duration_sec=LOG_PERIOD)
