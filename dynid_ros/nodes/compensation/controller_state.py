"""Controllers that receive a feed-forward torque: routes to ros2_controllers, and the states that they publish.

`joint_trajectory_controller` publishes reference and output in each of its cycles on `<controller>/controller_state`
(ros2_controllers 4.42.1, joint_trajectory_controller.cpp, `publish_state`), which needs `control_msgs`.
"""

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.control import JointSettings
from dynid_ros.control.added_torques import PlannedMotion
from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.controllers import ControllerAnswer, message_type
from dynid_ros.nodes.shared.robot_description import nanoseconds
from dynid_ros.nodes.shared.topics import CommandTopic

NEWEST_ONLY = QoSProfile(depth=1)
MAX_COMMAND_DELAY_S = 0.1
"""Longest delay of a command, s; the output must lie between the commands of this last time."""
MIN_DEVIATION_S = 0.1
"""Duration of a deviation before it is reported, s."""
MAX_DEVIATION_FRACTION = 0.05
"""Largest tolerated deviation of the output, as a fraction of a joint's torque limit."""
MIN_DEVIATING_SAMPLES = 3
"""Number of deviating samples before a deviation is reported; two may both be late."""
MAX_REPORT_AGE_S = 0.5
"""Largest age of a report of the output, s; an active controller publishes one in each of its periods."""
HOLD_DURATION = Duration(seconds=1e6).to_msg()
"""Time from start of a second trajectory point that keeps the pose: 1e6 s, eleven days."""


class EffortCommands(ABC):
    """Publisher of torques to a controller.

    Args:
        joints: n names, in the model's order.
        controller_joints: joints of the controller, in its order; empty: those of the model, in its order.

    Attributes:
        order: index into `joints` of each of the controller's joints.
        topic: topic of the commands, published to only while the arm is compensated.
    """

    CONTROLLER: str
    """Usual name of the controller."""
    TOPIC: str
    """Name of the topic below the controller's name."""
    MESSAGE: type
    """Type of the commands."""

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
        effort = [torque[i] for i in self.order]
        positions = [desired[i] for i in self.order]
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
    controller meanwhile. Where the arm sags below the reference of its position controller, it sags by the same angle
    below the measured pose, until the ramp lifts it.

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
                "aborts when the arm is pushed off its path, and takes no effort from then on; set its parameters "
                "constraints.<joint>.trajectory to 0.0"
            )
        if set(answer.interfaces) in ({"position", "effort"}, {"effort"}):
            return ""
        return f"commands {answer.commands}; expected position and effort (joint_trajectory_controller 4.22 or newer)"

    def _message(self, effort: list[float], positions: list[float]) -> JointTrajectory:
        """Return a command; a command without torque, such as the last one, keeps the pose with a second point.

        With one point the controller would switch after its `cmd_timeout` to the measured pose, to which the arm has
        sagged, and its command would jump.
        """
        points = [JointTrajectoryPoint(positions=positions, effort=effort)]
        if not any(effort):
            points.append(JointTrajectoryPoint(positions=positions, effort=effort, time_from_start=HOLD_DURATION))
        return JointTrajectory(joint_names=[self._joints[i] for i in self.order], points=points)


