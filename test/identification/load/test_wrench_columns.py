"""Gains of a wrist sensor's axes, estimated from readings of one load."""

from dataclasses import replace

import numpy as np
import pytest
from wrench_experiments import FT_300, carried_motion, with_wrench, wrench_of

from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.load.wrench_columns import Gains, estimated_gains
from dynid_ros.identification.load.wrench_source import WrenchSource

CARRIED = carried_motion("ur10", 5.0, 3)


def estimate_gains(errors: np.ndarray, prior: float, noise: float = 1.0) -> Gains:
    sensor = replace(FT_300, gain_error=0.0, noise=(0.1 * noise, 0.005 * noise), bias=(0.0, 0.0), step=(0.0, 0.0))
    recording = CARRIED.record(sensor, np.random.default_rng(1))
    recording = with_wrench(recording, (1 + errors) * wrench_of(recording))
    problem = WrenchSource(lag=0.005, gain_error=0.0, joint_deflection=0.0).moving(CARRIED.robot, [recording])
    return estimated_gains(WeightedProblem(problem.equations.factors(problem.columns), problem.columns.own), prior, 10)


def test_estimates_differences_of_gains():
    errors = np.array([0.0, 0.01, -0.01, 0.0, 0.006, -0.006])
    gains = estimate_gains(errors, 0.01, noise=0.3)
    error = gains.errors - errors
    assert np.ptp(error[:3]) < 0.002
    assert np.ptp(error[3:]) < 0.003
    np.testing.assert_array_less(np.abs(error), 3.5 * np.sqrt(np.diag(gains.covariance)))


def test_common_gain_is_undetermined():
    gains = estimate_gains(np.full(6, 0.02), 0.01)
    assert np.all(np.abs(gains.errors) < 0.004)
    assert np.sqrt(gains.covariance.mean()) == pytest.approx(0.01 / np.sqrt(6), rel=0.05)
    np.testing.assert_allclose(gains.load[0], 1.02 * CARRIED.load[0], rtol=0.005)


def test_noise_causes_no_gain_error():
    """Noise of the readings must not be explained by smaller gains."""
    assert abs(estimate_gains(np.zeros(6), 0.01, noise=5.0).errors.mean()) < 0.002
