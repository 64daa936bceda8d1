"""Controllers of the simulated arm: those of ros2_controllers, simulated, or the real ones, with it as hardware."""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.shared.controllers import ControllerView
from dynid_ros.nodes.shared.process import answer
from dynid_ros.nodes.shared.robot_description import nanoseconds
from dynid_ros.nodes.simulated_arm.controller_node import (
    CHANGEABLE_SETTINGS,
    GOAL_PARAMETERS,
    ControllerNode,
    tolerance_values,
    trajectory_settings,
)
from dynid_ros.simulation import (
    ArmHardware,
    CommandInterfaces,
    ControlledArm,
    GoalTolerances,
    SimulatedArm,
    TrajectoryPoints,
)
from dynid_ros.simulation.controlled_arm import FORWARD, TRAJECTORY

COMMANDS_TOPIC = "hardware/commands"
"""Topic of the commands, relative to the namespace of the controller manager."""
STATES_TOPIC = "hardware/joint_states"
MIN_POSITION_COMMANDS = 5
"""Number of commands after which a position, or its absence, is due to the controller that has become active; the
message about its activation takes another path."""
PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"


def trajectory_points(message: JointTrajectory) -> TrajectoryPoints:
    """Return the points of a message; a derivative that no point has is None.

    Raises:
        TrajectoryError: a point lacks values; the message names the point.
    """
    values: list[Any] = []
    n = len(message.joint_names)
    for field in ("positions", "velocities", "accelerations", "effort"):
        rows = [getattr(point, field) for point in message.points]
        if field != "positions" and not any(map(len, rows)):
            values.append(None)
            continue
        for number, row in enumerate(rows, start=1):
            if len(row) != n:
                raise TrajectoryError(
                    f"point {number} of the trajectory has {len(row)} {field}; expected {n}, one per joint"
                )
        values.append(np.array(rows, dtype=float).reshape(len(rows), n))
    time = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points]
    return TrajectoryPoints(message.joint_names, time, *values)


