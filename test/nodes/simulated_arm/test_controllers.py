"""Test the simulated arm as hardware of ros2_control, including NaN commands and empty fields."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from helpers.simulator_bench import SimulatorBench
from helpers.waiting import wait
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.simulated_arm.controller_node import ControllerNode
from dynid_ros.nodes.simulated_arm.controllers import with_hardware
from dynid_ros.simulation import demo_arm_urdf

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
CONTROLLER = "forward_effort_controller"
START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])


class Bench(SimulatorBench):
    """Simulator in a namespace, and a node that takes the place of the controller manager."""

    def __init__(self):
        parameters = {"controller": "ros2_control", "start_position": START.tolist(), "rate": 100.0}
        super().__init__(lambda: Node("manager"), "-r", "__ns:=/left", **parameters)
        manager = self.client
        self.names = list(self.node.arm.robot.joint_names)
        self.states = []
        self.descriptions = []
        manager.create_subscription(JointState, "hardware/joint_states", self.states.append, qos_profile_sensor_data)
        manager.create_subscription(String, "robot_description", self.descriptions.append, LATCHED)
        self.commands = manager.create_publisher(JointState, "hardware/commands", 1)
        wait(self.commands.get_subscription_count)
        wait(lambda: self.states and self.descriptions)

    def send(self, position=None, effort=None, names=None):
        """Send commands in the order of `names`; each value is a number for all joints or a list."""
        names = names or self.names

        def values(value):
            return [] if value is None else (np.zeros(len(names)) + value).tolist()

        self.commands.publish(JointState(name=names, position=values(position), effort=values(effort)))

    @property
    def position(self):
        return np.array(self.states[-1].position)


@pytest.fixture(name="bench")
def fixture_bench(keep):
    return keep(Bench())


def test_description_declares_ros2_control_hardware(bench):
    robot = RobotModel.from_urdf(bench.descriptions[0].data)
    assert robot.joint_names == bench.node.arm.robot.joint_names
    system = ET.fromstring(bench.descriptions[0].data).find("ros2_control")
    parameters = {parameter.get("name"): parameter.text for parameter in system.findall("hardware/param")}
    assert parameters == {
        "joint_commands_topic": "hardware/commands",
        "joint_states_topic": "hardware/joint_states",
        "trigger_joint_command_threshold": "-1",
    }
    assert [joint.get("name") for joint in system.findall("joint")] == bench.names
    for joint in system.findall("joint"):
        assert [interface.get("name") for interface in joint.findall("command_interface")] == ["position", "effort"]
        assert [interface.get("name") for interface in joint.findall("state_interface")] == [
            "position",
            "velocity",
            "effort",
        ]


def test_arm_holds_without_commands_and_with_nan(bench):
    assert "no command on hardware/commands yet" in bench.node.status()[1]
    wait(lambda: np.abs(bench.position - START).max() > 4e-3)  # the servo sags without a gravity model
    bench.send(np.nan, np.nan)
    wait(lambda: bench.node.status()[1] == "hardware of ros2_control, position and effort")
    bench.states.clear()
    wait(lambda: len(bench.states) > 50)
    assert np.abs(bench.position - START).max() < 0.05


def test_commands_are_assigned_by_joint_name(bench):
    goal = START + np.array([0.1, 0.0, 0.0, 0.2, 0.0, 0.0])
    weight = bench.node.arm.truth.gravity_torque(goal)[0]
    bench.send(goal[::-1], weight[::-1], bench.names[::-1])
    wait(lambda: np.abs(bench.position - goal).max() < 2.5e-3)
    bench.send(goal, np.nan)
    wait(lambda: np.abs(bench.position - goal).max() > 4e-3)


def test_effort_without_position_command_moves_the_arm(bench):
    bench.send(effort=0.0)
    wait(lambda: bench.node.status()[1] == "hardware of ros2_control, effort alone")
    wait(lambda: bench.position[1] > START[1] + 0.1)
    bench.send(START, 0.0)
    wait(lambda: np.abs(bench.position - START).max() < 0.05)


def test_effort_acts_alone_without_an_active_position_controller(bench):
    manager = bench.client
    position, effort = (
        ControllerNode(manager, f"{name}/commands", {}) for name in ("joint_trajectory_controller", CONTROLLER)
    )
    wait(lambda: manager.count_subscribers(f"/left/{CONTROLLER}/transition_event"))
    bench.send(START, 0.0)
    effort.publish_active(True)
    bench.send(START, 0.0)
    wait(lambda: bench.node.status()[1] == "hardware of ros2_control, position and effort")
    position.publish_active(False)

    def floats():
        bench.send(START, 0.0)
        return bench.node.status()[1] == "hardware of ros2_control, effort alone"

    wait(floats)
    wait(lambda: bench.position[1] > START[1] + 0.1)


def test_effort_only_trajectory_controller_moves_the_arm(bench):
    controller = ControllerNode(bench.client, "joint_trajectory_controller/commands", {})
    wait(lambda: bench.client.count_subscribers("/left/joint_trajectory_controller/transition_event"))
    for _ in range(10):
        bench.send(np.nan, 0.0)
    wait(lambda: bench.node.status()[1] == "hardware of ros2_control, position and effort")
    controller.publish_active(True)

    def moves_freely():
        bench.send(np.nan, 0.0)
        return bench.node.status()[1] == "hardware of ros2_control, effort alone"

    wait(moves_freely)
    wait(lambda: bench.position[1] > START[1] + 0.1)
    controller.publish_active(False)  # without claimed positions, efforts keep acting and no servo takes over
    bench.send(np.nan, 0.0)
    fallen = bench.position[1]
    wait(lambda: bench.position[1] > fallen + 0.05)
    bench.send(START, 0.0)  # from a controller with position commands
    wait(lambda: np.abs(bench.position - START).max() < 0.05)


def test_arrays_shorter_than_the_names_are_refused(bench):
    bench.commands.publish(JointState(name=bench.names, position=START[:5].tolist()))
    statuses = []

    def is_refused():
        statuses.append(bench.node.status())
        return "give all joints the same command interfaces" in statuses[-1][1]

    wait(is_refused)
    assert int(statuses[-1][2]["refused_commands"]) == 1


def test_second_ros2_control_element_is_refused():
    text = demo_arm_urdf()
    robot = RobotModel.from_urdf(text)
    with pytest.raises(DynidError, match="has a <ros2_control> element already"):
        with_hardware(with_hardware(text, robot), robot)
