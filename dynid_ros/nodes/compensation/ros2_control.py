"""Routes of a feed-forward torque to ros2_controllers, and the controllers that accept it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.controllers import ControllerAnswer
from dynid_ros.nodes.shared.topics import CommandTopic

NEWEST_ONLY = QoSProfile(depth=1)
HOLD_DURATION = Duration(seconds=1e6).to_msg()
"""Time from start of a second trajectory point that keeps the pose: 1e6 s, eleven days."""


class EffortCommands(ABC):
    """Publisher of torques to a controller.

    Args:
        node: node that publishes.
        topic: name of the topic.
        joints: n names, in the model's order.
        controller_joints: joints of the controller, in its order; empty for the model's.

    Attributes:
        topic: topic of the commands.
        order: index into `joints` of each of the controller's joints.
    """

    CONTROLLER: str
    """Usual name of the controller."""
    TOPIC: str
    """Name of the topic below the controller's name."""
    MESSAGE: type

    def __init__(self, node: Node, topic: str, joints: Sequence[str], controller_joints: Sequence[str]) -> None:
        self._joints = list(joints)
        self.use_order(controller_joints)
        self.topic = CommandTopic(node, self.MESSAGE, topic, NEWEST_ONLY, watched=True)

    def use_order(self, controller_joints: Sequence[str]) -> None:
        """Send the torques in the order of these joints from now on."""
        names = list(controller_joints) or self._joints
        unknown = [name for name in names if name not in self._joints]
        if unknown:
            raise ControlError(
                f"controller_joints: the model has no joint {', '.join(unknown)}; its joints are "
                f"{', '.join(self._joints)}. Use a controller of these joints alone"
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ControlError(f"controller_joints names {', '.join(twice)} more than once")
        self.order = [self._joints.index(name) for name in names]

    @staticmethod
    @abstractmethod
    def refusal(answer: ControllerAnswer) -> str:
        """Return why a controller cannot take the torque; empty if it can."""

    def publish(self, torque: Sequence[float], desired: Sequence[float]) -> None:
        """Send torques, N m (N), at the desired positions, rad (m), each (n,)."""
        effort, positions = ([values[i] for i in self.order] for values in (torque, desired))
        self.topic.publish(self._message(effort, positions))

    @abstractmethod
    def _message(self, effort: list[float], positions: list[float]) -> Any:
        """Return the command in the controller's joint order."""


class ForwardedEffort(EffortCommands):
    """`std_msgs/Float64MultiArray` for `forward_command_controller` on the effort interface.

    That controller keeps the last command forever. It cannot distinguish a killed process (SIGKILL, power) from a
    silent one, so the hardware must have a command timeout or brakes. This route commands no position.
    """

    CONTROLLER = "forward_effort_controller"
    TOPIC = "commands"
    MESSAGE = Float64MultiArray

    @staticmethod
    def refusal(answer: ControllerAnswer) -> str:
        """Return why a controller cannot take the torque; empty if it can."""
        if answer.follows_trajectories:
            return "follows trajectories; set output to trajectory"
        if answer.interfaces == ("effort",):
            return ""
        return f"commands {answer.commands}; expected effort"

    def _message(self, effort: list[float], _positions: list[float]) -> Float64MultiArray:
        return Float64MultiArray(data=effort)


class TrajectoryEffort(EffortCommands):
    """`points[0].effort` of a one-point `trajectory_msgs/JointTrajectory` that takes effect at once.

    It requires `joint_trajectory_controller` 4.22 or newer with the command interfaces position and effort, on hardware
    that sums them, or with effort alone, to which the controller adds its PID. The positions of the point are the
    desired pose: the measured pose at `enable`, until a set-point changes it. Other motions must not be sent to the
    controller meanwhile. An arm that sags under its position controller sags by the same angle again before the ramp
    has lifted it.

    After an abort the effort falls to zero at once, or stays at the last effort of an earlier action goal. The
    controller also does not notice a killed publisher. This route must therefore never be the only support of the arm.
    """

    CONTROLLER = "joint_trajectory_controller"
    TOPIC = "joint_trajectory"
    MESSAGE = JointTrajectory

    def __init__(self, node: Node, topic: str, joints: Sequence[str], controller_joints: Sequence[str]) -> None:
        super().__init__(node, topic, joints, controller_joints)
        node.get_logger().warning(
            "Output trajectory must not be the only thing that holds the arm: joint_trajectory_controller drops the "
            "effort, or keeps a stale one, when it aborts a trajectory."
        )

    @staticmethod
    def refusal(answer: ControllerAnswer) -> str:
        """Return why a controller cannot take the torque; empty if it can."""
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

    def _message(self, effort: list[float], positions: list[float]) -> JointTrajectory:
        """Return a command; without torque, such as the last one, it keeps the pose with a second point.

        Otherwise `cmd_timeout` would make the controller hold the measured pose, to which the arm has sagged, with a
        jump of its command.
        """
        points = [JointTrajectoryPoint(positions=positions, effort=effort)]
        if not any(effort):
            points.append(JointTrajectoryPoint(positions=positions, effort=effort, time_from_start=HOLD_DURATION))
        return JointTrajectory(joint_names=[self._joints[i] for i in self.order], points=points)


class ForwardedPosition(EffortCommands):
    """`std_msgs/Float64MultiArray` for `forward_command_controller` on the position interface of servos.

    The positions are set-points with the offsets that carry gravity, see `ServoOffset`. The controller keeps the last
    one forever: after SIGKILL the arm stays where it is.
    """

    CONTROLLER = "forward_position_controller"
    TOPIC = "commands"
    MESSAGE = Float64MultiArray

    @staticmethod
    def refusal(answer: ControllerAnswer) -> str:
        """Return why a controller cannot take the set-points; empty if it can."""
        if answer.interfaces == ("position",) and not answer.follows_trajectories:
            return ""
        return f"commands {answer.commands}; expected a forward_command_controller on position"

    def _message(self, _effort: list[float], positions: list[float]) -> Float64MultiArray:
        return Float64MultiArray(data=positions)


ROUTES: dict[str, type[EffortCommands]] = {
    "effort": ForwardedEffort,
    "trajectory": TrajectoryEffort,
    "position": ForwardedPosition,
}
