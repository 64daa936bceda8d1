"""Test that recordings with too little motion are reported."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.checks.too_little_motion import check_motion
from dynid_ros.recording import Recording, check


def create_recording(amplitude, duration=20.0, source="run"):
    rng = np.random.default_rng(0)
    time = np.arange(0, duration, 0.01)
    q = amplitude * np.sin(np.outer(time, [1.1, 1.3, 1.7])) + rng.normal(0, 1e-5, (len(time), 3))
    return Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), rng.normal(0, 1.0, q.shape), source=source)


def list_findings(recordings, robot):
    return [(finding.severity, finding.kind, finding.where) for finding in check_motion(recordings, robot)]


def test_joints_may_move_in_turn(robot):
    assert list_findings([create_recording(0.0)], robot) == [("error", "too little motion", "run")]
    assert list_findings([create_recording(0.5)], robot) == []
    turns = [create_recording(0.5 * np.eye(3)[j], source=f"joint_{j}") for j in range(3)]
    assert list_findings(turns, robot) == []


def test_accepts_poses_unless_motion_is_required(robot):
    poses = [create_recording(0.0, 2.0, f"p{i}") for i in range(3)]
    assert check(poses, robot) == []
    (finding,) = check(poses, robot, motion=True)
    assert "all joints are at rest" in finding.message


@pytest.mark.parametrize(("amplitude", "state"), [(0.0, "it rests"), (0.02, "it hardly moves: it covers 0.04 rad")])
def test_reports_joints_that_hardly_move(robot, amplitude, state):
    (finding,) = check_motion([create_recording(np.array([0.5, amplitude, 0.5]))], robot)
    assert (finding.severity, finding.where) == ("warning", "run, joint 'joint_2'")
    assert state in finding.message


def test_reports_short_motions(robot):
    (finding,) = check_motion([create_recording(1.0, 2.0)], robot)
    assert "it moves for 1.9 s only" in finding.message
    assert finding.severity == "warning"
