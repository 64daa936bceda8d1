"""Compare turns of the tool about its axes with forward kinematics and rotation vectors."""

import numpy as np
import paper_arms
import planar_arm
import pytest
from helpers.mujoco_room import DEMO_ARM
from scipy.spatial.transform import Rotation

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment
from dynid_ros.excitation.payload_motion import ToolRotation, stretch_time, wrist_joints
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits

DEMO = RobotModel.from_urdf(DEMO_ARM)
POSE = np.array([0.3, -0.4, 0.9, 0.5, 0.9, -0.7])


def find_rotation(axis, robot=DEMO, pose=POSE, reach=1.2, **limits):
    """Return the turn about a tool axis and the design limits of the robot."""
    defaults = {"position_lower": -2.5, "position_upper": 2.5, "velocity_limits": 2.0} if robot is not DEMO else {}
    motion_limits = MotionLimits.of(robot, 5.0, **{**defaults, **limits})
    return find_rotation_within(robot, motion_limits, Workspace(robot), pose, axis, reach)


def find_rotation_within(robot, limits, workspace, pose, axis, reach):
    experiment = Experiment(robot, limits, workspace, position_margin=0.0, speed_fraction=1.0)
    return ToolRotation.within(experiment, pose, axis, reach), experiment.design_limits


def create_puma():
    arm = paper_arms.puma()
    return RobotModel(arm.chain, np.tile([1.0, 0, 0, 0, 0.1, 0, 0, 0.1, 0, 0.1], 6))


@pytest.mark.parametrize("robot", [DEMO, create_puma()], ids=["demo", "puma"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_turns_about_the_tool_axis_with_wrist_joints_only(robot, axis):
    rotation, _ = find_rotation(axis, robot)
    assert rotation.highest - rotation.lowest > 0.5
    angles = np.linspace(rotation.lowest, rotation.highest, 33)
    q, _, _ = rotation.at(angles)
    np.testing.assert_array_equal(q[:, :3], np.tile(POSE[:3], (33, 1)))
    tool = robot.forward_kinematics(q)[:, -1, :3, :3] @ robot.tip_offset[:3, :3]
    start = robot.forward_kinematics(POSE[np.newaxis])[0, -1, :3, :3] @ robot.tip_offset[:3, :3]
    rotation_vectors = Rotation.from_matrix(start.T @ tool).as_rotvec()
    np.testing.assert_allclose(rotation_vectors, np.outer(angles, np.eye(3)[axis]), atol=1e-6)


def test_turns_end_at_a_joint_limit_or_the_reach():
    rotation, limits = find_rotation(2, reach=3.0)
    ends, _, _ = rotation.at(np.array([rotation.lowest, rotation.highest]))
    assert np.all((ends > limits.lower) & (ends < limits.upper))
    near, _ = find_rotation(2, reach=0.3)
    assert (near.lowest, near.highest) == (pytest.approx(-0.3, rel=0.02), pytest.approx(0.3, rel=0.02))


@pytest.mark.parametrize("settings", [{}, {"jerk_limits": 20.0}, {"velocity_limits": 0.4}])
def test_turns_are_as_fast_as_the_limits_allow(settings):
    rotation, limits = find_rotation(1, **settings)
    motion = rotation.move(rotation.lowest, rotation.highest, limits)
    check_limits(motion, limits)
    _, velocity, acceleration = motion.at(np.linspace(0.0, motion.duration, 5001))
    used = [
        np.abs(velocity / limits.velocity).max(),
        np.abs(acceleration / limits.acceleration).max(),
        np.abs(motion.jerk_peaks()[1] / limits.jerk).max(),
    ]
    assert 0.9 < max(used) <= 1.0
    for values in (motion.velocity, motion.acceleration):
        np.testing.assert_allclose(values[[0, -1]], 0.0, atol=1e-12)
    with pytest.raises(TrajectoryError, match="moves nothing"):
        rotation.move(0.2, 0.2, limits)


def test_quick_turns_reach_velocity_and_acceleration_limits():
    rotation, limits = find_rotation(2, velocity_limits=1.0)
    half = rotation.quick_angle(limits) / 2
    assert half < rotation.highest
    motion = rotation.move(-half, half, limits)
    _, velocity, acceleration = motion.at(np.linspace(0.0, motion.duration, 5001))
    assert np.abs(velocity / limits.velocity).max() > 0.85
    assert np.abs(acceleration / limits.acceleration).max() > 0.85


def test_arms_with_parallel_axes_turn_about_one_axis():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    pose = np.array([0.2, -0.4, 0.5])
    turns = [find_rotation(axis, robot, pose)[0] for axis in range(3)]
    assert turns[2].highest - turns[2].lowest > 1.0
    assert [turn.highest - turn.lowest for turn in turns[:2]] == [0.0, 0.0]
    assert wrist_joints(robot).tolist() == [0, 1, 2]


def test_floor_limits_turns():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 5.0)
    pose = np.array([0.0, -0.4, 0.6])
    without_floor, _ = find_rotation_within(robot, limits, Workspace(robot), pose, 2, 1.5)
    floor, _ = find_rotation_within(robot, limits, Workspace(robot, 0.3), pose, 2, 1.5)
    assert floor.highest - floor.lowest < without_floor.highest - without_floor.lowest
    q, _, _ = floor.at(np.linspace(floor.lowest, floor.highest, 50))
    assert robot.forward_kinematics(q)[:, 2, 2, 3].min() >= 0.3 - 1e-6


def test_stretched_time_keeps_the_path():
    rotation, limits = find_rotation(0)
    motion = rotation.move(0.0, rotation.highest, limits)
    slow = stretch_time(motion, 2.0)
    fraction = np.linspace(0.0, 1.0, 99)
    for power, values, expected in zip(
        (1, 2, 4), slow.at(fraction * slow.duration), motion.at(fraction * motion.duration), strict=True
    ):
        np.testing.assert_allclose(power * values, expected, atol=1e-9)
