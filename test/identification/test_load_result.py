"""Results of load identifications: physically possible bodies, intervals and remarks."""

import numpy as np
import pytest
from clean_recordings import arm
from scipy.stats import t as student_t
from static_wrench_arms import held_load

from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.identification.load.load_identification import LoadIdentification
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.identification.load_result import LoadResult, possible_load
from dynid_ros.model.inertia import LOAD_NAMES, from_center_of_mass, is_possible

LOAD = from_center_of_mass(2.0, np.array([0.02, 0.05, 0.1]), np.diag([0.01, 0.012, 0.004]))


def test_precise_load_is_unchanged():
    body = possible_load(LOAD, np.diag((1e-4 * np.abs(LOAD) + 1e-6) ** 2))
    np.testing.assert_allclose(body, LOAD, rtol=1e-3, atol=1e-5)


def test_impossible_estimate_becomes_possible_within_its_errors():
    rng = np.random.default_rng(0)
    error = np.array([0.02, *[0.003] * 3, *[0.02] * 6])
    outside = 0
    for _ in range(50):
        estimate = LOAD + error * rng.standard_normal(10)
        outside += not is_possible(estimate)
        body = possible_load(estimate, np.diag(error**2))
        assert is_possible(body)
        assert np.abs((body - estimate) / error).max() < 4.0
    assert outside > 25  # the errors exceed the inertia


def test_static_estimate_has_the_inertia_of_a_ball():
    body = possible_load(LOAD[:4], np.diag([1e-6] * 4))
    np.testing.assert_allclose(body[:4], LOAD[:4], atol=2e-3)
    assert is_possible(body)


def test_undetermined_direction_is_that_of_a_ball():
    # Only a combination of mass and first moment is determined.
    covariance = np.diag([1e-6] * 4)
    covariance[0] = covariance[:, 0] = 0.0
    body = possible_load(LOAD[:4], covariance)
    assert is_possible(body)
    np.testing.assert_allclose(body[1:4], LOAD[1:4], atol=5e-3)


def identify_static_load(readings: np.ndarray, sensor: WrenchSource) -> LoadResult:
    """Return the result of static poses with the wrench sensor readings (N, 6)."""
    held = held_load(0, 10)
    recording = held.record(readings, np.random.default_rng(0))
    return LoadIdentification(held.robot, sensor=sensor, motion="static").fit(recording)


def test_bias_has_the_sign_of_the_readings():
    """The bias is that of the readings for both sign conventions of the wrench."""
    bias = np.array([30.0, -20.0, 10.0, 3.0, -2.0, 1.0])
    wrench = held_load(0, 10).wrench
    for convention, sign in (("load_on_sensor", 1.0), ("sensor_on_load", -1.0)):
        summary = identify_static_load(sign * wrench + bias, WrenchSource(convention=convention)).summary()
        assert "bias of the sensor: force x 30 ±" in summary
        assert "torque y -2 ±" in summary


def test_known_gain_errors_do_not_reduce_degrees_of_freedom():
    """The known gain error is not estimated from ten samples; nine degrees of freedom would widen the intervals."""
    result = identify_static_load(held_load(0, 10).wrench, WrenchSource(gain_error=0.05, joint_deflection=0.0))
    assert result.estimate.dof[0] > 100


def make_result(values: np.ndarray, dof: np.ndarray) -> LoadResult:
    estimate = BaseEstimate(LOAD_NAMES, LOAD_NAMES, values, 1e-6 * np.eye(10), np.full(10, np.nan), dof)
    return LoadResult(arm("demo"), estimate, values, 3.0, (), np.empty(0), np.empty(0), 0, ("run",), {})


@pytest.mark.parametrize(("errors", "is_missing"), [(2.2, False), (3.0, True)])
def test_mass_below_zero_is_no_load_and_is_reported_if_significant(errors, is_missing):
    result = make_result(np.append(-errors * 1e-3, LOAD[1:]), np.full(10, np.inf))
    assert not result.is_loaded
    assert bool(result.missing) == is_missing


def test_center_and_inertia_use_degrees_of_freedom_of_their_parameters():
    dof = np.arange(3.0, 13.0)
    result = make_result(LOAD, dof)
    half = np.ptp(result.center_intervals(), axis=1) / 2
    np.testing.assert_allclose(half, student_t.ppf(0.975, dof[1:4]) * result.body.center_errors)
    assert result.inertia_freedom == dof[4]
