"""Filters that torques may have passed before they were recorded."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.recording import Recording
from dynid_ros.recording.checks.finding import LOW_PASSED
from dynid_ros.recording.checks.low_pass import FILTERS, check_contents
from dynid_ros.recording.checks.torque_fit import motion_samples
from dynid_ros.signals import LowPass


@pytest.mark.parametrize("kind", FILTERS)
def test_what_was_before_the_record_is_its_first_value(kind):
    values = 3.0 + np.random.default_rng(0).normal(size=(200, 2))
    long = np.concatenate([np.repeat(values[:1], 2000, axis=0), values])
    if kind in FILTERS[2:]:  # with delay: nothing that comes after is known to them
        np.testing.assert_allclose(kind(values, 5.0, 100.0), kind(long, 5.0, 100.0)[2000:], atol=1e-9)
        np.testing.assert_allclose(kind(values[:50], 5.0, 100.0), kind(values, 5.0, 100.0)[:50], atol=1e-12)
    np.testing.assert_allclose(kind(long[:2000], 5.0, 100.0), long[:2000], rtol=1e-9)


@pytest.mark.parametrize(("cutoff", "told"), [(2.5, True), (None, False)])
def test_positions_and_torques_without_noise_above_the_motion_are_told(cutoff, told):
    rng, time = np.random.default_rng(0), np.arange(6000) / 100.0
    motion = np.sin(np.outer(time, [3.0, 4.0, 5.0]))
    position, torque = motion + 1e-5 * rng.normal(size=motion.shape), motion + 0.1 * rng.normal(size=motion.shape)
    if cutoff:
        position, torque = (LowPass(cutoff, 100.0).filter(values) for values in (position, torque))
    recording = Recording(planar_arm.JOINTS, time, position, np.full_like(motion, np.nan), torque, source="run")
    samples = motion_samples([recording])
    assert 0.7 < samples.bandwidth < 2.5
    findings = list(check_contents(samples, "run"))
    assert [finding.kind for finding in findings] == [LOW_PASSED] * told
