"""Test detection of torques that freeze or drop to zero for some time, and that similar sound torques are accepted."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording, check

RATE_HZ = 200
N = 20 * RATE_HZ


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE_HZ
    phase = np.outer(time, [0.5, 1.7, 2.9])
    torque = planar_arm.holding_torque(np.sin(phase)) + rng.normal(0, 0.05, phase.shape)
    return Recording(planar_arm.JOINTS, time, np.sin(phase), np.full_like(phase, np.nan), torque, source="run")


def list_kinds(recording):
    return [finding.kind for finding in check(recording)]


@pytest.mark.parametrize("quantum", [0.0, 0.2])
def test_reports_frozen_torques(clean, quantum):
    torque = clean.torque if not quantum else np.round(clean.torque / quantum) * quantum
    torque = torque.copy()
    torque[1000:1080, 1] = torque[1000, 1]
    (finding,) = check(replace(clean, torque=torque))
    assert (finding.kind, finding.severity) == ("frozen torque", "warning")
    assert finding.where == "run, joint 'joint_2'"
    assert "stands still in 1 stretch, " in finding.message
    assert float(finding.message.split("t = ")[1].split()[0]) == pytest.approx(5.0, abs=0.05)


def hold_second_joint(clean, quantum):
    """Return slow motion with the second joint held, whose quantized torque passes through few levels."""
    position = np.sin(np.outer(clean.time, [0.2, 0.0, 0.3]))
    torque = planar_arm.holding_torque(position) + 0.05 * np.random.default_rng(1).standard_normal(position.shape)
    return replace(clean, position=position, torque=np.round(torque / quantum) * quantum)


@pytest.mark.parametrize("quantum", [0.02, 0.06])
def test_reports_frozen_torques_in_slow_motion(clean, quantum):
    """The torque does not jump: only its noise of one or two levels disappears."""
    held = hold_second_joint(clean, quantum)
    assert np.mean(np.diff(held.torque[:, 1]) == 0) > 0.1
    torque = held.torque.copy()
    middle = np.median(torque[2000:2080, 1])
    torque[2000:2060, 1] = torque[2060, 1] = middle
    (finding,) = [finding for finding in check(replace(held, torque=torque)) if finding.kind == "frozen torque"]
    assert finding.where == "run, joint 'joint_2'"
    assert finding.message.startswith("its torque stands still in 1 stretch, ")


@pytest.mark.parametrize("quantum", [0.02, 0.06, 0.1, 0.2, 0.5, 2.0])
def test_accepts_slow_torques_with_coarse_levels(clean, quantum):
    assert "frozen torque" not in list_kinds(hold_second_joint(clean, quantum))


def test_accepts_jumps_at_reversals_of_other_joints(clean):
    """Coulomb friction of one joint changes the torque of its neighbour."""
    phase = np.outer(clean.time, [0.5, 0.0, 0.0])
    torque = clean.torque.copy()
    torque[:, 1] = np.sign(np.cos(0.5 * clean.time)) + np.where(np.arange(N) % 400 < 20, 0.01 * (np.arange(N) % 20), 0)
    sound = replace(clean, position=np.sin(phase), torque=torque)
    assert "frozen torque" not in list_kinds(sound)


@pytest.mark.parametrize("length", [1, 30])
def test_reports_torques_that_drop_to_zero(clean, length):
    torque = clean.torque + np.array([30.0, 0.0, 0.0])
    for first in (500, 900, 1700, 2600):
        torque[first : first + length, 0] = 0.0
    (finding,) = check(replace(clean, torque=torque))
    assert (finding.kind, finding.where) == ("frozen torque", "run, joint 'joint_1'")
    assert f"falls to exactly 0 in 4 stretches, {4 * length} samples" in finding.message


def test_accepts_quantized_torques_that_cross_zero(clean):
    torque = clean.torque + 3 * np.sin(1.3 * clean.time)[:, None]
    assert check(replace(clean, torque=np.round(torque / 0.3) * 0.3)) == []


def test_accepts_exact_torques_at_constant_speed(clean):
    """A vertical joint feels only Coulomb friction, which reverses with the motion."""
    torque = clean.torque.copy()
    torque[:, 0] = np.sign(np.cos(0.5 * clean.time))
    assert check(replace(clean, torque=torque)) == []


def test_accepts_repeated_torques_at_rest(clean):
    rest = np.minimum(clean.time, 10.0)
    position = np.sin(np.outer(rest, [0.5, 1.7, 2.9]))
    torque = clean.torque.copy()
    torque[2000:] = torque[2000]
    assert check(replace(clean, position=position, torque=torque)) == []


def test_accepts_currents_below_the_resolution_at_rest(clean):
    """The current of motors at rest flickers only where its mean lies between two quantization levels."""
    position = clean.position.copy()
    position[:, 2] = 0.3
    torque = clean.torque.copy()
    mean = np.interp(clean.time, [0.0, 5.0, 5.2, 20.0], [0.49, 0.49, 0.0, 0.0])
    torque[:, 2] = 1e-3 * np.round(mean + np.random.default_rng(4).normal(0.0, 0.08, N))
    torque[3000, 2] = -9e-3
    assert check(replace(clean, position=position, torque=torque)) == []
