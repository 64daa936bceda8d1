"""Criteria against numpy's condition number and determinant, and their gradients against differences."""

import numpy as np
import pytest
from numerical_gradient import numerical_gradient

from dynid_ros.information.criteria import CRITERIA, Condition, Determinant


def regressor(seed=0, rows=60, columns=7):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, columns)) @ np.diag(rng.uniform(0.1, 10.0, columns)) @ rng.random((columns,) * 2)


def test_condition_number_is_numpys():
    matrix = regressor()
    information = matrix.T @ matrix
    assert Condition(scaled=False).value(information) == pytest.approx(np.linalg.cond(matrix), rel=1e-6)
    scaled = matrix / np.linalg.norm(matrix, axis=0)
    assert Condition().value(information) == pytest.approx(np.linalg.cond(scaled), rel=1e-6)


def test_scaled_condition_number_does_not_depend_on_units():
    matrix = regressor()
    other = matrix * 10.0 ** np.arange(-3, 4)
    assert Condition().value(other.T @ other) == pytest.approx(Condition().value(matrix.T @ matrix), rel=1e-6)


def test_determinant_is_half_the_mean_logarithm_of_variances():
    matrix = regressor()
    covariance = np.linalg.inv(matrix.T @ matrix)
    expected = 0.5 * np.log(np.linalg.eigvalsh(covariance)).mean()
    assert Determinant().value(matrix.T @ matrix) == pytest.approx(expected)
    assert Determinant().value(4 * matrix.T @ matrix) == pytest.approx(expected - np.log(2.0))


@pytest.mark.parametrize("name", CRITERIA)
def test_what_is_open_is_infinitely_bad(name):
    matrix = regressor()
    matrix[:, 3] = 0.0
    assert CRITERIA[name].value(matrix.T @ matrix) == np.inf


@pytest.mark.parametrize("sharpness", [2.0, 16.0])
@pytest.mark.parametrize("name", CRITERIA)
def test_gradient(name, sharpness):
    matrix = regressor()
    information = matrix.T @ matrix / np.trace(matrix.T @ matrix)

    def value(square):
        return CRITERIA[name].smooth((square + square.T) / 2, sharpness)[0]

    _, found = CRITERIA[name].smooth(information, sharpness)
    smallest = np.linalg.eigvalsh(information)[0]
    expected = numerical_gradient(value, information, step=1e-3 * smallest)
    np.testing.assert_allclose((found + found.T) / 2, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_smooth_condition_tends_to_the_true_one():
    matrix = regressor()
    information = matrix.T @ matrix
    true = 2 * np.log(Condition().value(information))
    errors = [Condition().smooth(information, sharpness)[0] - true for sharpness in (1.0, 2.0, 4.0, 1000.0)]
    assert np.all(np.diff(errors) < 0)
    assert -1e-12 < errors[-1] < 1e-6, "never below the true one, but for rounding"
