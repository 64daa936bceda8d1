"""Test the check of effort: joint torque, motor current, opposite sign, or torque without gravity."""

from dataclasses import replace
from time import process_time

import numpy as np
import planar_arm
import pytest

from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, check

RATE_HZ = 200
N = 10 * RATE_HZ


@pytest.fixture(scope="module")
def slow():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE_HZ
    phase = np.outer(time, [0.5, 0.7, 0.9])
    q = 1.2 * np.sin(phase)
    direction = np.sign(np.cos(phase))
    torque = planar_arm.holding_torque(q) + 1.5 * direction + [0.5, -1.0, 0.3] + rng.normal(0, 0.1, q.shape)
    return Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque, source="run")


@pytest.fixture(scope="module")
def poses(slow):
    """Return recordings of one pose each."""
    rng = np.random.default_rng(1)
    parts = []
    for i, pose in enumerate(rng.uniform(-1.5, 1.5, (5, 3))):
        q = pose + rng.normal(0, 1e-5, (200, 3))
        torque = planar_arm.holding_torque(q) + rng.normal(0, 0.1, q.shape)
        time = np.arange(200) / RATE_HZ
        parts.append(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque, source=f"p{i}"))
    return parts


def scale_torque(recordings, factor):
    return [replace(part, torque=part.torque * factor) for part in recordings]


def list_errors(recordings, robot):
    """Return the findings as text; all must be errors."""
    findings = check(recordings, robot)
    assert all(finding.severity == "error" for finding in findings)
    return [str(finding) for finding in findings]


@pytest.mark.parametrize("factor", [0.6, 3.0], ids=lambda f: f"masses wrong by {f}")
def test_accepts_joint_torque(slow, poses, robot, factor):
    assert list_errors(scale_torque([slow], factor), robot) == []
    assert list_errors(scale_torque(poses, factor), robot) == []


@pytest.mark.parametrize("factor", [1 / 11.976, 0.01, 100.0, [0.1, 0.08, 0.12]], ids=str)
def test_reports_current_and_motor_side_torque(slow, poses, robot, factor):
    for recordings in ([slow], poses):
        (error,) = list_errors(scale_torque(recordings, factor), robot)
        assert "effort follows gravity, but is no joint torque in N m" in error
        assert "motor_current with gains" in error


def test_reports_torque_of_opposite_sign(slow, poses, robot):
    for recordings in ([slow], poses):
        (error,) = list_errors(scale_torque(recordings, -1.0), robot)
        assert "effort has the opposite sign of the gravity torque" in error


@pytest.mark.parametrize("wrong", [0.0, 0.1, -0.1], ids=lambda w: f"driver's model off by {w}")
def test_reports_torque_without_gravity(slow, poses, robot, wrong):
    for recordings in ([slow], poses):
        rest = [
            replace(part, torque=part.torque - (1 - wrong) * planar_arm.holding_torque(part.position))
            for part in recordings
        ]
        (error,) = list_errors(rest, robot)
        if wrong <= 0:
            assert "there is no gravity in the effort, though the poses differ" in error


def test_does_not_judge_a_single_pose(poses, robot):
    for part in scale_torque(poses, 0.1):
        assert list_errors(part, robot) == []


def test_does_not_judge_models_without_masses(slow):
    massless = RobotModel.from_urdf(planar_arm.urdf().replace('mass value="', 'mass value="0" was="'))
    assert list_errors(scale_torque([slow], 0.1), massless) == []


def test_does_not_judge_motion_of_a_vertical_joint(slow, robot):
    q = slow.position * [1, 0, 0]
    torque = planar_arm.holding_torque(q) + np.random.default_rng(2).normal(0, 0.1, q.shape)
    assert list_errors(replace(slow, position=q, torque=0.1 * torque), robot) == []


@pytest.mark.parametrize("frequency", [0.5, 3.0, *(pytest.param(f, marks=pytest.mark.slow) for f in (1.0, 1.5))])
def test_fast_motion_is_not_mistaken_for_gravity(robot, frequency):
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(planar_arm.urdf())
    data = model.createData()
    time = np.arange(N) / RATE_HZ
    speed = 2 * np.pi * frequency * np.array([0.9, 1.0, 1.1])
    phase = np.outer(time, speed) + np.arange(3)
    drift = np.array([0.1, 0.18, -0.15])
    q = 0.6 * np.sin(phase) + np.outer(time, drift)
    qd = 0.6 * speed * np.cos(phase) + drift
    qdd = -0.6 * speed**2 * np.sin(phase)
    torque = np.array([pinocchio.rnea(model, data, *row) for row in zip(q, qd, qdd, strict=True)])
    torque += np.random.default_rng(3).normal(0, 0.05, torque.shape)
    recording = Recording(planar_arm.JOINTS, time, q, qd, torque, source="run")
    assert list_errors(recording, robot) == []
    gravity = np.array([pinocchio.computeGeneralizedGravity(model, data, row).copy() for row in q])
    (finding,) = check(replace(recording, torque=torque - gravity), robot)
    assert finding.kind == "gravity compensated"
    assert finding.severity == "error" or frequency > 2  # gravity is small compared with inertia then


@pytest.mark.slow
def test_checks_long_recordings_within_ten_seconds(robot):
    rng = np.random.default_rng(4)
    time = np.arange(300_000) / 1000
    rates = np.array([0.5, 0.7, 0.9])
    phase = np.outer(time, rates)
    q = 1.2 * np.sin(phase)
    qd = 1.2 * rates * np.cos(phase)
    dry = 1.5 * np.sign(qd)
    torque = robot.inverse_dynamics(q, qd, -(rates**2) * q) + dry + rng.normal(0, 0.1, q.shape)
    start = process_time()
    assert list_errors(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque), robot) == []
    assert process_time() - start < 10
