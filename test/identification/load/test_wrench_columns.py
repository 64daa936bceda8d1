"""Gains of a wrist sensor's axes, from readings of one load."""

from dataclasses import replace

import numpy as np
import pytest
from wrench_experiments import FT_300, carried_motion, with_wrench, wrench_of

from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.load.wrench_columns import Gains, estimated_gains
from dynid_ros.identification.load.wrench_source import WrenchSource

CARRIED = carried_motion("ur10", 5.0, 3)


def gains_of(errors: np.ndarray, prior: float, noise: float = 1.0) -> Gains:
    sensor = replace(FT_300, gain_error=0.0, noise=(0.1 * noise, 0.005 * noise), bias=(0.0, 0.0), step=(0.0, 0.0))
    recording = CARRIED.record(sensor, np.random.default_rng(1))
    recording = with_wrench(recording, (1 + errors) * wrench_of(recording))
    problem = WrenchSource(lag=0.005, gain_error=0.0, joint_deflection=0.0).moving(CARRIED.robot, [recording])
    return estimated_gains(WeightedProblem(problem.equations.factors(problem.columns), problem.columns.own), prior, 10)


def test_gains_that_differ_are_found():
    errors = np.array([0.0, 0.01, -0.01, 0.0, 0.006, -0.006])
    found = gains_of(errors, 0.01, noise=0.3)
    wrong = found.errors - errors
    assert np.ptp(wrong[:3]) < 0.002
    assert np.ptp(wrong[3:]) < 0.003
    np.testing.assert_array_less(np.abs(wrong), 3.5 * np.sqrt(np.diag(found.covariance)))


def test_what_all_axes_have_in_common_stays_open():
    found = gains_of(np.full(6, 0.02), 0.01)
    assert np.all(np.abs(found.errors) < 0.004)
    assert np.sqrt(found.covariance.mean()) == pytest.approx(0.01 / np.sqrt(6), rel=0.05)
    np.testing.assert_allclose(found.load[0], 1.02 * CARRIED.load[0], rtol=0.005)


def test_more_samples_do_not_feign_a_gain():
    """Noise of the readings is not explained by readings that are smaller."""
    assert abs(gains_of(np.zeros(6), 0.01, noise=5.0).errors.mean()) < 0.002
