"""Simulated arm as hardware of the real ros2_control, behind `joint_state_topic_hardware_interface`."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.shared.controllers import ControllerView
from dynid_ros.simulation import ArmHardware, CommandInterfaces, SimulatedArm

COMMANDS_TOPIC = "hardware/commands"
"""Topic of the commands, relative to the namespace of the controller manager."""
STATES_TOPIC = "hardware/joint_states"
MIN_POSITION_COMMANDS = 5
"""Number of commands after which a position, or its absence, is due to the controller that has become active; the
message about its activation takes another path."""
PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"


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
        self,
        node: Node,
        arm: SimulatedArm,
        refused: Callable[[str], None],
        position_topic: str,
        effort_topic: str,
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
    """Return the URDF with the `<ros2_control>` element that makes this arm the hardware of a controller manager.

    Raises:
        DynidError: the URDF has such an element already.
    """
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
