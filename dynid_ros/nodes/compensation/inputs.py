"""Inputs of `gravity_compensation`: joint states, link positions of flexible joints, set-points and loads.

Joint states are required: without them the torque ramps to zero. The other inputs are optional; implausible values are
refused.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

from geometry_msgs.msg import InertiaStamped
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from dynid_ros.control import (
    CarriedLoad,
    GravityCompensator,
    HeldArm,
    JointSettings,
    LoadedGravity,
    MeasuredEffort,
    ModelChange,
)
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.shared.robot_description import JointOrder, Listener, LoadListener, nanoseconds, newest_states
from dynid_ros.nodes.shared.topics import LATCHED


class PromptWait:
    """Wait for a message of one subscription, which the executor serves as well.

    The executor of rclpy collects all entities of a node before each wait, which takes 0.4 ms for a node with services.
    At 1 kHz that is nearly half the time, and messages that arrive meanwhile are late. This wait takes 0.05 ms.
    """

    def __init__(self, node: Node, subscription: Subscription) -> None:
        self._subscription = subscription
        self._wait_set = rclpy_implementation.WaitSet(1, 1, 0, 0, 0, 0, node.context.handle)
        self._guard = GuardCondition(None, None, context=node.context)

    def __call__(self, seconds: float) -> bool:
        """Wait for a message for at most `seconds` and return whether one has arrived."""
        with self._subscription.handle:
            self._wait_set.clear_entities()
            self._wait_set.add_subscription(self._subscription.handle)
            self._wait_set.add_guard_condition(self._guard.handle)
            self._wait_set.wait(round(seconds * 1e9))
            return bool(self._wait_set.get_ready_entities("subscription"))

    def wake(self) -> None:
        """End a wait from another thread."""
        self._guard.trigger()


MAX_AGE_S = 0.1
"""Largest plausible age of a joint state, s; a larger one means that its stamp comes from another clock."""
QUEUE_DEPTH = 10
# With a depth of one, the states of a gripper on the same topic would displace those of the arm.


class JointStateInput:
    """Topic `joint_states` of one arm.

    Attributes:
        order: order of the arm's joints in the messages.
        stamp: stamp of the last state, s of the driver's clock; None without one.
        heard: arrival of the last state, or begin of the subscription, s of the monotonic clock.
        states: number of states since the last reset.
        longest_gap: longest time between two states, s.
        age: time between the stamp of the last state and its arrival, s; 0 if the clocks disagree.
    """

    def __init__(self, node: Node, joint_names: Sequence[str], on_message: Callable[[JointState], None]) -> None:
        self.order = JointOrder(joint_names)
        self.stamp: float | None = None
        self.heard = time.monotonic()
        self.states = 0
        self.longest_gap = 0.0
        self._node = node
        self._message: JointState | None = None
        self.age = 0.0
        self._subscription = node.create_subscription(
            JointState, "joint_states", on_message, newest_states(QUEUE_DEPTH)
        )
        self._wait_for_message = PromptWait(node, self._subscription)

    @property
    def topic(self) -> str:
        """Full name of the topic."""
        return self._subscription.topic_name

    @property
    def header(self) -> Header:
        """Header of the last state."""
        return self._message.header if self._message is not None else Header()

    def wait(self, seconds: float) -> bool:
        """Wait for a state for at most `seconds` and return whether one has arrived."""
        return self._wait_for_message(seconds)

    def wake(self) -> None:
        """End a wait from another thread."""
        self._wait_for_message.wake()

    def waiting(self, message: JointState | None) -> list[JointState]:
        """Return the queued states of this arm, oldest first; `message` is the oldest one, if already taken."""
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
        """Store a state that arrived at `now`, s; return False for a repeated one."""
        stamp = 1e-9 * nanoseconds(message.header) or None
        if stamp is not None and stamp == self.stamp:
            return False
        if self._message is not None:
            self.longest_gap = max(self.longest_gap, now - self.heard)
        self.stamp = stamp
        self._message = message
        self.heard = now
        self.states += 1
        age = 0.0 if stamp is None else 1e-9 * self._node.get_clock().now().nanoseconds - stamp
        self.age = age if 0.0 < age < MAX_AGE_S else 0.0
        return True

    def measured(self, limits: Sequence[float], tolerance: float, *, certain: bool = False) -> MeasuredEffort:
        """Return position and effort of the last state; see `JointOrder.pick` for errors.

        Args:
            limits: (n,) torque limits, N m (N).
            tolerance: largest error of the efforts, as a fraction of the limits.
            certain: whether a position controller holds the arm.
        """
        error = [tolerance * limit for limit in limits]
        return MeasuredEffort(self.last("position"), self.last("effort"), error, certain)

    def last(self, field: str) -> list[float]:
        """Return the values (n,) of a field of the last state; see `JointOrder.pick` for errors."""
        if self._message is None:
            raise ControlError("no joint state has arrived yet")
        return self.order.pick(self._message, field)

    def destroy(self) -> None:
        """Remove the topic from the node."""
        self._node.destroy_subscription(self._subscription)


class CompensationLinks(Listener):
    """Measured link positions of flexible joints, by link encoders or a camera.

    The input is optional. Without it, link positions follow from the springs of the model file, or equal the motor
    positions if the file has no springs.

    Args:
        topic: name of the topic; empty without one.
        timeout: largest age of a state, s.
        largest_deflection: largest plausible distance of a link from its motor, rad (m).

    Attributes:
        largest: largest plausible distance of a link from its motor, rad (m).
        problem: reason why the link positions are unknown; empty if they are known or the topic is not set.
    """

    def __init__(
        self, node: LifecycleNode, topic: str, joint_names: Sequence[str], *, timeout: float, largest_deflection: float
    ) -> None:
        super().__init__(node, JointState, topic, self._on_state, newest_states(QUEUE_DEPTH))
        self.timeout = timeout
        self.largest = largest_deflection
        self.problem = f"no state of the links has come on {topic} yet" if topic else ""
        self.topic = topic
        self._names = list(joint_names)
        self._order = JointOrder(joint_names)
        self._message: JointState | None = None
        self._stamp = 0
        self._received = 0.0

    def at(self, now: float, motors: Sequence[float]) -> list[float] | None:
        """Return the link positions (n,), rad (m); None if they are unknown or implausible."""
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
            return  # a state of another arm, or a repeated one
        self._message = message
        self._stamp = stamp
        self._received = time.monotonic()

    def _doubt(self, age: float, links: Sequence[float], motors: Sequence[float]) -> str:
        """Return why link positions (n,) are too old or implausible; empty if they can be used."""
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
    """Set-points of the desired pose from a topic `sensor_msgs/JointState`.

    Joints that a message does not name keep their set-point. A message is refused as a whole if it names unknown
    joints, if a position is not finite or beyond its limits, or if the arm has no stiffness or is not compensated.

    Args:
        topic: name of the topic; empty without one.
        compensator: compensator that receives the set-points.
        follows: whether the desired pose has an effect; otherwise set-points are refused.
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
        """Return the set-points (n,), rad (m); NaN for joints that the message does not name."""
        if not self.follows:
            raise ControlError("the desired pose has no effect; set the parameters stiffness and damping")
        names = list(message.name)
        positions = list(message.position)
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


