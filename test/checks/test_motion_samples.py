"""Test the low-passed samples of motion and torque on which checks are based."""

from dataclasses import replace

import numpy as np
import planar_arm
import pytest
from scipy.interpolate import CubicSpline

from dynid_ros.checks.motion_samples import _interpolate, motion_samples
from dynid_ros.files.disk_arrays import ROWS_PER_BLOCK
from dynid_ros.recording import Recording

ANGULAR_FREQUENCIES = np.array([2.0, 3.0, 4.0])


def compute_torque(time):
    """Return the true torques (n, 3) at some times."""
    return 5 * np.sin(np.outer(time, ANGULAR_FREQUENCIES) + 1)


def create_recording(duration=20.0, amplitude=1.0):
    """Return a sinusoidal motion with irregular time steps."""
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(0.008, 0.012, int(duration * 100)))
    q = amplitude * np.sin(np.outer(time, ANGULAR_FREQUENCIES)) + rng.normal(0, 1e-6, (len(time), 3))
    return Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), compute_torque(time))


def test_motion_and_torque_match_the_truth():
    samples = motion_samples([create_recording()])
    phase = np.outer(samples.time, ANGULAR_FREQUENCIES)
    np.testing.assert_allclose(samples.position, np.sin(phase), atol=2e-3)
    np.testing.assert_allclose(samples.velocity, ANGULAR_FREQUENCIES * np.cos(phase), atol=0.02)
    np.testing.assert_allclose(samples.acceleration, -(ANGULAR_FREQUENCIES**2) * np.sin(phase), atol=0.1)
    np.testing.assert_allclose(samples.torque, compute_torque(samples.time), atol=0.02)
    fast = np.abs(np.cos(phase)) > 0.8
    np.testing.assert_allclose(samples.direction[fast], np.sign(np.cos(phase))[fast], atol=0.1)


def test_delayed_torque_matches_the_truth():
    samples = motion_samples([create_recording()])
    np.testing.assert_allclose(samples.delayed_torque(0.013), compute_torque(samples.time + 0.013), atol=0.02)


def test_uses_recordings_of_different_rates_together():
    """The bandwidth of the fast motion exceeds half the rate of the other recording."""
    parts = []
    for rate, faster in ((100.0, 6.0), (5.0, 0.2)):
        time = np.arange(400) / rate
        q = np.sin(np.outer(time, faster * ANGULAR_FREQUENCIES))
        parts.append(Recording(planar_arm.JOINTS, time, q, np.full_like(q, np.nan), 5 * q))
    samples = motion_samples(parts)
    assert samples.bandwidth > 2.5
    assert {stretch.part for stretch in samples.stretches} == {0, 1}
    slow = next(stretch for stretch in samples.stretches if stretch.part == 1)
    expected = np.sin(np.outer(slow.time[slow.kept], 0.2 * ANGULAR_FREQUENCIES))
    np.testing.assert_allclose(slow.position[slow.kept], expected, atol=0.01)


def test_rounding_of_the_times_does_not_change_presliding_friction():
    """A duration of 0.01 s is two and a half steps at 250 Hz, which rounding turns into two or three."""
    time = np.arange(2500) / 250.0
    q = np.sin(np.outer(time, ANGULAR_FREQUENCIES))
    samples = []
    for change in (-1e-12, 1e-12):
        recording = Recording(planar_arm.JOINTS, time * (1 + change), q, np.full_like(q, np.nan), compute_torque(time))
        samples.append(motion_samples([recording]))
    np.testing.assert_allclose(samples[1].presliding[0], samples[0].presliding[0], atol=1e-6)


def test_thinning_selects_a_subset():
    samples = motion_samples([create_recording()])
    fewer = samples.thinned(100)
    assert len(fewer) <= 101 < len(samples)
    assert set(fewer.time) <= set(samples.time)


def test_ignores_reversals_and_channels_without_torque():
    recording = create_recording()
    torque = recording.torque.copy()
    torque[:, 1] = 3.0
    torque[:, 2] = np.nan
    samples = motion_samples([replace(recording, torque=torque)])
    assert samples.moving[:, 0].mean() == pytest.approx(1.0, abs=0.03)
    assert not samples.moving[:, 1:].any()
    slow = np.abs(np.cos(ANGULAR_FREQUENCIES[0] * samples.time)) < 0.015
    assert not samples.moving[slow, 0].any()


def test_omits_recordings_at_rest_or_too_short():
    still = create_recording(amplitude=0.0)
    short = create_recording(0.3)
    assert motion_samples([still, short]) is None
    samples = motion_samples([still, create_recording(), short])
    assert set(samples.part) == {1}


def test_interpolates_long_recordings_like_a_cubic_spline():
    rng = np.random.default_rng(0)
    time = np.arange(ROWS_PER_BLOCK + 5000) / 1000.0
    torque = np.cumsum(rng.normal(size=(len(time), 2)), axis=0)
    times = np.clip(time[10:-10:37] + 0.0123, time[0], time[-1])
    assert np.abs(_interpolate(time, torque, times) - CubicSpline(time, torque)(times)).max() < 1e-9
