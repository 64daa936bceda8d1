"""The two ways of a feed-forward torque to ros2_controllers."""

from collections.abc import Callable, Sequence
from typing import Protocol

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import ControlError

NEWEST = QoSProfile(depth=1)


class EffortCommands(Protocol):
    """Publishes torques that come in the model's joint order."""

    publisher: Publisher

    def hold(self, position: Sequence[float]) -> None:
        """Take the pose at which the compensation is enabled, rad (m)."""

    def publish(self, torque: Sequence[float]) -> None:
        """Send torques, N m (N)."""


class ForwardedEffort:
    """`std_msgs/Float64MultiArray` for `forward_command_controller` on the effort interface.

    That controller keeps the last command for ever. It cannot tell a process that was killed (SIGKILL, power) from one
    that is silent, so the hardware below must have a command timeout or brakes of its own.
    """

    DEFAULT_TOPIC = "/forward_effort_controller/commands"

    def __init__(self, node: Node, topic: str, joints: Sequence[str], controller_joints: Sequence[str]) -> None:
        self._order = command_order(joints, controller_joints)
        self.publisher = node.create_publisher(Float64MultiArray, topic or self.DEFAULT_TOPIC, NEWEST)

    def hold(self, position: Sequence[float]) -> None:
        """Nothing to hold: this route commands no position."""

    def publish(self, torque: Sequence[float]) -> None:
        """Send torques, N m (N)."""
        self.publisher.publish(Float64MultiArray(data=[torque[i] for i in self._order]))


class TrajectoryEffort:
    """`points[0].effort` of a one-point `trajectory_msgs/JointTrajectory` that takes effect at once.

    Needs `joint_trajectory_controller` 4.22 or newer with the command interfaces position and effort, on hardware that
    sums them. The point's positions are the pose measured when the compensation was enabled, so the arm stays there:
    other motions must not be sent to the controller meanwhile. An arm that sags under its position controller sags
    once more by the same angle before the ramp has lifted it. The controller keeps the last effort after an abort, so
    this route must never be the only thing that holds the arm.
    """

    DEFAULT_TOPIC = "/joint_trajectory_controller/joint_trajectory"

    def __init__(self, node: Node, topic: str, joints: Sequence[str], controller_joints: Sequence[str]) -> None:
        self._order = command_order(joints, controller_joints)
        self._names = [joints[i] for i in self._order]
        self._positions: list[float] = []
        self.publisher = node.create_publisher(JointTrajectory, topic or self.DEFAULT_TOPIC, NEWEST)

    def hold(self, position: Sequence[float]) -> None:
        """Take the pose at which the compensation is enabled, rad (m)."""
        self._positions = [position[i] for i in self._order]

    def publish(self, torque: Sequence[float]) -> None:
        """Send torques, N m (N)."""
        effort = [torque[i] for i in self._order]
        point = JointTrajectoryPoint(positions=self._positions, effort=effort)
        self.publisher.publish(JointTrajectory(joint_names=self._names, points=[point]))


ROUTES: dict[str, Callable[[Node, str, Sequence[str], Sequence[str]], EffortCommands]] = {
    "effort": ForwardedEffort,
    "trajectory": TrajectoryEffort,
}


def command_order(joints: Sequence[str], controller_joints: Sequence[str]) -> list[int]:
    """Index into `joints` for each of the controller's joints; none given: those of the model.

    Raises:
        ControlError: the controller has a joint that the model does not know, or has it twice.

    """
    names = list(controller_joints) or list(joints)
    unknown = [name for name in names if name not in joints]
    if unknown:
        raise ControlError(
            f"controller_joints: the model has no joint {', '.join(unknown)}; its joints are {', '.join(joints)}. "
            "Use a controller of these joints alone"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ControlError(f"controller_joints names {', '.join(twice)} more than once")
    return [list(joints).index(name) for name in names]
