"""Torques that stand still or fall to zero for stretches, and those that only rest, repeat themselves or cross zero."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording, check

RATE = 200
N = 20 * RATE


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE
    phase = np.outer(time, [0.5, 1.7, 2.9])
    torque = planar_arm.holding_torque(np.sin(phase)) + rng.normal(0, 0.05, phase.shape)
    return Recording(planar_arm.JOINTS, time, np.sin(phase), np.full_like(phase, np.nan), torque, source="run")


def with_torque(recording, torque):
    return replace(recording, torque=torque)


@pytest.mark.parametrize("quantum", [0.0, 0.2])
def test_a_torque_that_stands_still(clean, quantum):
    torque = clean.torque if not quantum else np.round(clean.torque / quantum) * quantum
    torque = torque.copy()
    torque[1000:1080, 1] = torque[1000, 1]
    (finding,) = check(with_torque(clean, torque))
    assert (finding.kind, finding.severity) == ("frozen torque", "warning")
    assert finding.where == "run, joint 'joint_2'"
    assert "stands still in 1 stretch, " in finding.message
    assert float(finding.message.split("t = ")[1].split()[0]) == pytest.approx(5.0, abs=0.05)


def held_middle(clean, quantum):
    """The second joint held while the others turn slowly: its torque creeps through few levels."""
    position = np.sin(np.outer(clean.time, [0.2, 0.0, 0.3]))
    torque = planar_arm.holding_torque(position) + 0.05 * np.random.default_rng(1).standard_normal(position.shape)
    return replace(clean, position=position, torque=np.round(torque / quantum) * quantum)


@pytest.mark.parametrize("quantum", [0.02, 0.06])
def test_a_torque_that_creeps_and_stands_still(clean, quantum):
    """Nothing jumps: only the noise is gone, which is no more than a level or two."""
    held = held_middle(clean, quantum)
    assert np.mean(np.diff(held.torque[:, 1]) == 0) > 0.1
    torque = held.torque.copy()
    middle = np.median(torque[2000:2080, 1])
    torque[2000:2060, 1] = torque[2060, 1] = middle
    (finding,) = [found for found in check(with_torque(held, torque)) if found.kind == "frozen torque"]
    assert finding.where == "run, joint 'joint_2'"
    assert finding.message.startswith("its torque stands still in 1 stretch, ")


@pytest.mark.parametrize("quantum", [0.02, 0.06, 0.1, 0.2, 0.5, 2.0])
def test_a_torque_that_creeps_through_coarse_levels_is_sound(clean, quantum):
    held = held_middle(clean, quantum)
    assert [found for found in check(held) if found.kind == "frozen torque"] == []


def test_a_held_joint_without_noise_jumps_as_another_turns_back(clean):
    """Coulomb friction of one joint moves the torque of its neighbour."""
    phase = np.outer(clean.time, [0.5, 0.0, 0.0])
    torque = clean.torque.copy()
    torque[:, 1] = np.sign(np.cos(0.5 * clean.time)) + np.where(np.arange(N) % 400 < 20, 0.01 * (np.arange(N) % 20), 0)
    sound = replace(clean, position=np.sin(phase), torque=torque)
    assert [found for found in check(sound) if found.kind == "frozen torque"] == []


@pytest.mark.parametrize("length", [1, 30])
def test_a_torque_that_drops_to_zero(clean, length):
    torque = clean.torque + np.array([30.0, 0.0, 0.0])
    for first in (500, 900, 1700, 2600):
        torque[first : first + length, 0] = 0.0
    (finding,) = check(with_torque(clean, torque))
    assert (finding.kind, finding.where) == ("frozen torque", "run, joint 'joint_1'")
    assert f"falls to exactly 0 in 4 stretches, {4 * length} samples" in finding.message


def test_quantised_torques_that_cross_zero_are_sound(clean):
    torque = clean.torque + 3 * np.sin(1.3 * clean.time)[:, None]
    assert check(with_torque(clean, np.round(torque / 0.3) * 0.3)) == []


def test_a_torque_without_noise_at_constant_speed_is_sound(clean):
    """A vertical joint: nothing but Coulomb friction, which turns with the motion."""
    torque = clean.torque.copy()
    torque[:, 0] = np.sign(np.cos(0.5 * clean.time))
    assert check(with_torque(clean, torque)) == []


def test_an_arm_at_rest_may_repeat_itself(clean):
    rest = np.minimum(clean.time, 10.0)
    position = np.sin(np.outer(rest, [0.5, 1.7, 2.9]))
    torque = clean.torque.copy()
    torque[2000:] = torque[2000]
    assert check(replace(clean, position=position, torque=torque)) == []


def test_a_resting_joint_whose_current_is_below_the_resolution_does_not_stand_still(clean):
    """It flickers where its mean lies between two steps, and is silent where it does not: as motors at rest are."""
    position = clean.position.copy()
    position[:, 2] = 0.3
    torque = clean.torque.copy()
    mean = np.interp(clean.time, [0.0, 5.0, 5.2, 20.0], [0.49, 0.49, 0.0, 0.0])
    torque[:, 2] = 1e-3 * np.round(mean + np.random.default_rng(4).normal(0.0, 0.08, N))
    torque[3000, 2] = -9e-3
    found = check(replace(clean, position=position, torque=torque))
    assert [finding.kind for finding in found] == []
