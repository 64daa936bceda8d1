"""Compare design criteria with NumPy's condition number and determinant, and gradients with finite differences."""

from itertools import combinations

import numpy as np
import pytest
from numerical_gradient import numerical_gradient

from dynid_ros.information.criteria import (
    CRITERIA,
    Condition,
    Determinant,
    condition_number,
    d_optimal,
    log_determinant,
    rank,
    whitening_axes,
)


def create_regressor(seed=0, rows=60, columns=7):
    """Return a random, badly scaled regressor (rows, columns)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, columns)) @ np.diag(rng.uniform(0.1, 10.0, columns)) @ rng.random((columns,) * 2)


def test_condition_number_matches_numpy():
    matrix = create_regressor()
    information = matrix.T @ matrix
    assert Condition(scaled=False).value(information) == pytest.approx(np.linalg.cond(matrix), rel=1e-6)
    scaled = matrix / np.linalg.norm(matrix, axis=0)
    assert Condition().value(information) == pytest.approx(np.linalg.cond(scaled), rel=1e-6)


def test_determinant_is_half_the_mean_logarithm_of_variances():
    matrix = create_regressor()
    covariance = np.linalg.inv(matrix.T @ matrix)
    expected = 0.5 * np.log(np.linalg.eigvalsh(covariance)).mean()
    assert Determinant().value(matrix.T @ matrix) == pytest.approx(expected)
    assert Determinant().value(4 * matrix.T @ matrix) == pytest.approx(expected - np.log(2.0))


@pytest.mark.parametrize("name", CRITERIA)
def test_rank_deficient_regressors_have_an_infinite_value(name):
    matrix = create_regressor()
    matrix[:, 3] = 0.0
    assert CRITERIA[name].value(matrix.T @ matrix) == np.inf


@pytest.mark.parametrize("sharpness", [2.0, 16.0])
@pytest.mark.parametrize("name", CRITERIA)
def test_criterion_gradient_matches_finite_differences(name, sharpness):
    matrix = create_regressor()
    information = matrix.T @ matrix / np.trace(matrix.T @ matrix)

    def value(square):
        return CRITERIA[name].smooth((square + square.T) / 2, sharpness)[0]

    _, gradient = CRITERIA[name].smooth(information, sharpness)
    smallest = np.linalg.eigvalsh(information)[0]
    expected = numerical_gradient(value, information, step=1e-3 * smallest)
    np.testing.assert_allclose((gradient + gradient.T) / 2, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_smooth_condition_number_converges_from_above():
    matrix = create_regressor()
    information = matrix.T @ matrix
    true = 2 * np.log(Condition().value(information))
    errors = [Condition().smooth(information, sharpness)[0] - true for sharpness in (1.0, 2.0, 4.0, 1000.0)]
    assert np.all(np.diff(errors) < 0)
    assert -1e-12 < errors[-1] < 1e-6, "an upper bound, except for rounding"


@pytest.mark.parametrize("seed", range(12))
def test_d_optimal_finds_the_best_of_all_subsets(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((13, 2, 4)) * rng.uniform(0.2, 2.0, (13, 1, 1))
    determinants = [log_determinant(rows[list(subset)]) for subset in combinations(range(13), 4)]
    chosen = d_optimal(rows, 4)
    assert len(set(chosen.tolist())) == 4
    assert log_determinant(rows[chosen]) == pytest.approx(max(determinants), abs=1e-9)
    assert max(determinants) > np.median(determinants) + 1.0


def test_whitening_makes_the_choice_independent_of_units():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 3, 5)) @ np.diag([1.0, 10.0, 0.01, 3.0, 1.0])
    rows[:, :, 4] = rows[:, :, 0] - 2 * rows[:, :, 3]
    rows = np.concatenate([rows, np.zeros((60, 3, 1))], axis=2)
    whitened = rows @ whitening_axes(rows)
    assert whitened.shape == (60, 3, 4)
    np.testing.assert_allclose(np.einsum("pmi,pmj->ij", whitened, whitened), 60 * np.eye(4), atol=1e-9)
    rescaled = rows * np.array([7.0, 0.1, 1e3, 1.0, 2.0, 1.0])
    assert set(d_optimal(whitened, 6).tolist()) == set(d_optimal(rescaled @ whitening_axes(rescaled), 6).tolist())


def test_reports_rank_deficiency():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((5, 2, 3))
    assert (rank(rows), rank(rows[:1])) == (3, 2)
    assert np.isfinite(condition_number(rows))
    assert condition_number(rows[:1]) == np.inf
    assert log_determinant(rows[:1]) == -np.inf
    dependent = np.concatenate([rows, rows[:, :, :1]], axis=2)
    assert condition_number(dependent) == np.inf
    assert rank(dependent) == 3
    assert condition_number(np.eye(3)[np.newaxis]) == pytest.approx(1.0)