class Controllers:
    """`joint_trajectory_controller`, and `forward_command_controller` unless trajectories have efforts.

    Parameters, lifecycle and action goals are those of ros2_controllers 4.42.1. A message on `~/goal` replaces an
    action goal. `~/effort_mode`, or `~/activate_trajectory_controller` and `~/activate_effort_controller`, switch
    controllers. `~/configure_trajectory_controller` loads an inactive one again.

    Args:
        refused: called with the reason when a command is refused.
        report: called with an event, for display.
        stamp: returns the stamp of the arm's present state, ns of the node's clock.
    """

    def __init__(
        self,
        node: Node,
        arm: SimulatedArm,
        settings: SimpleNamespace,
        *,
        refused: Callable[[str], None],
        report: Callable[[str], None],
        stamp: Callable[[], int],
    ) -> None:
        self._node = node
        self._settings = settings
        self._refused = refused
        self._stamp = stamp
        names = list(arm.robot.joint_names)
        joints = [name for name in settings.controller_joints if name] or names
        if sorted(joints) != sorted(names):
            raise DynidError(
                f"Parameter 'controller_joints' is {', '.join(joints)}; expected the joints {', '.join(names)} "
                "in any order"
            )
        self._joints = names
        has_effort = settings.controller == "trajectory_effort"
        values = {name: vars(settings)[name] for name in sorted(CHANGEABLE_SETTINGS)} | tolerance_values(
            vars(settings), names
        )
        fixed = {
            "command_interfaces": ("position", "effort") if has_effort else ("position",),
            "interpolate_from_desired_state": settings.interpolate_from_desired_state,
        }
        rate = {"update_rate": round(settings.rate), "is_async": False}
        lists = {"joints": joints, "command_joints": joints, "state_interfaces": ["position", "velocity"]}
        self._trajectory_node = ControllerNode(
            node,
            settings.trajectory_topic,
            lists | rate | fixed | values,
            changed=self._on_settings,
            changeable=frozenset(values),
            goals=True,
        )
        nodes = {TRAJECTORY: self._trajectory_node}
        if not has_effort:
            parameters = {"joints": joints, "interface_name": "effort"} | rate
            nodes[FORWARD] = ControllerNode(node, settings.effort_topic, parameters)
            node.create_subscription(Float64MultiArray, settings.effort_topic, self._on_effort, 10)
        self.controlled = ControlledArm(
            arm,
            trajectory_settings(fixed | values, names),
            sums=settings.controller != "effort",
            joints=joints,
            report=report,
            changed=lambda name, active: nodes[name].publish_active(active),
        )
        self._has_modes = settings.controller == "effort"
        node.create_subscription(JointTrajectory, settings.trajectory_topic, self._on_trajectory, 10)
        node.create_subscription(JointTrajectory, "~/goal", self._on_goal, 10)
        exchange = partial(self._exchange, True), partial(self._exchange, False)
        node.create_service(SetBool, "~/effort_mode", answer(node, *exchange))
        for service, name in (("trajectory", TRAJECTORY), ("effort", FORWARD)):
            switches = (partial(self.controlled.switch, name, active) for active in (True, False))
            node.create_service(SetBool, f"~/activate_{service}_controller", answer(node, *switches))
        node.create_service(Trigger, "~/configure_trajectory_controller", answer(node, self.configure))
        node.create_service(Trigger, "~/cancel_goal", answer(node, self.cancel))

    @property
    def mode(self) -> str:
        """Mode of the drives and state of the controllers, for display."""
        controlled = self.controlled
        there = (TRAJECTORY,) if controlled.forward is None else (TRAJECTORY, FORWARD)
        idle = [f"the {one} is inactive" for one in there if not controlled.active(one)]
        if self._has_modes:
            name = "effort mode" if controlled.hardware.effort_mode else "position mode"
            idle = ["both controllers are inactive"] if len(idle) == len(there) else []
        else:
            name = "trajectories with effort" if controlled.forward is None else "position and effort"
        aborts = controlled.trajectory.aborts
        return ", ".join([name, *idle, *([f"{aborts} aborted"] if aborts else [])])

    def update(self, period: float) -> None:
        """Apply the commands in a cycle of `period` s."""
        self.controlled.update(period)
        self._trajectory_node.publish_goals(self.controlled.trajectory.goals)

    def reset(self) -> None:
        """Forget all commands, after a reset of the arm."""
        self.controlled.reset()
        self._trajectory_node.publish_configured()
        self._trajectory_node.publish_active(self.controlled.active(TRAJECTORY))

    def configure(self) -> str:
        """Load the trajectory controller again, which must be inactive."""
        self.controlled.trajectory.configure()
        self._trajectory_node.publish_configured()
        return f"{TRAJECTORY} configured"

    def cancel(self) -> str:
        """Cancel the action goal."""
        self.controlled.trajectory.cancel(self.controlled.arm.position)
        return "no goal is executed"

    def _on_settings(self, values: Mapping[str, object]) -> None:
        self.controlled.trajectory.settings = trajectory_settings(values, self._joints)

    def _on_trajectory(self, message: JointTrajectory) -> None:
        try:
            self.controlled.trajectory.topic(trajectory_points(message), self._now, self._start(message))
        except DynidError as error:
            self._refused(f"trajectory refused: {error}")

    def _on_goal(self, message: JointTrajectory) -> None:
        tolerances = [getattr(self._settings, parameter.name) for parameter in GOAL_PARAMETERS]
        try:
            points = trajectory_points(message)
            self.controlled.trajectory.goal(points, self._now, self._start(message), GoalTolerances(*tolerances))
        except DynidError as error:
            self._refused(f"goal refused: {error}")

    @property
    def _now(self) -> float:
        return self.controlled.arm.time

    def _start(self, message: JointTrajectory) -> float | None:
        """Return the start of a trajectory by the arm's time, s; None to start at once."""
        stamp = nanoseconds(message.header)
        return self._now + (stamp - self._stamp()) * 1e-9 if stamp else None

    def _on_effort(self, message: Float64MultiArray) -> None:
        assert self.controlled.forward is not None
        try:
            self.controlled.forward.command(message.data)
        except DynidError as error:
            self._refused(f"effort command refused: {error}")

    def _exchange(self, to_effort: bool) -> str:
        """Activate one controller in place of the other, and return a description."""
        controlled = self.controlled
        if not self._has_modes and not to_effort:
            return f"{self.mode}: the servo is on"
        name = FORWARD if to_effort else TRAJECTORY
        if controlled.hardware.effort_mode == to_effort and controlled.active(name):
            return f"in {self.mode} already"
        before = controlled.interfaces.position
        controlled.exchange(name)
        if to_effort:
            kept = float(np.abs(controlled.torque()).max())
            what = f"the previous torque, up to {kept:.3g} N m," if kept else "no torque"
            return f"effort mode, {what} until the first command"
        restores = controlled.trajectory.settings.set_last_command_interface_value_as_state_on_activation
        if restores and np.isfinite(before).all():
            return "position mode, moving to the last commanded position"
        return "position mode, holding the measured position"


