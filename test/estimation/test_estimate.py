"""Test estimates of base parameters and the statistics of their intervals."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, f, norm, t

import dynid_ros
from dynid_ros.estimation.estimate import BaseEstimate, half_width, interval, normal_score, region_radius


def test_half_width_matches_students_distribution():
    dof = np.array([1.0, 3.5, 40.0, np.inf])
    for level in (0.5, 0.95, 0.997):
        expected = 2.0 * np.append(t.ppf((1 + level) / 2, dof[:-1]), norm.ppf((1 + level) / 2))
        np.testing.assert_allclose(half_width(2.0, dof, level), expected, rtol=1e-9)
    np.testing.assert_allclose(interval(1.0, 0.5, 10.0), 1.0 + 0.5 * t.ppf([0.025, 0.975], 10), rtol=1e-9)
    assert np.isnan(half_width(np.nan, 5.0))


def test_radius_of_confidence_regions_matches_scipy():
    assert region_radius(2) == pytest.approx(np.sqrt(chi2.ppf(0.95, 2)))
    assert region_radius(2, 7.0) == pytest.approx(np.sqrt(2 * f.ppf(0.95, 2, 7.0)))
    assert region_radius(1, 7.0) == pytest.approx(half_width(1.0, 7.0))


def test_normal_score_uses_the_smaller_tail():
    z = np.array([-40.0, -3.0, 0.0, 0.5, 40.0])  # tail probabilities of 40 underflow
    np.testing.assert_allclose(normal_score(norm.logcdf(z), norm.logsf(z)), z, atol=1e-12)


def test_quantiles_are_computed_in_a_single_module():
    package = Path(dynid_ros.__file__).parent
    quantile = re.compile(r"\bppf\(|stdtrit|ndtri|1\.9599|import (norm|t)\b")
    paths = [path for path in package.rglob("*.py") if quantile.search(path.read_text(encoding="utf-8"))]
    assert paths == [package / "estimation/estimate.py"]


ESTIMATE = BaseEstimate(
    names=("Izz1", "mcx2", "coulomb joint_1"),
    expressions=("Izz1 + Ixx2", "mcx2", "coulomb joint_1"),
    values=np.array([2.0, np.nan, -0.5]),
    covariance=np.diag([0.04, 1e-6, 0.01]),
    nominal=np.array([2.5, 0.3, np.nan]),
    dof=np.array([10.0, 10.0, 10.0]),
)


def test_standard_errors_are_missing_without_a_value():
    np.testing.assert_allclose(ESTIMATE.standard_errors, [0.2, np.nan, 0.1])
    np.testing.assert_allclose(ESTIMATE.relative_standard_errors, [0.1, np.nan, 0.2])


def test_relative_error_of_zero_is_infinite():
    zero = BaseEstimate(("a",), ("a",), np.zeros(1), np.eye(1), np.zeros(1), np.array([5.0]))
    assert np.isinf(zero.relative_standard_errors).all()
