"""Test the demo arm's files for other simulators: dynamics of the URDF, and tags of their documentation."""

import runpy
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml

from dynid_ros.model import RobotModel
from dynid_ros.simulation import demo_arm_urdf

SCRIPT = Path(__file__).parents[2] / "examples" / "simulator_files.py"
ROBOT = RobotModel.from_urdf(demo_arm_urdf())


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulators")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [SCRIPT.name, str(folder)])
        runpy.run_path(str(SCRIPT))
    return folder


def test_mujoco_model_has_dynamics_and_motors_of_the_arm(folder):
    model = mujoco.MjModel.from_xml_path(str(folder / "demo_arm.xml"))
    assert [model.actuator(i).name for i in range(model.nu)] == list(ROBOT.joint_names)
    data = mujoco.MjData(model)
    q = np.random.default_rng(0).uniform(-1.5, 1.5, ROBOT.n_joints)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    still = np.zeros_like(q)
    np.testing.assert_allclose(data.qfrc_bias, ROBOT.inverse_dynamics(q, still, still), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("demo_arm_mujoco.urdf", "mujoco_ros2_control/MujocoSystemInterface"),
        ("demo_arm_gz.urdf", "gz_ros2_control/GazeboSimSystem"),
    ],
)
def test_ros2_control_has_effort_commands_and_joint_states(folder, name, plugin):
    root = ET.parse(folder / name).getroot()
    system = root.find("ros2_control")
    assert system.findtext("hardware/plugin") == plugin
    assert [joint.get("name") for joint in system.findall("joint")] == list(ROBOT.joint_names)
    for joint in system.findall("joint"):
        assert [interface.get("name") for interface in joint.findall("command_interface")] == ["effort"]
        states = [interface.get("name") for interface in joint.findall("state_interface")]
        assert states == ["position", "velocity", "effort"]
    robot = RobotModel.from_urdf((folder / name).read_text(), base=ROBOT.base, tip=ROBOT.tip)
    np.testing.assert_array_equal(robot.parameters, ROBOT.parameters)


def test_gazebo_model_keeps_all_links(folder):
    """libsdformat drops links without mass, except the world, and all links that moving joints attach to them."""
    root = ET.parse(folder / "demo_arm_gz.urdf").getroot()
    masses = {link.get("name"): link.find("inertial/mass") for link in root.findall("link")}
    for joint in [joint for joint in root.findall("joint") if joint.get("type") != "fixed"]:
        for end in ("parent", "child"):
            assert float(masses[joint.find(end).get("link")].get("value")) > 0
    (foot,) = [joint for joint in root.findall("joint") if joint.find("parent").get("link") == "world"]
    assert foot.find("child").get("link") == ROBOT.base


def test_controllers_and_files_of_the_simulators_match(folder):
    root = ET.parse(folder / "demo_arm_gz.urdf").getroot()
    assert root.find("gazebo/plugin").get("name") == "gz_ros2_control::GazeboSimROS2ControlPlugin"
    (nodes,) = yaml.safe_load(Path(root.findtext("gazebo/plugin/parameters")).read_text()).values()
    controllers = {name: node["ros__parameters"] for name, node in nodes.items()}
    assert controllers["joint_trajectory_controller"]["command_interfaces"] == ["effort"]
    assert set(controllers["joint_trajectory_controller"]["gains"]) == set(ROBOT.joint_names)
    mujoco_system = ET.parse(folder / "demo_arm_mujoco.urdf").getroot().find("ros2_control/hardware")
    (model,) = [param.text for param in mujoco_system.findall("param") if param.get("name") == "mujoco_model"]
    assert Path(model).is_file()
