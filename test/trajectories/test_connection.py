"""Test connections between poses within limits and workspace, and visits of several poses."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace, check_limits
from dynid_ros.trajectories.connection import Connection

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
DEMO_ARM = Path(__file__).parents[2] / "config" / "demo_arm.urdf"
LIMITS = MotionLimits.of(ROBOT, 4.0)


def test_connects_poses_by_the_fastest_straight_motion():
    motion = Connection(LIMITS, Workspace(ROBOT, 0.0)).connect([0.0, -0.5, 0.0], [1.0, -1.0, 0.5])
    displacement = motion.at(np.linspace(0, motion.duration, 200))[0] - [0.0, -0.5, 0.0]
    np.testing.assert_allclose(np.cross(displacement, [1.0, -0.5, 0.5]), 0.0, atol=1e-12)
    acceleration = np.abs(motion.at(np.linspace(0, motion.duration, 20001))[2])
    assert acceleration.max() == pytest.approx(4.0, rel=1e-6)
    check_limits(motion, LIMITS)


@pytest.mark.slow
def test_avoids_the_floor_by_an_intermediate_pose():
    """The arm hangs upside down: many straight paths pass the stretched arm, which is too long for the workspace."""
    robot = RobotModel.from_urdf(DEMO_ARM, gravity=(0, 0, 9.80665))
    limits = MotionLimits.of(robot, 4.0)
    workspace = Workspace(robot, -0.9, 0.1)
    connection = Connection(limits, workspace)
    poses = limits.poses(256)
    poses = poses[workspace.allowed(poses)][:41]
    n_detours = 0
    for start, goal in pairwise(poses):
        motion = connection.connect(start, goal)
        np.testing.assert_allclose(motion.position[[0, -1]], [start, goal], atol=1e-12)
        check_limits(motion, limits)
        origins = robot.forward_kinematics(motion.at(np.arange(0.0, motion.duration, 0.01))[0])[:, 2:, 2, 3]
        assert origins.max() <= 0.9 + 1e-4
        n_detours += motion.n_samples > 2
    assert n_detours >= 5


def test_reports_why_no_motion_is_safe():
    connection = Connection(LIMITS, Workspace(ROBOT, 0.31))
    with pytest.raises(TrajectoryError, match=r"no safe way there: .*'link_3' would be at height .* at 0.000 s"):
        connection.connect([0.0, 0.2, 0.0], [0.0, -0.5, 0.0])
    with pytest.raises(TrajectoryError, match=r"'joint_1' would reach position 2.6 rad at 0.000 s"):
        connection.connect([2.6, -0.5, 0.0], [0.0, -0.5, 0.0])


def test_visits_poses_with_dwells():
    poses = [[0.0, -0.5, 0.0], [0.5, -0.5, 0.0], [0.5, -0.5, 0.0], [0.0, -0.9, 0.3]]
    motion, rests = Connection(LIMITS, Workspace(ROBOT, 0.0)).visit(poses, [1.0, 0.0, 2.0, 0.5])
    check_limits(motion, LIMITS)
    np.testing.assert_allclose(rests[:, 1] - rests[:, 0], [1.0, 0.0, 2.0, 0.5], atol=1e-12)
    for pose, (start, end) in zip(poses, rests, strict=True):
        position, velocity, _ = motion.at(np.linspace(start, end, 5))
        np.testing.assert_allclose(position, np.tile(pose, (5, 1)), atol=1e-9)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)
    assert (rests[0, 0], rests[-1, 1]) == (0.0, pytest.approx(motion.duration))


@pytest.mark.parametrize(
    ("poses", "dwell", "message"),
    [
        (np.zeros((0, 3)), 1.0, "one or more rows"),
        ([0.0, 0.0, 0.0], 1.0, r"poses have shape \(3,\)"),
        ([[0.0, 0.0, 0.0]], 0.0, "not all zero"),
        ([[0.0, 0.0, 0.0]], np.nan, "zero or more"),
        ([[0.0, 0.0, 0.0], [0.0, 0.2, 0.0]], 1.0, "pose 1: no safe way there: .*'link_3' would be at height"),
        ([[0.0, 0.0], [1.0, 0.0]], 1.0, "pose 0: .*expected"),
        ([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]], 1.0, r"pose 1: the goal pose is \[0.0, nan, 0.0\]; expected a finite"),
    ],
)
def test_refuses_invalid_visits(poses, dwell, message):
    with pytest.raises(TrajectoryError, match=message):
        Connection(LIMITS, Workspace(ROBOT, 0.29)).visit(poses, dwell)
