"""The demo arm for simulators of others is the arm of its URDF; their tags as their documents have them."""

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


def test_mujoco_has_the_arm_and_a_motor_for_each_joint(folder):
    model = mujoco.MjModel.from_xml_path(str(folder / "demo_arm.xml"))
    assert [model.actuator(i).name for i in range(model.nu)] == list(ROBOT.joint_names)
    data, q = mujoco.MjData(model), np.random.default_rng(0).uniform(-1.5, 1.5, ROBOT.n_joints)
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
def test_ros2_control_takes_torques_and_tells_states(folder, name, plugin):
    root = ET.parse(folder / name).getroot()
    system = root.find("ros2_control")
    assert system.findtext("hardware/plugin") == plugin
    assert [joint.get("name") for joint in system.findall("joint")] == list(ROBOT.joint_names)
    for joint in system.findall("joint"):
        assert [each.get("name") for each in joint.findall("command_interface")] == ["effort"]
        assert [each.get("name") for each in joint.findall("state_interface")] == ["position", "velocity", "effort"]
    same = RobotModel.from_urdf((folder / name).read_text(), base=ROBOT.base, tip=ROBOT.tip)
    np.testing.assert_array_equal(same.parameters, ROBOT.parameters)


def test_gazebo_has_the_whole_arm(folder):
    """libsdformat drops a link without mass and all that hangs on it by a joint that moves, but for the world."""
    root = ET.parse(folder / "demo_arm_gz.urdf").getroot()
    masses = {link.get("name"): link.find("inertial/mass") for link in root.findall("link")}
    moved = [joint for joint in root.findall("joint") if joint.get("type") != "fixed"]
    for joint in moved:
        for end in ("parent", "child"):
            assert float(masses[joint.find(end).get("link")].get("value")) > 0
    (foot,) = [joint for joint in root.findall("joint") if joint.find("parent").get("link") == "world"]
    assert foot.find("child").get("link") == ROBOT.base


def test_paths_are_of_files_that_are_there_and_controllers_command_what_is_offered(folder):
    root = ET.parse(folder / "demo_arm_gz.urdf").getroot()
    assert root.find("gazebo/plugin").get("name") == "gz_ros2_control::GazeboSimROS2ControlPlugin"
    (nodes,) = yaml.safe_load(Path(root.findtext("gazebo/plugin/parameters")).read_text()).values()
    controllers = {name: node["ros__parameters"] for name, node in nodes.items()}
    assert controllers["joint_trajectory_controller"]["command_interfaces"] == ["effort"]
    assert set(controllers["joint_trajectory_controller"]["gains"]) == set(ROBOT.joint_names)
    mujoco_system = ET.parse(folder / "demo_arm_mujoco.urdf").getroot().find("ros2_control/hardware")
    (model,) = [each.text for each in mujoco_system.findall("param") if each.get("name") == "mujoco_model"]
    assert Path(model).is_file()
