"""Compressed least squares against textbook least squares of all rows."""

import numpy as np
import pytest
from link_problems import DenseEquations, chain

from dynid_ros.estimation.normal_equations import LinkProblem
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns

CANDIDATES = (JointFriction(offset=True, smoothing=0.02), JointFriction(rotor_inertia=True, smoothing=0.02))
NOISE = np.array([0.05, 0.5, 5.0])


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [CANDIDATES] * 3)


@pytest.fixture(name="equations", scope="module")
def fixture_equations(columns):
    return DenseEquations(columns, (150, 130), noise=NOISE)


def feasible_gls(matrix: np.ndarray, torque: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solution, covariance and noise: a joint's variance is its residual sum of squares over its freedom, iterated."""
    n = torque.shape[1]
    noise = np.ones(n)
    for _ in range(200):
        A = np.concatenate([matrix[:, j] / noise[j] for j in range(n)])
        b = np.concatenate([torque[:, j] / noise[j] for j in range(n)])
        inverse = np.linalg.inv(A.T @ A)
        x = inverse @ A.T @ b
        leverage = np.einsum("ij,jk,ik->i", A, inverse, A).reshape(n, -1).sum(axis=1)
        noise = np.sqrt(np.sum((torque - np.einsum("njk,k->nj", matrix, x)) ** 2, axis=0) / (len(torque) - leverage))
    return x, inverse, noise


@pytest.mark.parametrize("choice", [(0, 0, 0), (1, 0, 1)])
def test_weighted_is_feasible_generalised_least_squares(columns, equations, choice):
    chosen = columns.chosen(choice)
    problem = LinkProblem(equations.factors(columns), chosen)
    fit, noise = problem.weighted()
    x, covariance, expected = feasible_gls(*equations.dense(chosen))
    np.testing.assert_allclose(noise, expected, rtol=1e-5)
    np.testing.assert_allclose(fit.solution, x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-4, atol=1e-7)
    assert fit.rank == problem.n_unknowns == len(chosen)


def test_ordinary_is_least_squares(columns, equations):
    chosen = columns.chosen([1, 1, 0])
    problem = LinkProblem(equations.factors(columns), chosen)
    matrix, torque = equations.dense(chosen)
    expected = np.linalg.lstsq(matrix.reshape(-1, len(chosen)), torque.ravel(), rcond=None)[0]
    np.testing.assert_allclose(problem.ordinary().solution, expected, rtol=1e-6, atol=1e-7)


def test_residuals_of_one_and_of_several_solutions(columns, equations):
    chosen = columns.chosen([0, 1, 0])
    problem = LinkProblem(equations.factors(columns), chosen)
    matrix, torque = equations.dense(chosen)
    several = np.random.default_rng(0).normal(size=(4, len(chosen)))
    expected = np.sqrt(np.mean((torque - np.einsum("njk,sk->snj", matrix, several)) ** 2, axis=1))
    np.testing.assert_allclose(problem.residual_rms(several), expected, rtol=1e-9)
    np.testing.assert_allclose(problem.residual_rms(several[2]), expected[2], rtol=1e-9)
    np.testing.assert_allclose(problem.torque_rms(), np.sqrt(np.mean(torque**2, axis=0)), rtol=1e-9)
    fast = np.arange(1, len(problem.factors.counts), 2)
    rows = equations.speed >= equations.fast
    assert problem.count(fast) == rows.sum()
    expected = np.sqrt(np.mean((torque - matrix @ several[0])[rows] ** 2, axis=0))
    np.testing.assert_allclose(problem.residual_rms(several[0], fast), expected, rtol=1e-9)
    assert np.all(problem.residual_rms(several[0], []) == 0)


def test_normal_equations_of_groups(columns, equations):
    chosen = columns.chosen([1, 0, 0])
    problem = LinkProblem(equations.factors(columns), chosen)
    groups = np.arange(0, len(problem.factors.counts), 2)
    matrix, torque = equations.dense(chosen, equations.speed < equations.fast)
    for j in range(3):
        square, moment, power = problem.gram(j, groups)
        np.testing.assert_allclose(square, matrix[:, j].T @ matrix[:, j], atol=1e-7)
        np.testing.assert_allclose(moment, matrix[:, j].T @ torque[:, j], atol=1e-7)
        assert power == pytest.approx(np.sum(torque[:, j] ** 2))


def test_columns_of_rounding_count_as_none(columns):
    """A locked joint leaves 1e-17 in columns that are zero in theory; brought to unit norm they would be decided."""
    equations = DenseEquations(columns, (300,), noise=0.1)
    chosen = np.arange(columns.size)
    empty = chosen[[2, 5]]
    for rows, own in zip(equations.rows, columns.of_joint, strict=True):
        rows[:, np.isin(own, empty)] *= 1e-16
    equations.torque = np.stack(
        [rows @ equations.solution[own] for rows, own in zip(equations.rows, columns.of_joint, strict=True)], axis=1
    )
    equations.torque += 0.1 * np.random.default_rng(1).normal(size=equations.torque.shape)
    fit, noise = LinkProblem(equations.factors(columns), chosen).weighted()
    assert fit.rank == len(chosen) - 2
    assert list(np.flatnonzero(np.isinf(fit.inflation))) == [2, 5]
    assert np.all(fit.solution[[2, 5]] == 0)
    others = np.delete(np.arange(len(chosen)), [2, 5])
    np.testing.assert_allclose(fit.solution[others], equations.solution[chosen[others]], atol=0.1)
    np.testing.assert_allclose(noise, 0.1, rtol=0.15)


def test_torque_without_noise_does_not_divide_by_zero(columns):
    equations = DenseEquations(columns, (200,), noise=0.0)
    chosen = np.arange(columns.size)
    fit, noise = LinkProblem(equations.factors(columns), chosen).weighted()
    np.testing.assert_allclose(fit.solution, equations.solution, rtol=1e-6, atol=1e-6)
    assert np.all(noise > 0)
    equations.torque[:, 1] = 0.0
    fit, noise = LinkProblem(equations.factors(columns), chosen).weighted()
    assert np.isfinite(fit.solution).all()
    assert np.all(noise > 0)