@dataclasses.dataclass(frozen=True)
class ReadModel:
    """Model read from a file, with the settings that belong to it.

    Attributes:
        arm: gravity torque, friction and brake of the arm.
        joints: limits and gains of the joints.
        change: comparison with the URDF and with other models.
        gravity: gravity torque of the arm with its load, on a tilting base if there is an IMU.
    """

    arm: HeldArm
    joints: JointSettings
    change: ModelChange
    gravity: LoadedGravity


class CompensationLoad(LoadListener):
    """Load from a topic, whose gravity torque is added to that of the arm.

    A load that the joints cannot carry is refused, and the load in force stays. Any other load ramps in at once. The
    load in force also stays after its publisher has ended, so that the arm does not fall. The inertia of a load has no
    effect on gravity and is ignored.

    Attributes:
        model: model in force, with the load in force.
    """

    def __init__(self, node: LifecycleNode, topic: str, compensator: GravityCompensator, model: ReadModel) -> None:
        super().__init__(node, topic, self.take, lambda: self.load)
        self._compensator = compensator
        self.model = model
        self._publisher = node.create_publisher(InertiaStamped, "~/load_in_force", LATCHED)
        self._publish()

    @property
    def load(self) -> CarriedLoad | None:
        """Load in force; None before the first one."""
        return self.gravity.load

    @property
    def gravity(self) -> LoadedGravity:
        """Gravity torque of the arm with the load in force."""
        return self.model.gravity

    def check(self, measured: MeasuredEffort | None) -> bool:
        """Check model and load before the compensation holds the arm.

        Args:
            measured: effort that holds the arm; None: unknown.

        Returns:
            Whether measured effort confirms the model.
        """
        if not self._compensator.at_rest:
            return False
        self.model.change.check_load(self.gravity)
        return self.model.change.check_arm(self.gravity, measured)

    def replace(self, model: ReadModel, measured: MeasuredEffort | None) -> None:
        """Change to another model and its load; if it has no load, the load in force stays.

        Args:
            model: the new model.
            measured: effort that holds the arm; None: unknown.

        Raises:
            ControlError: the model does not fit the arm, or is implausible; the model in force stays.
        """
        gravity = model.gravity
        if gravity.load is None:
            gravity = gravity.carrying(self.load)
        same_joints = model.joints.names == self._compensator.joints.names
        model.change.check_load(gravity)
        if self._compensator.at_rest or not same_joints:
            model.change.check_arm(gravity, measured)
        else:
            model.change.check_change(self.model.change, self.gravity, gravity, measured)
        self._compensator.replace(gravity, model.joints)
        self._use(dataclasses.replace(model, gravity=gravity))
        self.problem = ""

    def take(self, load: CarriedLoad | None) -> None:
        """Change the load.

        Args:
            load: the new load; None without one.

        Raises:
            ControlError: the arm cannot carry the load; the load in force stays.
        """
        gravity = self.gravity.carrying(load)
        position = () if self._compensator.at_rest else self._compensator.position
        self.model.change.check_load(gravity, position)
        self._compensator.replace(gravity, self._compensator.joints, load=True)
        self._use(dataclasses.replace(self.model, gravity=gravity))
        self.problem = ""

    def take_back(self) -> None:
        """Return to the gravity torque of the compensator, after it withdrew a change."""
        gravity = self._compensator.gravity
        if isinstance(gravity, LoadedGravity) and gravity is not self.gravity:
            self._use(dataclasses.replace(self.model, gravity=gravity))

    def destroy(self) -> None:
        """Remove the topics from the node."""
        super().destroy()
        self._node.destroy_publisher(self._publisher)

    def _use(self, model: ReadModel) -> None:
        self.model = model
        self._publish()

    def _publish(self) -> None:
        """Publish the load in force; a mass of 0 means no load."""
        message = InertiaStamped()
        message.header.stamp = self._node.get_clock().now().to_msg()
        load = self.load or CarriedLoad(0.0, (0.0, 0.0, 0.0), self.model.arm.robot.tip)
        message.header.frame_id = load.frame
        message.inertia.m = load.mass
        message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = load.center
        self._publisher.publish(message)
