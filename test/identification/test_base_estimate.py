"""What is said of base parameters, and what is not."""

import json

import numpy as np
import pytest

from dynid_ros.estimation.estimate import KEY, BaseEstimate

ESTIMATE = BaseEstimate(
    names=("Izz1", "mcx2", "coulomb joint_1"),
    expressions=("Izz1 + Ixx2", "mcx2", "coulomb joint_1"),
    values=np.array([2.0, np.nan, -0.5]),
    covariance=np.diag([0.04, 1e-6, 0.01]),
    nominal=np.array([2.5, 0.3, np.nan]),
    freedom=np.array([10.0, 10.0, 10.0]),
)
T_975 = 2.228138852  # Student's t with 10 degrees of freedom, from tables


def test_errors_where_there_is_a_value():
    np.testing.assert_allclose(ESTIMATE.standard_errors, [0.2, np.nan, 0.1])
    np.testing.assert_allclose(ESTIMATE.relative_standard_errors, [0.1, np.nan, 0.2])


def test_intervals_are_students():
    low, high = ESTIMATE.confidence_intervals().T
    np.testing.assert_allclose(low, [2 - 0.2 * T_975, np.nan, -0.5 - 0.1 * T_975])
    np.testing.assert_allclose(high, [2 + 0.2 * T_975, np.nan, -0.5 + 0.1 * T_975])
    assert np.all(np.diff(ESTIMATE.confidence_intervals(0.5)[[0, 2]]) < (high - low)[[0, 2], None])


def test_what_is_not_known_does_not_differ():
    assert list(ESTIMATE.differs_from_nominal()) == [True, False, False]
    assert list(ESTIMATE.differs_from_nominal(0.98)) == [False, False, False]


def test_entries_of_the_file_hold_no_nan():
    assert ESTIMATE.document() == [
        {"expression": "Izz1 + Ixx2", "value": 2.0, "std": pytest.approx(0.2), KEY: 10.0, "urdf": 2.5},
        {"expression": "mcx2", "value": None, "std": None, KEY: 10.0, "urdf": 0.3},
        {"expression": "coulomb joint_1", "value": -0.5, "std": pytest.approx(0.1), KEY: 10.0, "urdf": None},
    ]
    json.dumps(ESTIMATE.document(), allow_nan=False)


def test_a_value_of_zero_has_no_finite_relative_error():
    zero = BaseEstimate(("a",), ("a",), np.zeros(1), np.eye(1), np.zeros(1), np.array([5.0]))
    assert np.isinf(zero.relative_standard_errors).all()
