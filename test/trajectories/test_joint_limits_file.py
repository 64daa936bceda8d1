"""Test limits from MoveIt's joint_limits.yaml and their precedence over configured limits and the URDF."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits
from dynid_ros.trajectories.joint_limits_file import read_joint_limits

SETUP_ASSISTANT = """
# joint_limits.yaml allows the dynamics properties specified in the URDF to be overwritten or augmented as needed

# For beginners, we downscale velocity and acceleration limits.
default_velocity_scaling_factor: 0.1
default_acceleration_scaling_factor: 0.1

# Joint limits can be turned off with [has_velocity_limits, has_acceleration_limits]
joint_limits:
  joint_1:
    has_velocity_limits: true
    max_velocity: 1.5
    has_acceleration_limits: true
    max_acceleration: 4
  joint_2:
    has_velocity_limits: false
    max_velocity: 0.1
    has_acceleration_limits: true
    max_acceleration: 5.0
    has_jerk_limits: true
    max_jerk: 70.0
    min_position: -0.5
  joint_3:
    max_velocity: 1000.0
    max_acceleration: 6.0
    max_deceleration: -2.5
    has_jerk_limits: false
    max_position: 1000.0
"""
ROBOT = RobotModel.from_urdf(planar_arm.urdf())
URDF = ROBOT.limits


@pytest.fixture(name="file")
def fixture_file(tmp_path):
    path = tmp_path / "joint_limits.yaml"
    path.write_text(SETUP_ASSISTANT)
    return path


def test_file_limits_apply_where_none_are_configured(file):
    limits = MotionLimits.of(ROBOT, joint_limits=file)
    np.testing.assert_allclose(limits.acceleration, [4.0, 5.0, 2.5])
    np.testing.assert_allclose(limits.velocity, [1.5, *URDF.velocity[1:]])
    np.testing.assert_allclose(limits.jerk, [np.inf, 70.0, np.inf])
    np.testing.assert_allclose(limits.lower, [URDF.lower[0], -0.5, URDF.lower[2]])
    np.testing.assert_allclose(limits.upper, URDF.upper)


def test_configured_limits_have_precedence(file):
    limits = MotionLimits.of(ROBOT, [np.nan, 9.0, np.nan], velocity_limits=0.7, jerk_limits=30.0, joint_limits=file)
    np.testing.assert_allclose(limits.acceleration, [4.0, 9.0, 2.5])
    np.testing.assert_allclose(limits.velocity, 0.7)
    np.testing.assert_allclose(limits.jerk, 30.0)


def test_reports_joints_missing_in_the_file(file):
    file.write_text(SETUP_ASSISTANT[: SETUP_ASSISTANT.index("  joint_3")])
    with pytest.raises(TrajectoryError, match="acceleration_limits of joint 'joint_3'"):
        MotionLimits.of(ROBOT, joint_limits=file)


def test_ignores_joints_beyond_the_arm(file):
    shorter = RobotModel.from_urdf(planar_arm.urdf(), tip="link_2")
    np.testing.assert_allclose(read_joint_limits(file, shorter)["acceleration_limits"], [4.0, 5.0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("joint_limits: {elbow: {max_velocity: 1.0}}", ["elbow", "joint_1, joint_2, joint_3"]),
        ("joint_limits: {joint_1: 3.0}", ["joint_1", "mapping"]),
        ("joint_limits: {joint_1: {max_acceleration: fast}}", ["joint_1", "max_acceleration", "'fast'", "number"]),
        ("joint_limits: {joint_1: {max_acceleration: true}}", ["max_acceleration", "True"]),
        ("joint_limits: {joint_1: {max_acceleration: 0}}", ["max_acceleration", "above 0"]),
        ("joint_limits: {joint_1: {max_velocity: .nan}}", ["max_velocity", "above 0"]),
        ("joint_limits: {joint_1: {max_jerk: [1.0]}}", ["max_jerk", "[1.0]"]),
        ("joint_limits: {joint_1: {has_jerk_limits: 1, max_jerk: 2}}", ["has_jerk_limits", "true or false"]),
        ("joint_limits: {joint_1: {has_jerk_limits: true}}", ["has_jerk_limits", "max_jerk"]),
        ("joint_limits: {joint_1: {max_accelleration: 1.0}}", ["max_accelleration", "max_acceleration"]),
        ("joint_limits: [joint_1]", ["joint_limits"]),
        ("shoulder: {max_velocity: 1.0}", ["joint_limits"]),
        ("joint_limits: {joint_1: {max_position: !degrees 360}}", ["line 1"]),
        ("", ["joint_limits"]),
    ],
)
def test_refuses_malformed_limit_files(file, text, words):
    file.write_text(text)
    with pytest.raises(TrajectoryError) as error:
        MotionLimits.of(ROBOT, 2.0, joint_limits=file)
    for word in ["joint_limits.yaml", *words]:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_reports_missing_limit_files(tmp_path):
    with pytest.raises(TrajectoryError, match=r"none\.yaml.*No such file"):
        MotionLimits.of(ROBOT, 2.0, joint_limits=tmp_path / "none.yaml")
