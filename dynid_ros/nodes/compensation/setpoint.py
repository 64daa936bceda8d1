"""The topic that tells `gravity_compensation` where the arm is to be."""

import math
from collections.abc import Sequence

from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import JointState

from dynid_ros.control import GravityCompensator
from dynid_ros.errors import ControlError

LOG_PERIOD = 5.0


class CompensationSetpoint:
    """Aims `compensator` where `sensor_msgs/JointState` on a topic says; joints that it does not name stay.

    What cannot be meant is refused as a whole, and the pose before stays desired: joints of another robot, numbers that
    are none, positions beyond limits, and set-points for an arm that nothing pulls there, or that is not enabled.

    Args:
        node: listens.
        topic: of the set-points; empty: none.
        compensator: is aimed.
        joint_names: of the model.
        follows: whether the desired pose has an effect.

    Attributes:
        refused: number of messages refused.
        problem: why the last message was refused; empty if it was not.

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
        self.refused = 0
        self.problem = ""
        self._node = node
        self._compensator = compensator
        self._names = list(joint_names)
        self._follows = follows
        self._subscription = node.create_subscription(JointState, topic, self._on_setpoint, 10) if topic else None

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _on_setpoint(self, message: JointState) -> None:
        try:
            self._compensator.aim(self._target(message))
        except ControlError as error:
            self.refused += 1
            self.problem = f"a set-point was refused, the desired pose stays: {error}"
            self._node.get_logger().warning(self.problem, throttle_duration_sec=LOG_PERIOD)
            return
        self.problem = ""

    def _target(self, message: JointState) -> list[float]:
        """(n,) NaN where the message does not name the joint."""
        if not self._follows:
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
