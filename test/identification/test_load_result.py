"""Bodies that loads can be."""

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


def test_load_that_is_well_known_stays_what_it_is():
    found = possible_load(LOAD, np.diag((1e-4 * np.abs(LOAD) + 1e-6) ** 2))
    np.testing.assert_allclose(found, LOAD, rtol=1e-3, atol=1e-5)


def test_impossible_estimates_become_bodies_within_their_errors():
    rng = np.random.default_rng(0)
    error = np.array([0.02, *[0.003] * 3, *[0.02] * 6])
    outside = 0
    for _ in range(50):
        estimate = LOAD + error * rng.standard_normal(10)
        outside += not is_possible(estimate)
        found = possible_load(estimate, np.diag(error**2))
        assert is_possible(found)
        assert np.abs((found - estimate) / error).max() < 4.0
    assert outside > 25  # such errors hide the inertia


def test_static_estimate_gets_the_inertia_of_a_ball():
    found = possible_load(LOAD[:4], np.diag([1e-6] * 4))
    np.testing.assert_allclose(found[:4], LOAD[:4], atol=2e-3)
    assert is_possible(found)


def test_open_directions_are_as_in_the_ball():
    # Mass and the first moment are only known together.
    covariance = np.diag([1e-6] * 4)
    covariance[0] = covariance[:, 0] = 0.0
    found = possible_load(LOAD[:4], covariance)
    assert is_possible(found)
    np.testing.assert_allclose(found[1:4], LOAD[1:4], atol=5e-3)


def _weighed(readings: np.ndarray, sensor: WrenchSource) -> LoadResult:
    held = held_load(0, 10)
    recording = held.record(readings, np.random.default_rng(0))
    return LoadIdentification(held.robot, sensor=sensor, motion="static").fit(recording)


def test_summary_has_the_bias_that_a_resting_sensor_reads():
    """Whoever feels the wrench: the sign is that of the readings."""
    bias = np.array([30.0, -20.0, 10.0, 3.0, -2.0, 1.0])
    wrench = held_load(0, 10).wrench
    for convention, sign in (("load_on_sensor", 1.0), ("sensor_on_load", -1.0)):
        summary = _weighed(sign * wrench + bias, WrenchSource(convention=convention)).summary()
        assert "bias of the sensor: force x 30 ±" in summary
        assert "torque y -2 ±" in summary


def test_known_errors_leave_a_resting_load_more_degrees_of_freedom():
    """Gains of known error are no estimate of ten samples: an interval by nine degrees of freedom is too wide."""
    result = _weighed(held_load(0, 10).wrench, WrenchSource(gain_error=0.05, joint_deflection=0.0))
    assert result.estimate.dof[0] > 100


def _result(values: np.ndarray, dof: np.ndarray) -> LoadResult:
    estimate = BaseEstimate(LOAD_NAMES, LOAD_NAMES, values, 1e-6 * np.eye(10), np.full(10, np.nan), dof)
    return LoadResult(arm("demo"), estimate, values, 3.0, (), np.empty(0), np.empty(0), 0, ("run",), {})


@pytest.mark.parametrize(("errors", "said"), [(2.2, False), (3.0, True)])
def test_a_mass_below_zero_is_no_load_unless_chance_does_not_explain_it(errors, said):
    result = _result(np.append(-errors * 1e-3, LOAD[1:]), np.full(10, np.inf))
    assert not result.is_loaded
    assert any("comes out below zero" in sentence for sentence in result.missing) == said


def test_centre_and_inertia_have_the_degrees_of_freedom_of_their_own_parameters():
    dof = np.arange(3.0, 13.0)
    result = _result(LOAD, dof)
    half = np.ptp(result.center_intervals(), axis=1) / 2
    np.testing.assert_allclose(half, student_t.ppf(0.975, dof[1:4]) * result.body.center_errors)
    assert result.inertia_freedom == dof[4]
