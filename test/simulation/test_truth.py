"""Compare the true parameters and gravity moments with the XML, Pinocchio and closed forms."""

import time
from xml.etree import ElementTree

import numpy as np
import pendulum
import pytest
from pinocchio_arm import example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.simulation import Drives, SimulatedArm, demo_arm_urdf


def read_inertial(root, link):
    """Return mass, center of mass and central inertia tensor from the XML."""
    element = root.find(f"link[@name='{link}']/inertial")
    number = {key: float(value) for key, value in element.find("inertia").attrib.items()}
    tensor = np.array([[number["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
    return float(element.find("mass").get("value")), np.array(element.find("origin").get("xyz").split(), float), tensor


def shift_to_origin(mass, center, tensor):
    """Return the inertia tensor about the frame's origin by the parallel axis theorem."""
    return tensor + mass * (center @ center * np.eye(3) - np.outer(center, center))


def test_link_parameters_match_the_xml(demo_robot):
    root = ElementTree.fromstring(demo_arm_urdf())
    parameters = SimulatedArm(demo_robot).truth.parameters.reshape(6, 10)
    for number in range(1, 6):
        mass, center, tensor = read_inertial(root, f"link_{number}")
        expected = [mass, *(mass * center), *shift_to_origin(mass, center, tensor)[np.triu_indices(3)]]
        assert parameters[number - 1] == pytest.approx(expected, abs=1e-9)


def test_last_link_includes_the_tool(demo_robot):
    """The tool is turned by 0.3 rad about z and shifted by 0.04 m."""
    root = ElementTree.fromstring(demo_arm_urdf())
    mass, center, tensor = read_inertial(root, "link_6")
    tool_mass, tool_center, tool_tensor = read_inertial(root, "tool")
    c = np.cos(0.3)
    s = np.sin(0.3)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    tool_center = turn @ tool_center + [0, 0, 0.04]
    total = shift_to_origin(mass, center, tensor) + shift_to_origin(tool_mass, tool_center, turn @ tool_tensor @ turn.T)
    expected = [mass + tool_mass, *(mass * center + tool_mass * tool_center), *total[np.triu_indices(3)]]
    assert SimulatedArm(demo_robot).truth.parameters[50:] == pytest.approx(expected, abs=1e-9)


def test_link_parameters_exclude_rotors(demo_robot):
    bare = SimulatedArm(demo_robot, drives=Drives(rotor_inertia=0.0)).truth
    geared = SimulatedArm(demo_robot, drives=Drives(rotor_inertia=0.5)).truth
    assert np.array_equal(bare.parameters, geared.parameters)


def test_gravity_moments_of_an_arm_with_a_prismatic_joint():
    """The sliding mass is 0.2 m off the swing's axis at zero; its position along the slide is a variable."""
    more = f"""<joint name="slide" type="prismatic"><parent link="rod"/><child link="cart"/><origin xyz="0 0 0.2"/>
        <axis xyz="1 0 0"/><limit lower="-1" upper="1" velocity="1" effort="100"/></joint>
        <link name="cart">{pendulum.point_mass()}</link>"""
    truth = SimulatedArm(RobotModel.from_urdf(pendulum.urdf(more=more))).truth
    moments = truth.gravity_moments()
    assert moments[0] == pytest.approx([2 * 2.1, 0.0, 0.6], abs=1e-12)
    assert np.all(np.isnan(moments[1]))
    assert truth.carried_masses == pytest.approx([6.0, 3.0])


def test_gravity_moments_of_13_joints_take_less_than_half_a_second():
    robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(13), 13, 0.0), TIP)
    truth = SimulatedArm(robot).truth
    start = time.process_time()
    moments = truth.gravity_moments()
    assert time.process_time() - start < 0.5
    projected = GravityModel(robot).project(truth.parameters).reshape(-1, 2)
    offsets = robot.chain.link_offsets[:, :3, :3]
    in_joint_frames = np.einsum("nij,nj->ni", offsets, moments)[:, :2]
    np.testing.assert_allclose(in_joint_frames, projected, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "tip"),
    [("ur_description/urdf/ur5_robot.urdf", "tool0"), ("xarm_description/urdf/xarm7.urdf", None), ("", None)],
)
def test_projected_gravity_moments_match_mujoco(name, tip):
    robot = RobotModel.from_urdf(example_urdf(name) if name else demo_arm_urdf(), tip=tip)
    truth = SimulatedArm(robot).truth
    projected = GravityModel(robot).project(truth.parameters).reshape(-1, 2)
    # Joint frame i is link frame i times the inverse of the constant link offset.
    offsets = robot.chain.link_offsets[:, :3, :3]
    in_joint_frames = np.einsum("nij,nj->ni", offsets, truth.gravity_moments())
    assert in_joint_frames[:, :2] == pytest.approx(projected, abs=1e-10)
    assert in_joint_frames[:, 2] == pytest.approx(0.0, abs=1e-10)
