"""Payloads that a URDF lacks: conversion, torque, and refusals."""

import numpy as np
import pytest
from pinocchio_arm import PinocchioArm, example_urdf

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import payload_parameters, with_payload
from dynid_ros.model.inertia import from_center_of_mass, is_possible

URDF = example_urdf("ur_description/urdf/ur5_robot.urdf")
BODY = (1.5, 0.02, -0.03, 0.1, 0.004, 1e-4, -2e-4, 0.005, 3e-4, 0.003)
LINK = """<link name="box"><inertial><origin xyz="{1} {2} {3}"/><mass value="{0}"/>
<inertia ixx="{4}" ixy="{5}" ixz="{6}" iyy="{7}" iyz="{8}" izz="{9}"/></inertial></link>
<joint name="to_box" type="fixed"><parent link="tool0"/><child link="box"/></joint></robot>"""


@pytest.fixture(name="robot")
def fixture_robot():
    return RobotModel.from_urdf(URDF, tip="tool0")


@pytest.fixture(name="urdf_with_box")
def fixture_urdf_with_box(robot):
    return robot.urdf.replace("</robot>", LINK.format(*BODY))


def test_payload_torque_equals_that_of_a_urdf_with_the_body(robot, urdf_with_box):
    arm = PinocchioArm(urdf_with_box, robot.joint_names, robot.gravity)
    motion = np.random.default_rng(0).uniform(-2, 2, (3, 20, 6))
    expected = [arm.inverse_dynamics(*sample) for sample in zip(*motion, strict=True)]
    np.testing.assert_allclose(with_payload(robot, BODY).inverse_dynamics(*motion), expected, atol=1e-9)


def test_payload_of_four_numbers_has_the_inertia_of_a_ball(robot):
    parameters = payload_parameters(BODY[:4])
    np.testing.assert_allclose(parameters[:4], [1.5, 0.03, -0.045, 0.15])
    assert is_possible(parameters)
    center = np.array(BODY[1:4])
    about = parameters[4:] - from_center_of_mass(1.5, center, np.zeros((3, 3)))[4:]
    radius = (3 * 1.5 / (4 * np.pi * 2700.0)) ** (1 / 3)
    np.testing.assert_allclose(about, 0.4 * 1.5 * radius**2 * np.array([1, 0, 0, 1, 0, 1]), atol=1e-12)
    assert with_payload(robot, ()) is robot


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1.0, 0.0, 0.0), "expected MASS CX CY CZ"),
        ((0.0, 0.0, 0.0, 0.1), "a mass of 0 kg"),
        ((-1.0, 0.0, 0.0, 0.1), "a mass of -1 kg"),
        ((1.0, 0.0, 0.0, 30.0), r"at \(0, 0, 30\) m; expected one above 0 within 2 m"),
        ((1.0, 0.0, 0.0, np.nan), "expected MASS CX CY CZ"),
        ((1.0, 0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 1e-3, 0.0, 1e-3), "no body has the inertia"),
    ],
)
def test_refuses_impossible_payloads(robot, values, message):
    with pytest.raises(ModelError, match=f"^payload: .*{message}"):
        with_payload(robot, values)


def test_refuses_a_payload_that_the_urdf_contains(robot, urdf_with_box):
    with pytest.raises(ModelError, match=r"beyond the tip 'tool0' already \('box' 1.5 kg\); leave the payload out"):
        with_payload(RobotModel.from_urdf(urdf_with_box, tip="tool0"), BODY)
    with pytest.raises(ModelError, match=r"beyond the tip 'box' already"):
        with_payload(RobotModel.from_urdf(urdf_with_box, tip="box"), (1.6, 0.0, 0.0, 0.05))
    other = with_payload(RobotModel.from_urdf(urdf_with_box, tip="box"), (0.5, 0.0, 0.0, 0.05))
    assert other.parameters[0::10].sum() == pytest.approx(with_payload(robot, BODY).parameters[0::10].sum() + 0.5)
