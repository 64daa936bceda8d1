"""Turns of the tool: about a fixed axis as forward kinematics and rotation vectors see it."""

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


def found(axis, robot=DEMO, pose=POSE, reach=1.2, **limits):
    given = {"position_lower": -2.5, "position_upper": 2.5, "velocity_limits": 2.0} if robot is not DEMO else {}
    return within(robot, MotionLimits.of(robot, 5.0, **given | limits), Workspace(robot), pose, axis, reach)


def within(robot, limits, workspace, pose, axis, reach):
    experiment = Experiment(robot, limits, workspace, position_margin=0.0, speed_fraction=1.0)
    return ToolRotation.within(experiment, pose, axis, reach), experiment.design_limits


def puma():
    arm = paper_arms.puma()
    return RobotModel(arm.chain, np.tile([1.0, 0, 0, 0, 0.1, 0, 0, 0.1, 0, 0.1], 6))


@pytest.mark.parametrize("robot", [DEMO, puma()], ids=["demo", "puma"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_tool_turns_about_its_axis_by_the_angle_and_the_arm_holds(robot, axis):
    rotation, _ = found(axis, robot)
    assert rotation.highest - rotation.lowest > 0.5
    angles = np.linspace(rotation.lowest, rotation.highest, 33)
    q, _, _ = rotation.at(angles)
    np.testing.assert_array_equal(q[:, :3], np.tile(POSE[:3], (33, 1)))
    tool = robot.forward_kinematics(q)[:, -1, :3, :3] @ robot.tip_offset[:3, :3]
    start = robot.forward_kinematics(POSE[np.newaxis])[0, -1, :3, :3] @ robot.tip_offset[:3, :3]
    turned = Rotation.from_matrix(start.T @ tool).as_rotvec()
    np.testing.assert_allclose(turned, np.outer(angles, np.eye(3)[axis]), atol=1e-6)


def test_turn_ends_where_a_joint_or_the_reach_does():
    rotation, room = found(2, reach=3.0)
    ends, _, _ = rotation.at(np.array([rotation.lowest, rotation.highest]))
    assert np.all((ends > room.lower) & (ends < room.upper))
    near, _ = found(2, reach=0.3)
    assert (near.lowest, near.highest) == (pytest.approx(-0.3, rel=0.02), pytest.approx(0.3, rel=0.02))


@pytest.mark.parametrize("limits", [{}, {"jerk_limits": 20.0}, {"velocity_limits": 0.4}])
def test_move_is_as_fast_as_the_limits_allow(limits):
    rotation, room = found(1, **limits)
    motion = rotation.move(rotation.lowest, rotation.highest, room)
    check_limits(motion, room)
    _, velocity, acceleration = motion.at(np.linspace(0.0, motion.duration, 5001))
    used = [
        np.abs(velocity / room.velocity).max(),
        np.abs(acceleration / room.acceleration).max(),
        np.abs(motion.jerk_peaks()[1] / room.jerk).max(),
    ]
    assert 0.9 < max(used) <= 1.0
    for values in (motion.velocity, motion.acceleration):
        np.testing.assert_allclose(values[[0, -1]], 0.0, atol=1e-12)
    with pytest.raises(TrajectoryError, match="moves nothing"):
        rotation.move(0.2, 0.2, room)


def test_quick_turn_meets_both_limits():
    rotation, room = found(2, velocity_limits=1.0)
    half = rotation.quick_angle(room) / 2
    assert half < rotation.highest
    motion = rotation.move(-half, half, room)
    _, velocity, acceleration = motion.at(np.linspace(0.0, motion.duration, 5001))
    assert np.abs(velocity / room.velocity).max() > 0.85
    assert np.abs(acceleration / room.acceleration).max() > 0.85


def test_parallel_axes_turn_the_tool_about_theirs_only():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    pose = np.array([0.2, -0.4, 0.5])
    turns = [found(axis, robot, pose)[0] for axis in range(3)]
    assert turns[2].highest - turns[2].lowest > 1.0
    assert [turn.highest - turn.lowest for turn in turns[:2]] == [0.0, 0.0]
    assert wrist_joints(robot).tolist() == [0, 1, 2]


def test_floor_ends_a_turn():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 5.0)
    pose = np.array([0.0, -0.4, 0.6])
    free, _ = within(robot, limits, Workspace(robot), pose, 2, 1.5)
    floor, _ = within(robot, limits, Workspace(robot, 0.3), pose, 2, 1.5)
    assert floor.highest - floor.lowest < free.highest - free.lowest
    q, _, _ = floor.at(np.linspace(floor.lowest, floor.highest, 50))
    assert robot.forward_kinematics(q)[:, 2, 2, 3].min() >= 0.3 - 1e-6


def test_stretched_time_keeps_the_path():
    rotation, room = found(0)
    motion = rotation.move(0.0, rotation.highest, room)
    slow = stretch_time(motion, 2.0)
    fraction = np.linspace(0.0, 1.0, 99)
    for power, values, expected in zip(
        (1, 2, 4), slow.at(fraction * slow.duration), motion.at(fraction * motion.duration), strict=True
    ):
        np.testing.assert_allclose(power * values, expected, atol=1e-9)