class ForwardedPosition(EffortCommands):
    """`std_msgs/Float64MultiArray` for `forward_command_controller` on the position interface of servos.

    The positions are set-points with the offsets that carry gravity, see `ServoOffset`. The controller keeps the last
    set-point forever: after SIGKILL the arm stays where it is.
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


class ControllerPlan:
    """Input of the planned motion from the reference of a position controller.

    The topic is subscribed to only while the torque of the motion is added. If the desired pose of this node moves the
    arm, that pose is the plan, and the controller is not followed.

    Args:
        controller: name of the position controller; empty: there is none.
        plan: receives the reference.
    """

    def __init__(self, node: Node, controller: str, plan: PlannedMotion) -> None:
        self._node = node
        self._topic = f"{controller}/controller_state" if controller else ""
        self._plan = plan
        self._subscription: Any = None

    def use(self, joints: JointSettings, *, follows_setpoint: bool) -> None:
        """Subscribe to the controller's reference, or unsubscribe.

        Args:
            joints: settings, whose `planned_scale` is zero if no motion is added.
            follows_setpoint: whether the desired pose of this node moves the arm.

        Raises:
            ControlError: there is no source of a plan.
        """
        is_needed = any(joints.planned_scale) and not follows_setpoint
        if is_needed and self._subscription is None:
            self._subscribe()
        elif not is_needed:
            self.destroy()
        self._plan.is_setpoint = follows_setpoint

    def on_state(self, message: Any) -> None:
        """Process a message `control_msgs/JointTrajectoryControllerState`."""
        names = list(message.joint_names)
        reference = message.reference
        motion: dict[str, list[float]] = {}
        for field in ("positions", "velocities", "accelerations"):
            values = list(getattr(reference, field))
            by_name = dict(zip(names, values, strict=False)) if len(values) == len(names) else {}
            missing = [name for name in self._plan.joints.names if name not in by_name]
            if missing and field != "accelerations":
                self._plan.refuse(f"{self._topic} has no {field} of {', '.join(missing)} in its reference")
                return
            if not missing:
                motion[field] = [by_name[name] for name in self._plan.joints.names]
        stamp = 1e-9 * nanoseconds(message.header) or None
        acceleration = motion.get("accelerations")
        self._plan.report(time.monotonic(), motion["positions"], motion["velocities"], acceleration, stamp)

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
        self._subscription = None

    def _subscribe(self) -> None:
        kind = message_type("control_msgs", "JointTrajectoryControllerState")
        if not self._topic:
            raise ControlError("motion_scale needs a plan: set position_controller, or stiffness for set-points")
        if kind is None:
            raise ControlError(
                "motion_scale follows the controller_state of the position controller, for which control_msgs is not "
                "installed; install ros-$ROS_DISTRO-control-msgs, or set motion_scale to 0"
            )
        self._subscription = self._node.create_subscription(kind, self._topic, self.on_state, NEWEST_ONLY)


class OutputWatch:
    """Comparison of the commands and the reported outputs of one controller, each (n,), N m (N)."""

    def __init__(self, names: Sequence[str], limits: Sequence[float]) -> None:
        self._names = list(names)
        self._allowed = [MAX_DEVIATION_FRACTION * limit for limit in limits]
        self._sent: deque[tuple[float, list[float]]] = deque()
        self._deviation: tuple[float, int] | None = None  # time of the first deviating sample, and their number

    def sent(self, time: float, torque: Sequence[float]) -> None:
        """Record a command."""
        self._sent.append((time, list(torque)))
        self._forget(time)

    def clear(self) -> None:
        """Forget all commands."""
        self._sent.clear()
        self._deviation = None

    def seen(self, time: float, output: Sequence[float]) -> str:
        """Compare an output with the commands; return a message after a persistent deviation, otherwise empty."""
        self._forget(time)
        problem = self._difference(output) if self._sent else ""
        if not problem:
            self._deviation = None
            return ""
        since, count = self._deviation or (time, 0)
        self._deviation = since, count + 1
        return problem if time - since >= MIN_DEVIATION_S and count + 1 >= MIN_DEVIATING_SAMPLES else ""

    def _forget(self, time: float) -> None:
        """Drop commands older than the delay, except the one in force at its beginning."""
        while len(self._sent) > 1 and self._sent[1][0] <= time - MAX_COMMAND_DELAY_S:
            self._sent.popleft()

    def _difference(self, output: Sequence[float]) -> str:
        """Return how an output differs from all commands within the delay; empty if it lies between them."""
        if len(output) != len(self._names):
            return f"it has {len(output)} efforts for {len(self._names)} joints"
        commands = [torque for _, torque in self._sent]
        for i, (name, value, allowed) in enumerate(zip(self._names, output, self._allowed, strict=True)):
            column = [torque[i] for torque in commands]
            if not min(column) - allowed <= value <= max(column) + allowed:
                return f"joint '{name}' gets {value:.3g} N m (N), not the {column[-1]:.3g} that were sent"
        return ""


class ControllerOutput:
    """Torques and positions that a controller of the joints `controlled` writes, as its state topic reports them.

    Attributes:
        problem: message that the output differs from the commands; empty if it agrees or is unknown.
    """

    def __init__(self, node: Node, controller: str, joints: JointSettings, controlled: Sequence[str]) -> None:
        self.problem = ""
        self._node = node
        self._joints = list(joints.names)
        self._index = [self._joints.index(name) for name in controlled]
        self._watch = OutputWatch(controlled, [joints.torque[i] for i in self._index])
        self._received = -math.inf
        self._effort: list[float] | None = None
        self._positions: list[float] | None = None
        kind = message_type("control_msgs", "JointTrajectoryControllerState")
        topic = f"{controller}/controller_state"
        self._subscription = None if kind is None else node.create_subscription(kind, topic, self.on_state, NEWEST_ONLY)

    def on_state(self, message: Any) -> None:
        """Process a message `control_msgs/JointTrajectoryControllerState`."""
        now = time.monotonic()
        self._received = now
        names = list(message.joint_names)
        output = message.output
        self._effort = self._picked(names, output.effort)
        self._positions = self._picked(names, output.positions)
        if self._effort is not None:
            self.problem = self._watch.seen(now, [self._effort[i] for i in self._index])

    def sent(self, now: float, torque: Sequence[float]) -> None:
        """Record a command."""
        self._watch.sent(now, [torque[i] for i in self._index])

    def rest(self) -> None:
        """Forget the commands, because no command is sent any longer."""
        self.problem = ""
        self._watch.clear()

    def effort(self, now: float) -> list[float] | None:
        """Return the torques (n,) that the controller applies, N m (N); None if unknown."""
        return self._effort if now - self._received < MAX_REPORT_AGE_S and finite(self._effort) else None

    def positions(self, now: float) -> list[float] | None:
        """Return the positions (n,) that the controller commands, rad (m); None if unknown."""
        return self._positions if now - self._received < MAX_REPORT_AGE_S and finite(self._positions) else None

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _picked(self, names: list[str], values: Sequence[float]) -> list[float] | None:
        """Return values in the model's joint order, zero for joints that the controller lacks; None without values."""
        if len(values) != len(names):
            return None
        by_name = dict(zip(names, values, strict=True))
        return [by_name.get(name, 0.0) for name in self._joints]


def finite(values: Sequence[float] | None) -> bool:
    """Return whether values exist and all of them are finite."""
    return values is not None and all(map(math.isfinite, values))
