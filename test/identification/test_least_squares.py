"""Least squares against numpy, and what it says of undetermined columns."""

import numpy as np
import pytest

from dynid_ros.estimation.least_squares import solve, solve_grouped


@pytest.fixture(name="problem")
def fixture_problem():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(60, 4)) * [1, 1e-3, 1e3, 1]
    truth = np.array([1.0, -2e3, 3e-3, 4.0])
    return matrix, truth, rng


def test_solution_and_covariance_match_numpy(problem):
    matrix, truth, rng = problem
    right = matrix @ truth + rng.normal(0, 0.1, 60)
    fit = solve(matrix, right)
    np.testing.assert_allclose(fit.solution, np.linalg.lstsq(matrix, right, rcond=None)[0], rtol=1e-9)
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(matrix.T @ matrix), rtol=1e-6)
    assert fit.rank == 4
    assert np.sum(fit.leverage) == pytest.approx(4)


def test_weights_count_rows(problem):
    matrix, truth, rng = problem
    right = matrix @ truth + rng.normal(0, 0.1, 60)
    weights = rng.integers(1, 4, 60)
    repeated = solve(np.repeat(matrix, weights, axis=0), np.repeat(right, weights))
    np.testing.assert_allclose(solve(matrix, right, weights).solution, repeated.solution, rtol=1e-9)


def test_undetermined_columns_are_marked_and_the_others_are_right(problem):
    matrix, truth, _ = problem
    doubled = np.column_stack([matrix, matrix[:, 0] - 2 * matrix[:, 3]])
    fit = solve(doubled, matrix @ truth)
    assert fit.rank == 4
    assert np.isinf(fit.condition_number)
    assert list(np.isinf(fit.inflation)) == [True, False, False, True, True]
    np.testing.assert_allclose(fit.solution[1:3], truth[1:3], rtol=1e-9)


def test_inflation_is_the_loss_against_orthogonal_columns():
    angle = np.deg2rad(10)
    t = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    one, two = np.cos(t), np.sin(t)
    matrix = np.column_stack([one, np.cos(angle) * one + np.sin(angle) * two])
    np.testing.assert_allclose(solve(matrix, one).inflation, 1 / np.sin(angle), rtol=1e-9)


def test_noise_of_each_group_is_found(problem):
    matrix, truth, rng = problem
    matrix = np.vstack([matrix] * 40)
    group = np.arange(len(matrix)) % 2
    right = matrix @ truth + rng.normal(0, np.where(group, 2.0, 0.1))
    fit, sigma = solve_grouped(matrix, right, group)
    np.testing.assert_allclose(sigma, [0.1, 2.0], rtol=0.06)
    assert np.all(np.abs(fit.solution - truth) < 4 * np.sqrt(np.diag(fit.covariance)))


def test_the_noise_of_one_group_is_the_textbook_one(problem):
    """Residual sum of squares over rows less columns."""
    matrix, truth, rng = problem
    right = matrix @ truth + rng.normal(0, 0.3, 60)
    fit, sigma = solve_grouped(matrix, right, np.zeros(len(matrix), int))
    np.testing.assert_allclose(sigma, np.sqrt(np.sum(fit.residual**2) / 56), rtol=1e-9)


def test_noise_is_estimated_from_four_degrees_of_freedom_on():
    """One unknown, 40 rows with much noise; that of fewer precise rows is taken as in the fit without weights."""
    rng = np.random.default_rng(8)
    for own in (4, 5):
        right = np.r_[rng.normal(0, 5.0, 40), 1.0 + rng.normal(0, 0.1, own)]
        group = np.r_[np.zeros(40, int), np.ones(own, int)]
        _, sigma = solve_grouped(np.ones((40 + own, 1)), right, group)
        first = np.sqrt(np.sum((right[40:] - right.mean()) ** 2) / (own - own / (40 + own)))
        assert sigma[1] == pytest.approx(first if own == 4 else right[40:].std(ddof=1), rel=1e-2 * (own == 5))


def test_small_group_is_not_called_exact():
    """Two rows of their own unknown could be fitted exactly and would then rule the rest."""
    rng = np.random.default_rng(2)
    matrix = np.vstack([np.column_stack([np.ones(50), np.zeros(50)]), [[1, 1], [1, 2]]])
    right = matrix @ [1.0, 3.0] + rng.normal(0, 0.1, 52)
    _, sigma = solve_grouped(matrix, right, np.r_[np.zeros(50, int), 1, 1])
    assert sigma[1] > 1e-3
