"""The load that `gravity_compensation` counts with, and the topic that tells of another."""

from geometry_msgs.msg import InertiaStamped
from rclpy.lifecycle import LifecycleNode

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, LoadedGravity, ModelChange
from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.robot_description import LATCHED

AHEAD = 10**9  # ns by which the clocks of two computers may differ
LOG_PERIOD = 5.0


class CompensationLoad:
    """Keeps `compensator` supplied with the gravity torque of the arm and of the load that was told last.

    A load that cannot be meant is refused, and the one in force stays. One that changes the torque too far for an arm
    that is held by it waits until the compensation is disabled and enabled. The one in force stays, too, when its
    publisher is gone: what the arm holds does not fall because a program ended.

    Args:
        node: listens.
        topic: of `InertiaStamped`; empty: none. The inertia is not looked at, gravity does not feel it.
        compensator: computes with `gravity`.
        gravity: the arm's torque, with the load that its file tells of.
        joints: settings that belong to it.
        change: what it is compared by.

    Attributes:
        refused: number of messages refused.
        problem: why the last message was refused; empty if it was not.

    """

    def __init__(
        self,
        node: LifecycleNode,
        topic: str,
        compensator: GravityCompensator,
        gravity: LoadedGravity,
        joints: JointSettings,
        *,
        change: ModelChange,
    ) -> None:
        self.refused = 0
        self.problem = ""
        self._node = node
        self._compensator = compensator
        self._gravity = gravity
        self._joints = joints
        self._change = change
        self._waiting: CarriedLoad | None = None
        self._stamp = 0
        self._subscription = (
            node.create_subscription(InertiaStamped, topic, self._on_message, LATCHED) if topic else None
        )

    @property
    def load(self) -> CarriedLoad | None:
        """The load in force; None if nobody has told of one."""
        return self._gravity.load

    def check(self) -> None:
        """Before the arm is held by it: take a load that waits, and look at what is in force.

        Raises:
            ControlError: model or load cannot be.

        """
        if self._compensator.at_rest:
            if self._waiting is not None:
                self._use(self._gravity.carrying(self._waiting), self._joints, self._change)
            self._change.check_arm(self._gravity)
            self._change.check_load(self._gravity)

    def replace(self, gravity: LoadedGravity, joints: JointSettings, change: ModelChange) -> None:
        """Use another model, and its load; the load in force if it tells of none.

        Raises:
            ControlError: the model does not fit, or cannot be; the one in force stays.

        """
        if gravity.load is None:
            gravity = gravity.carrying(self.load)
        change.check_arm(gravity)
        self._use(gravity, joints, change)

    def _use(self, gravity: LoadedGravity, joints: JointSettings, change: ModelChange) -> None:
        change.check_load(gravity)
        if not self._compensator.at_rest and joints.names == self._joints.names:
            change.check_change(self._change, self._gravity, gravity)
        self._compensator.replace(gravity, joints)
        self._gravity, self._joints, self._change, self._waiting = gravity, joints, change, None
        self.problem = ""

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _on_message(self, message: InertiaStamped) -> None:
        logger = self._node.get_logger()
        try:
            stamp = self._checked_stamp(message)
            center = message.inertia.com
            load = CarriedLoad(message.inertia.m, (center.x, center.y, center.z), message.header.frame_id.lstrip("/"))
            gravity = self._gravity.carrying(load)
            self._change.check_load(gravity)
            self._waiting = load  # whatever comes of it now, it may be meant
            self._use(gravity, self._joints, self._change)
        except ControlError as error:
            self.refused += 1
            self.problem = f"a load was refused, the one in force stays ({self.load or 'none'}): {error}"
            logger.warning(self.problem, throttle_duration_sec=LOG_PERIOD)
            return
        self._stamp = stamp or self._stamp
        logger.info(f"load in force: {load}", throttle_duration_sec=LOG_PERIOD)

    def _checked_stamp(self, message: InertiaStamped) -> int:
        """Time that the message speaks of, ns; 0 if it does not say."""
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        ahead = stamp - self._node.get_clock().now().nanoseconds
        if stamp < 0:
            raise ControlError(f"its stamp is {stamp / 1e9:.1f} s, before the clock began; expected 0 or a time")
        if stamp and ahead > AHEAD:
            raise ControlError(f"its stamp is {ahead / 1e9:.1f} s in the future; set the clocks")
        if stamp and stamp < self._stamp:
            raise ControlError(f"its stamp is {(self._stamp - stamp) / 1e9:.3f} s older than that of the load in force")
        return stamp
