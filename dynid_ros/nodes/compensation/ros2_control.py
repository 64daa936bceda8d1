"""Routes of a feed-forward torque to ros2_controllers, and the controllers that accept it."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Protocol

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.control.acting_torque import acting_scale
from dynid_ros.control.model_change import MeasuredEffort
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.compensation.output_watch import ControllerOutput
from dynid_ros.nodes.shared.command_topic import CommandTopic
from dynid_ros.nodes.shared.controllers import ControllerAnswer, ControllerView

FULL_GRAVITY_SCALE = 0.98
"""Fraction of the gravity torque that is reported as the whole gravity torque."""


class ActingTorque:
    """Torque that a controller applies because of an earlier command, perhaps of a process that was killed.

    `forward_command_controller` writes nothing when it is activated or deactivated: its effort interface keeps the last
    torque. `joint_trajectory_controller` writes zero when it is deactivated, and begins with the effort of its hold
    message, which is zero except after action goals (ros2_controllers 4.42.1, forward_controllers_base.cpp and
    joint_trajectory_controller.cpp, `on_activate`, `on_deactivate`).

    Args:
        settings: `output`, `controller`, `effort_convention` and `assume_no_effort`.
        view: view of the controller.
        position: view of a parallel position controller that may hold the arm.
        output: reported output of the controller; None without a report.
        joints: n names, in the model's order.
    """

    def __init__(
        self,
        settings: SimpleNamespace,
        view: ControllerView,
        position: ControllerView,
        output: ControllerOutput | None,
        joints: Sequence[str],
    ) -> None:
        self._settings = settings
        self._view = view
        self._position = position
        self._output = output
        self._joints = tuple(joints)
        self._sent: tuple[float, bool] | None = None  # time of the last command, and whether it was zero

    def sent(self, now: float, torque: Sequence[float]) -> None:
        """Record a command."""
        self._sent = now, not any(torque)

    def start(
        self, now: float, gravity: Sequence[float], measured: Callable[[], MeasuredEffort]
    ) -> tuple[list[float] | None, str]:
        """Determine the torque at which a ramp begins.

        Args:
            now: s of the steady clock.
            gravity: (n,) gravity torque of the model in this pose, N m (N).
            measured: returns the efforts of the newest joint state, and may raise `DynidError`.

        Returns:
            Torque (n,), N m (N), None for zero; and a description of that torque.

        Raises:
            ControlError: the controller may apply an unknown torque.
        """
        if self._output is not None and (effort := self._output.effort(now)) is not None:
            return effort, "from the torque that the controller reports"
        if self._is_zero():
            return None, "from zero, as the controller holds no torque"
        if self._settings.assume_no_effort:
            return None, "from zero, as assume_no_effort says that nothing acts"
        if not self.is_measured:
            if self._settings.output == "trajectory" and not self._view.is_active:
                return None, "from zero, though it is not known what the controller holds"
            raise ControlError(self._refusal())
        try:
            held = measured()
        except DynidError as error:
            raise ControlError(
                f"cannot enable: {error}. It would say which torque acts now; without it set assume_no_effort to true, "
                "where that is sure to be none"
            ) from error
        scale = acting_scale(self._joints, gravity, held.effort, held.error)
        if scale == 0.0:
            return None, "from zero, as no torque is measured"
        part = "the gravity torque" if scale > FULL_GRAVITY_SCALE else f"{scale:.0%} of the gravity torque"
        return [scale * value for value in gravity], f"from {part}, with which measured effort agrees"

    @property
    def is_measured(self) -> bool:
        """Whether the effort in joint_states is the torque of this controller alone."""
        is_alone = self._settings.output == "effort" and not self._position.is_active
        return self._settings.effort_convention == "torque" and is_alone

    def _is_zero(self) -> bool:
        """Return whether the controller certainly applies no torque."""
        if self._view.is_inactive:
            return True
        since = self._view.transitioned
        if self._sent is not None and self._sent[1] and (since is None or since < self._sent[0]):
            return True  # the last command was zero, and the controller was active then
        activated = self._view.activated
        return (
            self._settings.output == "trajectory"
            and activated is not None
            and (self._sent is None or self._sent[0] < activated)
        )

    def _refusal(self) -> str:
        name = self._view.name
        state = "is active" if self._view.is_active else "may be active"
        unknown = (
            f"cannot enable: controller '{name}' {state}, and it is not known which torque it holds, as of a process "
            "that was killed; "
        )
        if self._settings.output == "trajectory":
            return (
                f"{unknown}deactivate and activate it (ros2 control switch_controllers --deactivate {name}, then "
                f"--activate {name}), after which it holds none, or install control_msgs, by which it reports it"
            )
        return (
            f"{unknown}set effort_convention to torque, where joint_states report torque, or assume_no_effort to true, "
            f"where {name or 'the controller'} has held none since the hardware was started"
        )


NEWEST_ONLY = QoSProfile(depth=1)
HOLD_DURATION = Duration(seconds=1e6).to_msg()
"""Time from start of a second trajectory point that keeps the pose: 1e6 s, eleven days."""


class EffortCommands(Protocol):
    """Publisher of torques in the model's joint order."""

    topic: CommandTopic
    order: list[int]

    def use_order(self, controller_joints: Sequence[str]) -> None:
        """Send the torques in the order of these joints from now on; raises as `command_order` does."""

    def publish(self, torque: Sequence[float], desired: Sequence[float]) -> None:
        """Send torques, N m (N), at the desired positions, rad (m)."""


