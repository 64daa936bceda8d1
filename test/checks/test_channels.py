"""Faults of a wrist sensor's readings."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording, check

RATE, N = 200, 4000
RATES = np.array([0.5, 0.7, 0.9])


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE
    phase = np.outer(time, RATES)
    q, qd = np.sin(phase), RATES * np.cos(phase)
    noise = rng.normal(size=(3, *q.shape))
    return Recording(planar_arm.JOINTS, time, q + 1e-5 * noise[0], qd + 0.003 * noise[1], noise[2], source="run")


def changed_channel_checks(recording, name, joint, values):
    array = getattr(recording, name).copy()
    array[:, joint] = values
    return replace(recording, **{name: array})


def the_finding(recording):
    (finding,) = check(recording)
    return finding


@pytest.mark.parametrize(("channel", "limit"), [("position", 0.9), ("position", -0.8), ("velocity", 0.6)])
def test_clipped_channels_are_found(clean, channel, limit):
    values = getattr(clean, channel)[:, 1]
    clipped = np.minimum(values, limit) if limit > 0 else np.maximum(values, limit)
    finding = the_finding(changed_channel_checks(clean, channel, 1, clipped))
    assert (finding.severity, finding.kind, finding.where) == ("warning", "clipped channel", "run, joint 'joint_2'")
    assert f"its {channel} is cut off at {limit:g}: {np.sum(clipped == limit)} samples" in finding.message


def test_cruise_at_a_constant_speed_is_not_clipped():
    time = np.arange(N) / RATE
    speed = np.clip(3 * np.sin(0.6 * time), -1, 1)  # exactly at its limit, and so is the motion
    q = np.outer(np.cumsum(speed) / RATE, [1.0, 0.8, 0.6])
    qd = np.outer(speed, [1.0, 0.8, 0.6])
    torque = np.random.default_rng(0).normal(size=q.shape)
    assert check(Recording(planar_arm.JOINTS, time, q, qd, torque)) == []


def test_dwell_at_the_end_of_a_motion_is_not_clipped():
    time = np.arange(N) / RATE
    s = np.clip((time % 5) / 3, 0, 1)
    forth = 10 * s**3 - 15 * s**4 + 6 * s**5
    path = np.where(time % 10 < 5, forth, 1 - forth)
    torque = np.random.default_rng(0).normal(size=(N, 3))
    q = np.outer(path, [1.0, -0.8, 0.6])
    assert check(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque)) == []


def test_a_joint_that_creeps_from_its_rest_is_not_clipped(clean):
    """It leaves an extreme within a sample, but at a hundredth of its speed, as any arm can."""
    before, after = np.maximum(5.0 - clean.time, 0.0), np.maximum(clean.time - 6.0, 0.0)
    q = clean.position.copy()
    q[:, 1] = 0.05 * before**2 + 0.02 * after + 0.02 * after**2 - 1.0
    assert check(replace(clean, position=q, velocity=np.full_like(q, np.nan))) == []


def test_a_move_of_all_joints_that_ends_is_not_clipped():
    """Rounded, and still braking: it stops from one sample to the next, and all others with it."""
    time = np.arange(N) / RATE
    s = np.minimum(time / 15.0, 1.0)
    path = s**2 - 0.5 * s**3
    q = np.round(np.outer(path, [1.0, -0.8, 0.6]), 5)
    torque = np.random.default_rng(0).normal(size=(N, 3))
    assert check(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque)) == []


@pytest.mark.parametrize(
    ("gain", "said"), [(-1.0, "-1 times it"), (np.rad2deg(1.0), "57 times it"), (0.5, "0.5 times")]
)
def test_velocities_of_another_unit_or_sign_are_found(clean, gain, said):
    finding = the_finding(changed_channel_checks(clean, "velocity", 2, gain * clean.velocity[:, 2]))
    assert (finding.severity, finding.kind) == ("warning", "velocity")
    assert said in finding.message


def test_of_two_samples_no_velocities_are_told(clean):
    assert "only 2 samples" in the_finding(clean.slice(slice(0, 80, 40))).message


def test_of_a_joint_that_stands_the_velocity_is_not_looked_at(clean):
    stands = changed_channel_checks(clean, "position", 0, 0.3 + 1e-5 * np.sin(np.arange(N)))
    assert not [
        finding
        for finding in check(changed_channel_checks(stands, "velocity", 0, 0.0))
        if "velocity" in finding.message
    ]


def test_velocity_of_another_joint_is_found(clean):
    finding = the_finding(changed_channel_checks(clean, "velocity", 2, clean.velocity[:, 0]))
    assert "its velocity is not that of its position" in finding.message


@pytest.mark.parametrize("size", [0.0, 1e-308, 1e-39, 1e-12])
def test_torques_that_are_practically_zero_in_all_joints_are_none(clean, size):
    finding = the_finding(replace(clean, torque=size * clean.torque))
    assert (finding.severity, finding.kind) == ("error", "missing torque")


@pytest.mark.parametrize("size", [1e-308, 1e-20, 1e-9])
def test_a_torque_that_is_practically_zero_in_one_joint_is_named(clean, size):
    finding = the_finding(changed_channel_checks(clean, "torque", 1, size * clean.torque[:, 1]))
    assert (finding.kind, finding.where) == ("constant channel", "run, joint 'joint_2'")
