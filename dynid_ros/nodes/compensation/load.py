"""The load that `gravity_compensation` counts with, and the topic that tells of another."""

from geometry_msgs.msg import InertiaStamped
from rclpy.lifecycle import LifecycleNode

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, LoadedGravity
from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.robot_description import LATCHED

AHEAD = 10**9  # ns by which the clocks of two computers may differ
LOG_PERIOD = 5.0


class CompensationLoad:
    """Keeps `compensator` supplied with the gravity torque of the arm and of the load that was told last.

    A load that cannot be meant is refused, and the one in force stays. So it does when its publisher is gone: what the
    arm holds does not fall because a program ended.

    Args:
        node: listens.
        topic: of `InertiaStamped`; empty: none. The inertia is not looked at, gravity does not feel it.
        compensator: computes with `gravity`.
        gravity: the arm's torque, with the load that its file tells of.
        joints: settings that belong to it.

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
    ) -> None:
        self.refused = 0
        self.problem = ""
        self._node = node
        self._compensator = compensator
        self._gravity = gravity
        self._joints = joints
        self._stamp = 0
        self._subscription = (
            node.create_subscription(InertiaStamped, topic, self._on_message, LATCHED) if topic else None
        )

    @property
    def load(self) -> CarriedLoad | None:
        """The load in force; None if nobody has told of one."""
        return self._gravity.load

    def replace(self, gravity: LoadedGravity, joints: JointSettings) -> None:
        """Use another model, and its load; the load in force if it tells of none.

        Raises:
            ControlError: the model does not fit; the one in force stays.

        """
        if gravity.load is None:
            gravity = gravity.carrying(self.load)
        self._compensator.replace(gravity, joints)
        self._gravity, self._joints = gravity, joints

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
            self.replace(self._gravity.carrying(load), self._joints)
        except ControlError as error:
            self.refused += 1
            self.problem = f"a load was refused, the one in force stays ({self.load or 'none'}): {error}"
            logger.warning(self.problem, throttle_duration_sec=LOG_PERIOD)
            return
        self.problem = ""
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