class ForwardedEffort:
    """`std_msgs/Float64MultiArray` for `forward_command_controller` on the effort interface.

    That controller keeps the last command forever. It cannot distinguish a killed process (SIGKILL, power) from a
    silent one, so the hardware must have a command timeout or brakes.
    """

    CONTROLLER = "forward_effort_controller"
    TOPIC = "commands"

    def __init__(self, node: Node, topic: str, joints: Sequence[str], controller_joints: Sequence[str]) -> None:
        self._joints = list(joints)
        self.order = command_order(joints, controller_joints)
        self.topic = CommandTopic(node, Float64MultiArray, topic, NEWEST_ONLY, watched=True)

    def use_order(self, controller_joints: Sequence[str]) -> None:
        """Send the torques in the order of these joints from now on; raises as `command_order` does."""
        self.order = command_order(self._joints, controller_joints)

    @staticmethod
    def refusal(answer: ControllerAnswer) -> str:
        """Return why a controller cannot take the torque; empty if it can."""
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

    def __init__(self, node: Node, topic: str, joints: Sequence[str], controller_joints: Sequence[str]) -> None:
        self._joints = list(joints)
        self.order = command_order(joints, controller_joints)
        self._names = [joints[i] for i in self.order]
        self.topic = CommandTopic(node, JointTrajectory, topic, NEWEST_ONLY, watched=True)
        node.get_logger().warning(
            "output trajectory must not be the only thing that holds the arm: joint_trajectory_controller drops the "
            "effort, or keeps a stale one, when it aborts a trajectory"
        )

    def use_order(self, controller_joints: Sequence[str]) -> None:
        """Send the torques in the order of these joints from now on; raises as `command_order` does."""
        self.order = command_order(self._joints, controller_joints)
        self._names = [self._joints[i] for i in self.order]

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

    def publish(self, torque: Sequence[float], desired: Sequence[float]) -> None:
        """Send torques, N m (N), at the desired positions, rad (m).

        A command without torque, such as the last one, keeps the pose with a second point. Otherwise `cmd_timeout`
        would make the controller hold the measured pose, to which the arm has sagged, with a jump of its command.
        """
        positions, effort = ([values[i] for i in self.order] for values in (desired, torque))
        points = [JointTrajectoryPoint(positions=positions, effort=effort)]
        if not any(torque):
            points.append(JointTrajectoryPoint(positions=positions, effort=effort, time_from_start=HOLD_DURATION))
        self.topic.publish(JointTrajectory(joint_names=self._names, points=points))


ROUTES: dict[str, type[ForwardedEffort] | type[TrajectoryEffort]] = {
    "effort": ForwardedEffort,
    "trajectory": TrajectoryEffort,
}


def command_order(joints: Sequence[str], controller_joints: Sequence[str]) -> list[int]:
    """Return the index into `joints` of each of the controller's joints; without any, of the model's joints.

    Raises:
        ControlError: the controller has a joint that the model lacks, or names a joint twice.
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
