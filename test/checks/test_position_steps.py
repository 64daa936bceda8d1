"""Encoders that lose counts, beside motions and clocks that only look so."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.checks.finding import CheckSettings
from dynid_ros.checks.position_steps import check_position_steps
from dynid_ros.recording import Recording, check

RATE = 200
N = 20 * RATE


@pytest.fixture(scope="module")
def clean():
    time = np.arange(N) / RATE
    q = 1.2 * np.sin(np.outer(time, [0.5, 1.7, 2.9]))
    rng = np.random.default_rng(0)
    torque = planar_arm.holding_torque(q) + rng.normal(0, 0.05, q.shape)
    position = np.round(q / 1e-4) * 1e-4
    return Recording(planar_arm.JOINTS, time, position, np.full_like(q, np.nan), torque, source="run")


def stepped(recording, joint, row, size):
    position = recording.position.copy()
    position[row:, joint] += size
    return replace(recording, position=position)


@pytest.mark.parametrize("size", [0.003, -0.02])
@pytest.mark.parametrize("joint", [0, 2])
def test_a_step_that_stays(clean, joint, size):
    (finding,) = check(stepped(clean, joint, 1500, size))
    assert (finding.kind, finding.severity) == ("position step", "warning")
    assert finding.where == f"run, joint 'joint_{joint + 1}'"
    assert finding.message.startswith("its position steps 1 time, first by ")
    said = float(finding.message.split("by ")[1].split(" at")[0])
    assert said == pytest.approx(size, abs=0.1 * abs(size) + 2e-4)
    assert "t = 7.495 s" in finding.message


def test_steps_are_counted(clean):
    twice = stepped(stepped(clean, 1, 900, 0.01), 1, 2500, 0.01)
    (finding,) = check(twice)
    assert "steps 2 times" in finding.message


def test_late_samples_move_all_joints_and_are_no_step(clean):
    """A message that the clock stamps 3 ms late: each joint is off by its own speed."""
    late = clean.time.copy()
    late[2000:2010] += 0.003
    q = 1.2 * np.sin(np.outer(late, [0.5, 1.7, 2.9]))
    assert check(replace(clean, position=np.round(q / 1e-4) * 1e-4)) == []


def test_an_arm_that_stops_dead_is_no_step(clean):
    time = clean.time
    q = clean.position.copy()
    q[:, 0] = np.clip(0.4 * (time - 5.0), 0.0, 2.0)
    assert [finding for finding in check(replace(clean, position=q)) if finding.kind == "position step"] == []


@pytest.mark.parametrize("order", [1, -1])
def test_the_worst_of_a_shaking_stretch_is_no_step(clean, order):
    """The joint shakes for 0.4 s, most at the end or at the start of it: the rest of it is on one side only."""
    position = clean.position.copy()
    shake = 0.005 * np.linspace(0.3, 1.0, 80) * (-1.0) ** (np.arange(80) // 2)
    position[2000:2080, 0] += shake[::order]
    assert list(check_position_steps(replace(clean, position=position), CheckSettings())) == []


@pytest.mark.parametrize("late", [1, 2])
def test_samples_of_one_joint_that_were_read_late_are_no_step(clean, late):
    """A bus reads joint after joint: one is up to a period old now and then, and the next sample catches up."""
    rng = np.random.default_rng(1)
    position = clean.position.copy()
    for row in rng.choice(np.arange(100, N - 100), 40, replace=False):
        position[row : row + late, 2] -= 0.9 * (position[row : row + late, 2] - position[row - 1 : row - 1 + late, 2])
    assert list(check_position_steps(replace(clean, position=position), CheckSettings())) == []


def fine(clean):
    """The same by an encoder that resolves more."""
    q = 1.2 * np.sin(np.outer(clean.time, [0.5, 1.7, 2.9]))
    return replace(clean, position=q + np.random.default_rng(2).normal(0.0, 1e-6, q.shape))


def test_a_joint_that_was_not_read_once_and_goes_on_a_sample_later_is_no_step(clean):
    it = fine(clean)
    position = it.position.copy()
    for row in (900, 1500, 2300):
        position[row:, 2] = np.concatenate([position[row - 1 : row, 2], position[row:-1, 2]])
    assert list(check_position_steps(replace(it, position=position), CheckSettings())) == []


def test_joints_that_lose_a_sample_together_are_no_step(clean):
    """Two of three hang on one branch of the bus."""
    it = fine(clean)
    position = it.position.copy()
    for joint in (1, 2):
        position[1500:-1, joint] = position[1501:, joint]
    assert list(check_position_steps(replace(it, position=position), CheckSettings())) == []
