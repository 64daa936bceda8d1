"""The simulated arm as hardware of the real ros2_control, behind `joint_state_topic_hardware_interface`."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.shared.controller_watch import ACTIVE, INACTIVE, ControllerWatch
from dynid_ros.simulation import ArmHardware, CommandInterfaces, SimulatedArm

COMMANDS, STATES = "hardware/commands", "hardware/joint_states"
"""Relative, so that they are those of the controller manager's namespace."""
CLAIMED = 5
"""Commands after which a position is one of the controller that has become active: that it is comes another way."""
PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"


class HardwareTopics:
    """Does what `hardware/commands` says: positions by a servo, efforts beside it.

    As the interface publishes them (topic_based_hardware_interfaces 1.1.0, `write`): in each cycle the last value of
    every command interface, claimed or not; NaN where there was none yet. A joint without position command is held, one
    without effort has none. Without positions at all, that is where the URDF has no such interfaces, effort alone acts;
    so it does while the controller of efforts is active and that of positions is not, as far as that is known: a drive
    changes its mode then.

    Args:
        node: listens.
        arm: that is moved.
        refused: told why a command is not acted on.
        position_topic: of the controller that claims positions; its namespace is the controller's name.
        effort_topic: of the one that claims efforts.

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
        self._heard, self._claimed = False, CLAIMED
        self._position_controller, self._effort_controller = (
            ControllerWatch(node, topic.rpartition("/")[0], lambda _: None) for topic in (position_topic, effort_topic)
        )
        node.create_subscription(JointState, COMMANDS, self._on_commands, 10)

    @property
    def mode(self) -> str:
        """In words."""
        if not self._heard:
            return f"hardware of ros2_control, no command on {COMMANDS} yet"
        return f"hardware of ros2_control, {'effort alone' if self._hardware.effort_mode else 'position and effort'}"

    def update(self, period: float) -> None:
        """Command what is due in a cycle of `period` s."""
        self._hardware.write(period)

    def reset(self) -> None:
        """Hold the arm, which has been reset; commands that go on coming act again."""
        self._interfaces.forget()
        self._hardware.effort_mode = False

    def _on_commands(self, message: JointState) -> None:
        try:
            position = self._of(message, "position")
            effort = self._of(message, "effort")
        except DynidError as error:
            self._refused(f"hardware command refused: {error}")
            return
        self._heard = True
        let_go = self._position_controller.state == INACTIVE and self._effort_controller.state == ACTIVE
        self._claimed = 0 if let_go else self._claimed + 1
        self._hardware.effort_mode = effort is not None and (position is None or self._claimed < CLAIMED)
        nothing = np.full(len(self._names), np.nan)
        self._interfaces.position = nothing if position is None else position
        self._interfaces.effort = nothing if effort is None else effort

    def _of(self, message: JointState, field: str) -> NDArray | None:
        """(n,) in the arm's joint order; None: no joint has this interface."""
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
    """The URDF with the `<ros2_control>` element that makes this arm the hardware of a controller manager.

    Args:
        urdf: without such an element.
        robot: whose joints are commanded.
        interfaces: that the joints can be commanded by.

    Raises:
        DynidError: the URDF has one already.

    """
    root = ET.fromstring(urdf)
    if root.find("ros2_control") is not None:
        raise DynidError("the URDF has a <ros2_control> element already, which would be other hardware; take it out")
    system = ET.SubElement(root, "ros2_control", name="simulated_arm", type="system")
    hardware = ET.SubElement(system, "hardware")
    ET.SubElement(hardware, "plugin").text = PLUGIN
    for name, value in (
        ("joint_commands_topic", COMMANDS),
        ("joint_states_topic", STATES),
        ("trigger_joint_command_threshold", "-1"),  # each cycle; its default withholds small changes
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
