"""Grippers and hands that an arm carries: their torque agrees with Pinocchio."""

import re

import numpy as np
import pytest
from exported_urdf import assert_same_torque, draw_parameters
from gripper_arms import GRIPPERS, gripper_arm, middle_gripper
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import is_possible
from dynid_ros.model.urdf_export import posture_error, urdf_with_inertias


def assert_pinocchio_reads(urdf: str, robot: RobotModel, parameters: np.ndarray) -> None:
    """Check that gravity and inverse dynamics agree with Pinocchio to 1e-9 of the largest torque."""
    arm = PinocchioArm(urdf, robot.joint_names, robot.gravity, robot.posture)
    q, qd, qdd = np.random.default_rng(4).normal(size=(3, 20, robot.n_joints))
    gravity = robot.gravity_torque(q, parameters)
    motion = robot.inverse_dynamics(q, qd, qdd, parameters)
    for k in range(len(q)):
        assert np.abs(arm.gravity_torque(q[k]) - gravity[k]).max() <= 1e-9 * np.abs(gravity).max()
        assert np.abs(arm.inverse_dynamics(q[k], qd[k], qdd[k]) - motion[k]).max() <= 1e-9 * np.abs(motion).max()


@pytest.mark.parametrize("name", GRIPPERS)
def test_model_includes_the_gripper(name):
    robot = gripper_arm(name)
    assert_pinocchio_reads(robot.urdf, robot, robot.parameters)
    elsewhere = robot.with_posture(dict.fromkeys(robot.posture, 0.0))
    assert np.abs(elsewhere.parameters - robot.parameters).max() > 1e-6
    assert_pinocchio_reads(robot.urdf, elsewhere, elsewhere.parameters)
    restored = elsewhere.with_posture(robot.posture).parameters
    np.testing.assert_allclose(restored, robot.parameters, rtol=0, atol=1e-12 * np.abs(restored).max())


@pytest.mark.parametrize("name", GRIPPERS)
def test_exported_urdf_has_the_torque_of_its_parameters(name):
    robot = gripper_arm(name)
    parameters = draw_parameters(robot)
    urdf = urdf_with_inertias(robot, parameters)
    assert_pinocchio_reads(urdf, robot, parameters)
    assert "of its inertia, because" not in urdf


@pytest.mark.parametrize("name", GRIPPERS)
def test_heavy_gripper_keeps_a_fraction_of_its_inertia(name):
    robot = gripper_arm(name)
    parameters = 0.02 * draw_parameters(robot)
    urdf = urdf_with_inertias(robot, parameters)
    assert_pinocchio_reads(urdf, robot, parameters)
    assert "of its inertia, because no body would be left of the carrying link" in urdf
    assert is_possible(RobotModel.from_urdf(urdf, robot.tip, robot.base).parameters.reshape(-1, 10)).all()


def test_mujoco_accepts_a_gripper_with_reduced_inertia():
    robot = RobotModel.from_urdf(re.sub("<mimic.*?/>", "", middle_gripper()), "lower")
    parameters = 0.2 * draw_parameters(robot)
    assert_same_torque(urdf_with_inertias(robot, parameters), robot, parameters)


def test_reports_the_torque_error_of_a_moving_gripper():
    robot = RobotModel.from_urdf(middle_gripper(), "lower", posture={"slide": 0.3})
    parameters = robot.parameters
    urdf = urdf_with_inertias(robot, parameters)
    remark = posture_error(robot, parameters, urdf, {"slide": (0.1, 0.3)})
    # Finger and nail (1.1 kg) slide back by 0.2 m along (1, 0.2), the thumb (0.7 kg), which mimics, by 0.1 m along -x.
    along = 1.1 * 0.2 / np.hypot(1, 0.2) - 0.7 * 0.1
    across = 1.1 * 0.04 / np.hypot(1, 0.2)
    assert "identified.urdf has the model's torque with slide at 0.3. Their motion changes gravity" in remark
    worst = float(re.search(r"gravity torque by up to (\S+) \(", remark)[1])
    assert worst == pytest.approx(9.80665 * np.hypot(along, across), rel=0.1)
    assert "at joint_1" in remark
    assert "other_slide" not in remark
    unknown = posture_error(robot, parameters, urdf, {})
    assert "not recorded, assumed within their limits: slide" in unknown
    assert float(re.search(r"gravity torque by up to (\S+) \(", unknown)[1]) > 5 * worst
    without = RobotModel.from_urdf(re.sub('type="prismatic"', 'type="fixed"', middle_gripper()), "lower")
    assert posture_error(without, without.parameters, urdf_with_inertias(without, without.parameters), {}) == ""


def test_refuses_to_write_a_urdf_with_another_torque(monkeypatch):
    robot = gripper_arm("gripper in the middle")
    monkeypatch.setattr(
        "dynid_ros.model.urdf_export.replace_inertials", lambda text, elements: text.replace("0.3 0.1 0", "0.301 0.1 0")
    )
    with pytest.raises(ModelError, match=r"of the URDF to be written is off by"):
        urdf_with_inertias(robot, robot.parameters)
