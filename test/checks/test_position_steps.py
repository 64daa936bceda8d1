"""Test detection of encoders that lose counts, and that other causes of steps are accepted."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.checks.finding import CheckSettings
from dynid_ros.checks.position_steps import check_position_steps
from dynid_ros.recording import Recording, check

RATE_HZ = 200
N = 20 * RATE_HZ


@pytest.fixture(scope="module")
def clean():
    time = np.arange(N) / RATE_HZ
    q = 1.2 * np.sin(np.outer(time, [0.5, 1.7, 2.9]))
    rng = np.random.default_rng(0)
    torque = planar_arm.holding_torque(q) + rng.normal(0, 0.05, q.shape)
    position = np.round(q / 1e-4) * 1e-4
    return Recording(planar_arm.JOINTS, time, position, np.full_like(q, np.nan), torque, source="run")


def add_step(recording, joint, row, size):
    """Return the recording with a lasting step of one joint's position."""
    position = recording.position.copy()
    position[row:, joint] += size
    return replace(recording, position=position)


@pytest.mark.parametrize("size", [0.003, -0.02])
@pytest.mark.parametrize("joint", [0, 2])
def test_reports_size_and_time_of_a_lasting_step(clean, joint, size):
    (finding,) = check(add_step(clean, joint, 1500, size))
    assert (finding.kind, finding.severity) == ("position step", "warning")
    assert finding.where == f"run, joint 'joint_{joint + 1}'"
    assert finding.message.startswith("its position steps 1 time, first by ")
    reported = float(finding.message.split("by ")[1].split(" at")[0])
    assert reported == pytest.approx(size, abs=0.1 * abs(size) + 2e-4)
    assert "t = 7.495 s" in finding.message


def test_counts_steps(clean):
    twice = add_step(add_step(clean, 1, 900, 0.01), 1, 2500, 0.01)
    (finding,) = check(twice)
    assert "steps 2 times" in finding.message


def test_late_stamps_are_not_steps(clean):
    """The clock stamps some messages 3 ms late, so each joint deviates by its own speed."""
    late = clean.time.copy()
    late[2000:2010] += 0.003
    q = 1.2 * np.sin(np.outer(late, [0.5, 1.7, 2.9]))
    assert check(replace(clean, position=np.round(q / 1e-4) * 1e-4)) == []


def test_abrupt_stops_are_not_steps(clean):
    time = clean.time
    q = clean.position.copy()
    q[:, 0] = np.clip(0.4 * (time - 5.0), 0.0, 2.0)
    assert [finding for finding in check(replace(clean, position=q)) if finding.kind == "position step"] == []


@pytest.mark.parametrize("order", [1, -1])
def test_shaking_joints_are_not_steps(clean, order):
    """The joint shakes for 0.4 s, most at the end or at the start of that time."""
    position = clean.position.copy()
    oscillation = 0.005 * np.linspace(0.3, 1.0, 80) * (-1.0) ** (np.arange(80) // 2)
    position[2000:2080, 0] += oscillation[::order]
    assert list(check_position_steps(replace(clean, position=position), CheckSettings())) == []


@pytest.mark.parametrize("late", [1, 2])
def test_samples_read_late_are_not_steps(clean, late):
    """A bus reads joint by joint: one joint is sometimes up to a period old, and the next sample catches up."""
    rng = np.random.default_rng(1)
    position = clean.position.copy()
    for row in rng.choice(np.arange(100, N - 100), 40, replace=False):
        position[row : row + late, 2] -= 0.9 * (position[row : row + late, 2] - position[row - 1 : row - 1 + late, 2])
    assert list(check_position_steps(replace(clean, position=position), CheckSettings())) == []


def refine_positions(clean):
    """Return the recording of an encoder with higher resolution."""
    q = 1.2 * np.sin(np.outer(clean.time, [0.5, 1.7, 2.9]))
    return replace(clean, position=q + np.random.default_rng(2).normal(0.0, 1e-6, q.shape))


def test_samples_shifted_by_one_period_are_not_steps(clean):
    recording = refine_positions(clean)
    position = recording.position.copy()
    for row in (900, 1500, 2300):
        position[row:, 2] = np.concatenate([position[row - 1 : row, 2], position[row:-1, 2]])
    assert list(check_position_steps(replace(recording, position=position), CheckSettings())) == []


def test_samples_lost_in_several_joints_are_not_steps(clean):
    """Two of three joints share a branch of the bus."""
    recording = refine_positions(clean)
    position = recording.position.copy()
    for joint in (1, 2):
        position[1500:-1, joint] = position[1501:, joint]
    assert list(check_position_steps(replace(recording, position=position), CheckSettings())) == []
