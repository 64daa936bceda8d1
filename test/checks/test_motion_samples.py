"""Low-passed samples of motion and torque."""

import numpy as np
import planar_arm
import pytest
from scipy.interpolate import CubicSpline

from dynid_ros.checks.motion_samples import _interpolate, motion_samples
from dynid_ros.files.disk_arrays import ROWS_PER_BLOCK
from dynid_ros.recording import Recording

RATES = np.array([2.0, 3.0, 4.0])


def torque_at(time):
    return 5 * np.sin(np.outer(time, RATES) + 1)


def recording(duration=20.0, amplitude=1.0):
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(0.008, 0.012, int(duration * 100)))
    q = amplitude * np.sin(np.outer(time, RATES)) + rng.normal(0, 1e-6, (len(time), 3))
    return Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), torque_at(time))


def test_motion_and_torque_are_those_of_the_same_times():
    samples = motion_samples([recording()])
    phase = np.outer(samples.time, RATES)
    np.testing.assert_allclose(samples.position, np.sin(phase), atol=2e-3)
    np.testing.assert_allclose(samples.velocity, RATES * np.cos(phase), atol=0.02)
    np.testing.assert_allclose(samples.acceleration, -(RATES**2) * np.sin(phase), atol=0.1)
    np.testing.assert_allclose(samples.torque, torque_at(samples.time), atol=0.02)
    fast = np.abs(np.cos(phase)) > 0.8
    np.testing.assert_allclose(samples.direction[fast], np.sign(np.cos(phase))[fast], atol=0.1)


def test_later_torque():
    samples = motion_samples([recording()])
    np.testing.assert_allclose(samples.delayed_torque(0.013), torque_at(samples.time + 0.013), atol=0.02)


def test_a_recording_at_a_low_rate_takes_part_beside_a_quick_one():
    """The band of the quick motion is beyond half the rate of the other."""
    parts = []
    for rate, faster in ((100.0, 6.0), (5.0, 0.2)):
        time = np.arange(400) / rate
        q = np.sin(np.outer(time, faster * RATES))
        parts.append(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), 5 * q))
    samples = motion_samples(parts)
    assert samples.bandwidth > 2.5
    assert {stretch.part for stretch in samples.stretches} == {0, 1}
    slow = next(stretch for stretch in samples.stretches if stretch.part == 1)
    expected = np.sin(np.outer(slow.time[slow.kept], 0.2 * RATES))
    np.testing.assert_allclose(slow.position[slow.kept], expected, atol=0.01)


def test_rounding_of_the_times_does_not_change_presliding_friction():
    """At 250 Hz, 0.01 s are two steps and a half, which rounding makes two or three."""
    time = np.arange(2500) / 250.0
    q = np.sin(np.outer(time, RATES))
    first, later = (
        motion_samples([Recording(planar_arm.JOINTS, time * (1 + change), q, np.full_like(q, np.nan), torque_at(time))])
        for change in (-1e-12, 1e-12)
    )
    np.testing.assert_allclose(later.presliding[0], first.presliding[0], atol=1e-6)


def test_fewer_samples_are_some_of_them():
    samples = motion_samples([recording()])
    fewer = samples.thinned(100)
    assert len(fewer) <= 101 < len(samples)
    assert set(fewer.time) <= set(samples.time)


def test_reversals_and_channels_without_torque_do_not_count():
    it = recording()
    torque = it.torque.copy()
    torque[:, 1], torque[:, 2] = 3.0, np.nan
    samples = motion_samples([Recording(it.joint_names, it.time, it.position, it.velocity, torque)])
    assert samples.moving[:, 0].mean() == pytest.approx(1.0, abs=0.03)
    assert not samples.moving[:, 1:].any()
    slow = np.abs(np.cos(RATES[0] * samples.time)) < 0.015
    assert not samples.moving[slow, 0].any()


def test_recordings_at_rest_or_too_short_are_left_out():
    still, short = recording(amplitude=0.0), recording(0.3)
    assert motion_samples([still, short]) is None
    samples = motion_samples([still, recording(), short])
    assert set(samples.part) == {1}


def test_torques_of_a_long_recording_are_delayed_as_those_of_a_short_one():
    rng = np.random.default_rng(0)
    time = np.arange(ROWS_PER_BLOCK + 5000) / 1000.0
    torque = np.cumsum(rng.normal(size=(len(time), 2)), axis=0)
    at = np.clip(time[10:-10:37] + 0.0123, time[0], time[-1])
    assert np.abs(_interpolate(time, torque, at) - CubicSpline(time, torque)(at)).max() < 1e-9
