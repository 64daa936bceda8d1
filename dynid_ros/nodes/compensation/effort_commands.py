"""The ways of a feed-forward torque to ros2_controllers, and which controllers can take it."""

from collections.abc import Sequence
from typing import Protocol

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.command_topic import CommandTopic
from dynid_ros.nodes.shared.controller_query import ControllerAnswer

NEWEST = QoSProfile(depth=1)
FOR_GOOD = Duration(seconds=1e6).to_msg()
"""Eleven days."""


class EffortCommands(Protocol):
    """Publishes torques that come in the model's joint order."""

    topic: CommandTopic
    order: list[int]

    def publish(self, torque: Sequence[float], desired: Sequence[float]) -> None:
        """Send torques, N m (N), at the desired positions, rad (m)."""


class ForwardedEffort:
    """`std_msgs/Float64MultiArray` for `forward_command_controller` on the effort interface.

    That controller keeps the last command for ever. It cannot tell a process that was killed (SIGKILL, power) from one
    that is silent, so the hardware below must have a command timeout or brakes of its own.
    """

    CONTROLLER = "forward_effort_controller"
    TOPIC = "commands"

    def __init__(self, node: Node, topic: str, joints: Sequence[str], controller_joints: Sequence[str]) -> None:
        self.order = command_order(joints, controller_joints)
        self.topic = CommandTopic(node, Float64MultiArray, topic, NEWEST)

    @staticmethod
    def refusal(answer: ControllerAnswer) -> str:
        """Why a controller does not take the torque; empty: it does."""
        if answer.follows_trajectories:
            return "follows trajectories; set output to trajectory"
        if answer.interfaces == ("effort",):
            return ""
        return f"commands {answer.commands}; expected effort"

    def publish(self, torque: Sequence[float], _desired: Sequence[float]) -> None:
        """Send torques, N m (N); this route commands no position."""
        self.topic.publish(Float64MultiArray(data=[torque[i] for i in self.order]))


class TrajectoryEffort:
    """`points[0].effort` of a one-point `trajectory_msgs/JointTrajectory` that takes effect at once.

    Needs `joint_trajectory_controller` 4.22 or newer with the command interfaces position and effort, on hardware that
    sums them, or effort alone, to which it adds its own PID. The point's positions are the desired pose, the one
    measured when the compensation was enabled until it is aimed elsewhere, so the arm stays there: other motions must
    not be sent to the controller meanwhile. An arm that sags under its position controller sags once more by the same
    angle before the ramp has lifted it.

    What the controller does with the effort after an abort is not for it to hold an arm: it falls to zero at once, or
    stays at the last one of an action goal that succeeded before. Nor does it know a publisher that was killed. So this
    route must never be the only thing that holds the arm.
    """

    CONTROLLER = "joint_trajectory_controller"
    TOPIC = "joint_trajectory"

    def __init__(self, node: Node, topic: str, joints: Sequence[str], controller_joints: Sequence[str]) -> None:
        self.order = command_order(joints, controller_joints)
        self._names = [joints[i] for i in self.order]
        self.topic = CommandTopic(node, JointTrajectory, topic, NEWEST)
        node.get_logger().warning(
            "output trajectory must not be the only thing that holds the arm: joint_trajectory_controller drops the "
            "effort, or keeps a stale one, when it aborts a trajectory"
        )

    @staticmethod
    def refusal(answer: ControllerAnswer) -> str:
        """Why a controller does not take the torque; empty: it does."""
        if not answer.follows_trajectories:
            return "follows no trajectories; set output to effort"
        if not answer.tolerant:
            return (
                "aborts where the arm is pushed off its way, and takes no effort from then on; set its parameters "
                "constraints.<joint>.trajectory to 0.0"
            )
        if set(answer.interfaces) in ({"position", "effort"}, {"effort"}):
            return ""
        return f"commands {answer.commands}; expected position and effort (joint_trajectory_controller 4.22 or newer)"

    def publish(self, torque: Sequence[float], desired: Sequence[float]) -> None:
        """Send torques, N m (N), at the desired positions, rad (m).

        Without any torque, as the last command is, the pose stays for good: `cmd_timeout` would have the controller
        hold the place measured then, to which the arm has sagged, with a jump of its command.
        """
        positions, effort = ([values[i] for i in self.order] for values in (desired, torque))
        points = [JointTrajectoryPoint(positions=positions, effort=effort)]
        if not any(torque):
            points.append(JointTrajectoryPoint(positions=positions, effort=effort, time_from_start=FOR_GOOD))
        self.topic.publish(JointTrajectory(joint_names=self._names, points=points))


ROUTES: dict[str, type[ForwardedEffort] | type[TrajectoryEffort]] = {
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