class HardwareTopics:
    """Receiver of `hardware/commands`: a servo moves to positions, and efforts are added.

    The interface publishes in each cycle the last value of every command interface, claimed or not, and NaN before the
    first value (topic_based_hardware_interfaces 1.1.0, `write`). A joint without position command is held; a joint
    without effort command has no effort. Effort acts alone in three cases: if the URDF has no position interfaces,
    while the controller of efforts is active and that of positions is not, and while the latter is active and has
    commanded no position (a trajectory controller on effort, by its PID). A real drive changes its mode then. The
    namespaces of the topics are the names of the controllers that claim positions and efforts.
    """

    def __init__(
        self, node: Node, arm: SimulatedArm, refused: Callable[[str], None], position_topic: str, effort_topic: str
    ) -> None:
        self._names = list(arm.robot.joint_names)
        self._interfaces = CommandInterfaces(len(self._names))
        self._hardware = ArmHardware(arm, self._interfaces, sums=True)
        self._refused = refused
        self._received = False
        self._claimed = MIN_POSITION_COMMANDS
        self._unwritten = 0
        self._position_controller = ControllerView(node, position_topic.rpartition("/")[0])
        self._effort_controller = ControllerView(node, effort_topic.rpartition("/")[0])
        node.create_subscription(JointState, COMMANDS_TOPIC, self._on_commands, 10)

    @property
    def mode(self) -> str:
        """Mode of the drives, for display."""
        if not self._received:
            return f"hardware of ros2_control, no command on {COMMANDS_TOPIC} yet"
        return f"hardware of ros2_control, {'effort alone' if self._hardware.effort_mode else 'position and effort'}"

    def update(self, period: float) -> None:
        """Apply the commands in a cycle of `period` s."""
        self._hardware.write(period)

    def reset(self) -> None:
        """Hold the arm, which has been reset, until the next command."""
        self._interfaces.forget()
        self._hardware.effort_mode = False
        self._unwritten = 0

    def _on_commands(self, message: JointState) -> None:
        try:
            position = self._values(message, "position")
            effort = self._values(message, "effort")
        except DynidError as error:
            self._refused(f"hardware command refused: {error}")
            return
        self._received = True
        released = self._position_controller.is_inactive and self._effort_controller.is_active
        self._claimed = 0 if released else self._claimed + 1
        if position is None or np.isfinite(position).any():
            self._unwritten = 0
        elif self._position_controller.is_active:
            self._unwritten += 1
        is_released = self._claimed < MIN_POSITION_COMMANDS or self._unwritten >= MIN_POSITION_COMMANDS
        self._hardware.effort_mode = effort is not None and (position is None or is_released)
        nothing = np.full(len(self._names), np.nan)
        self._interfaces.position = nothing if position is None else position
        self._interfaces.effort = nothing if effort is None else effort

    def _values(self, message: JointState, field: str) -> NDArray | None:
        """Return the values (n,) in the arm's joint order; None if no joint has this interface."""
        values = getattr(message, field)
        if not len(values):
            return None
        if sorted(message.name) != sorted(self._names) or len(values) != len(self._names):
            raise DynidError(
                f"{len(values)} values of {field} for {', '.join(message.name) or '(no joints)'}; expected one for "
                f"each of {', '.join(self._names)}: give all joints the same command interfaces"
            )
        return np.array([values[message.name.index(name)] for name in self._names], dtype=float)


def with_hardware(urdf: str, robot: RobotModel, interfaces: tuple[str, ...] = ("position", "effort")) -> str:
    """Return the URDF with the `<ros2_control>` element that makes this arm the hardware of a controller manager."""
    root = ET.fromstring(urdf)
    if root.find("ros2_control") is not None:
        raise DynidError("the URDF has a <ros2_control> element already, which would be other hardware; take it out")
    system = ET.SubElement(root, "ros2_control", name="simulated_arm", type="system")
    hardware = ET.SubElement(system, "hardware")
    ET.SubElement(hardware, "plugin").text = PLUGIN
    for name, value in (
        ("joint_commands_topic", COMMANDS_TOPIC),
        ("joint_states_topic", STATES_TOPIC),
        ("trigger_joint_command_threshold", "-1"),  # publish in each cycle; the default withholds small changes
    ):
        ET.SubElement(hardware, "param", name=name).text = value
    for name in robot.joint_names:
        joint = ET.SubElement(system, "joint", name=name)
        for interface in interfaces:
            command = ET.SubElement(joint, "command_interface", name=interface)
            if interface == "effort":
                ET.SubElement(command, "param", name="initial_value").text = "0.0"
        for interface in ("position", "velocity", "effort"):
            ET.SubElement(joint, "state_interface", name=interface)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")
