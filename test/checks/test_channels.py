"""Test checks of single channels: clipping, velocities that contradict positions, and zero torques."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording, check

RATE_HZ = 200
N = 4000
ANGULAR_FREQUENCIES = np.array([0.5, 0.7, 0.9])


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    time = np.arange(N) / RATE_HZ
    phase = np.outer(time, ANGULAR_FREQUENCIES)
    q = np.sin(phase)
    qd = ANGULAR_FREQUENCIES * np.cos(phase)
    noise = rng.normal(size=(3, *q.shape))
    return Recording(planar_arm.JOINTS, time, q + 1e-5 * noise[0], qd + 0.003 * noise[1], noise[2], source="run")


def replace_channel(recording, name, joint, values):
    array = getattr(recording, name).copy()
    array[:, joint] = values
    return replace(recording, **{name: array})


def find_fault(recording):
    (finding,) = check(recording)
    return finding


@pytest.mark.parametrize(("channel", "limit"), [("position", 0.9), ("position", -0.8), ("velocity", 0.6)])
def test_reports_clipped_channels(clean, channel, limit):
    values = getattr(clean, channel)[:, 1]
    clipped = np.minimum(values, limit) if limit > 0 else np.maximum(values, limit)
    finding = find_fault(replace_channel(clean, channel, 1, clipped))
    assert (finding.severity, finding.kind, finding.where) == ("warning", "clipped channel", "run, joint 'joint_2'")
    assert f"its {channel} is cut off at {limit:g}: {np.sum(clipped == limit)} samples" in finding.message


def test_constant_speed_is_not_clipped():
    time = np.arange(N) / RATE_HZ
    speed = np.clip(3 * np.sin(0.6 * time), -1, 1)  # both velocity and motion are exactly at the limit
    q = np.outer(np.cumsum(speed) / RATE_HZ, [1.0, 0.8, 0.6])
    qd = np.outer(speed, [1.0, 0.8, 0.6])
    torque = np.random.default_rng(0).normal(size=q.shape)
    assert check(Recording(planar_arm.JOINTS, time, q, qd, torque)) == []


def test_dwells_between_motions_are_not_clipped():
    time = np.arange(N) / RATE_HZ
    s = np.clip((time % 5) / 3, 0, 1)
    profile = 10 * s**3 - 15 * s**4 + 6 * s**5
    path = np.where(time % 10 < 5, profile, 1 - profile)
    torque = np.random.default_rng(0).normal(size=(N, 3))
    q = np.outer(path, [1.0, -0.8, 0.6])
    assert check(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque)) == []


def test_slow_starts_from_rest_are_not_clipped(clean):
    """The joint leaves an extreme within a sample, but at a hundredth of its speed, as robots do."""
    before = np.maximum(5.0 - clean.time, 0.0)
    after = np.maximum(clean.time - 6.0, 0.0)
    q = clean.position.copy()
    q[:, 1] = 0.05 * before**2 + 0.02 * after + 0.02 * after**2 - 1.0
    assert check(replace(clean, position=q, velocity=np.full_like(q, np.nan))) == []


def test_simultaneous_stops_of_all_joints_are_not_clipped():
    """The positions are rounded; all joints stop from one sample to the next while still braking."""
    time = np.arange(N) / RATE_HZ
    s = np.minimum(time / 15.0, 1.0)
    path = s**2 - 0.5 * s**3
    q = np.round(np.outer(path, [1.0, -0.8, 0.6]), 5)
    torque = np.random.default_rng(0).normal(size=(N, 3))
    assert check(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque)) == []


@pytest.mark.parametrize(
    ("gain", "message"), [(-1.0, "-1 times it"), (np.rad2deg(1.0), "57 times it"), (0.5, "0.5 times")]
)
def test_reports_velocities_of_another_unit_or_sign(clean, gain, message):
    finding = find_fault(replace_channel(clean, "velocity", 2, gain * clean.velocity[:, 2]))
    assert (finding.severity, finding.kind) == ("warning", "velocity")
    assert message in finding.message


def test_does_not_judge_velocities_of_two_samples(clean):
    assert "only 2 samples" in find_fault(clean.slice(slice(0, 80, 40))).message


def test_does_not_judge_velocities_of_joints_at_rest(clean):
    resting = replace_channel(clean, "position", 0, 0.3 + 1e-5 * np.sin(np.arange(N)))
    findings = check(replace_channel(resting, "velocity", 0, 0.0))
    assert not [finding for finding in findings if "velocity" in finding.message]


def test_reports_velocities_of_another_joint(clean):
    finding = find_fault(replace_channel(clean, "velocity", 2, clean.velocity[:, 0]))
    assert "its velocity is not that of its position" in finding.message


@pytest.mark.parametrize("size", [0.0, 1e-308, 1e-39, 1e-12])
def test_torques_near_zero_in_all_joints_are_missing(clean, size):
    finding = find_fault(replace(clean, torque=size * clean.torque))
    assert (finding.severity, finding.kind) == ("error", "missing torque")


@pytest.mark.parametrize("size", [1e-308, 1e-20, 1e-9])
def test_reports_torques_near_zero_of_one_joint(clean, size):
    finding = find_fault(replace_channel(clean, "torque", 1, size * clean.torque[:, 1]))
    assert (finding.kind, finding.where) == ("constant channel", "run, joint 'joint_2'")
