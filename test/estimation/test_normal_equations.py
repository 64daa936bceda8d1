"""Compare normal equations with least squares of the rows themselves."""

from itertools import pairwise

import numpy as np
import pytest
from link_problems import DenseEquations, chain

from dynid_ros.estimation.normal_equations import GroupedNormalEquations, NormalEquations, WeightedProblem
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns

CANDIDATES = (JointFriction(offset=True, smoothing=0.02), JointFriction(rotor_inertia=True, smoothing=0.02))
NOISE_NM = np.array([0.05, 0.5, 5.0])


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [CANDIDATES] * 3)


@pytest.fixture(name="equations", scope="module")
def fixture_equations(columns):
    return DenseEquations(columns, (150, 130), noise=NOISE_NM)


def iterate_weights(matrix: np.ndarray, torque: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return solution, covariance and noise of feasible generalized least squares: sum of squares over freedom."""
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
def test_weighted_solution_matches_feasible_generalized_least_squares(columns, equations, choice):
    chosen = columns.chosen([CANDIDATES[index] for index in choice])
    problem = WeightedProblem(equations.factors(columns), chosen)
    fit, noise = problem.weighted()
    x, covariance, expected = iterate_weights(*equations.dense(chosen))
    np.testing.assert_allclose(noise, expected, rtol=1e-5)
    np.testing.assert_allclose(fit.solution, x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-4, atol=1e-7)
    assert fit.rank == problem.n_unknowns == len(chosen)


def test_ordinary_solution_matches_least_squares(columns, equations):
    chosen = columns.chosen([CANDIDATES[index] for index in (1, 1, 0)])
    problem = WeightedProblem(equations.factors(columns), chosen)
    matrix, torque = equations.dense(chosen)
    expected = np.linalg.lstsq(matrix.reshape(-1, len(chosen)), torque.ravel(), rcond=None)[0]
    np.testing.assert_allclose(problem.ordinary().solution, expected, rtol=1e-6, atol=1e-7)


def test_residuals_match_those_of_all_rows(columns, equations):
    chosen = columns.chosen([CANDIDATES[index] for index in (0, 1, 0)])
    problem = WeightedProblem(equations.factors(columns), chosen)
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


def test_normal_equations_of_groups_match_their_rows(columns, equations):
    chosen = columns.chosen([CANDIDATES[index] for index in (1, 0, 0)])
    problem = WeightedProblem(equations.factors(columns), chosen)
    groups = np.arange(0, len(problem.factors.counts), 2)
    matrix, torque = equations.dense(chosen, equations.speed < equations.fast)
    for j in range(3):
        square, moment, power = problem.gram(j, groups)
        np.testing.assert_allclose(square, matrix[:, j].T @ matrix[:, j], atol=1e-7)
        np.testing.assert_allclose(moment, matrix[:, j].T @ torque[:, j], atol=1e-7)
        assert power == pytest.approx(np.sum(torque[:, j] ** 2))


def test_ignores_columns_of_rounding_errors(columns):
    """A locked joint leaves 1e-17 in columns that are zero in theory; with unit norm they would seem determined."""
    equations = DenseEquations(columns, (300,), noise=0.1)
    chosen = np.arange(columns.size)
    empty = chosen[[2, 5]]
    for rows, columns_of_joint in zip(equations.rows, columns.of_joint, strict=True):
        rows[:, np.isin(columns_of_joint, empty)] *= 1e-16
    equations.torque = np.stack(
        [
            rows @ equations.solution[columns_of_joint]
            for rows, columns_of_joint in zip(equations.rows, columns.of_joint, strict=True)
        ],
        axis=1,
    )
    equations.torque += 0.1 * np.random.default_rng(1).normal(size=equations.torque.shape)
    fit, noise = WeightedProblem(equations.factors(columns), chosen).weighted()
    assert fit.rank == len(chosen) - 2
    assert list(np.flatnonzero(np.isinf(fit.inflation))) == [2, 5]
    assert np.all(fit.solution[[2, 5]] == 0)
    others = np.delete(np.arange(len(chosen)), [2, 5])
    np.testing.assert_allclose(fit.solution[others], equations.solution[chosen[others]], atol=0.1)
    np.testing.assert_allclose(noise, 0.1, rtol=0.15)


def test_exact_torques_keep_noise_positive(columns):
    equations = DenseEquations(columns, (200,), noise=0.0)
    chosen = np.arange(columns.size)
    fit, noise = WeightedProblem(equations.factors(columns), chosen).weighted()
    np.testing.assert_allclose(fit.solution, equations.solution, rtol=1e-6, atol=1e-6)
    assert np.all(noise > 0)
    equations.torque[:, 1] = 0.0
    fit, noise = WeightedProblem(equations.factors(columns), chosen).weighted()
    assert np.isfinite(fit.solution).all()
    assert np.all(noise > 0)


COUNTS = (40, 0, 25)
UNITS = 10.0 ** np.array([-6.0, 0.0, 3.0, 5.0])


def _draw_rows(rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    size = sum(COUNTS)
    rows = [rng.normal(size=(size, 4)) * UNITS, rng.normal(size=(size, 2))]
    return rows, rng.normal(size=(size, 2))


def _sum_rows(rows: list[np.ndarray], torque: np.ndarray) -> GroupedNormalEquations:
    grams = GroupedNormalEquations([matrix.shape[1] for matrix in rows], len(COUNTS))
    ends = np.cumsum([0, *COUNTS])
    for group, (start, end) in enumerate(pairwise(ends)):
        middle = start + (end - start) // 3
        for window in (slice(start, middle), slice(middle, end)):
            grams.add(group, [matrix[window] for matrix in rows], torque[window])
    return grams


def test_factors_preserve_solutions_and_residuals():
    rows, torque = _draw_rows(np.random.default_rng(0))
    grams = _sum_rows(rows, torque)
    assert grams.factor(0, [1]).shape == (0, 5)
    assert grams.counts.tolist() == list(COUNTS)
    for joint, (matrix, units) in enumerate(zip(rows, (UNITS, 1.0), strict=True)):
        expected, squares, *_ = np.linalg.lstsq(matrix / units, torque[:, joint], rcond=None)
        factor = grams.factor(joint)
        scaled = factor[:, :-1] / units
        right = factor[:, -1]
        np.testing.assert_allclose(np.linalg.lstsq(scaled, right, rcond=None)[0], expected, rtol=1e-11)
        np.testing.assert_allclose(np.sum((right - scaled @ expected) ** 2), squares[0], rtol=1e-11)


def test_factor_includes_all_added_samples():
    rows, torque = _draw_rows(np.random.default_rng(5))
    augmented = np.column_stack([rows[1], torque[:, 1]])
    grams = GroupedNormalEquations([4, 2])
    for times in (1, 2):
        grams.add(0, rows, torque)
        factor = grams.factor(1)
        np.testing.assert_allclose(factor.T @ factor, times * augmented.T @ augmented, rtol=1e-11)


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
def test_rounding_errors_stay_below_the_noise(condition):
    rng = np.random.default_rng(4)
    left, _ = np.linalg.qr(rng.normal(size=(1000, 8)))
    right, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    matrix = 30.0 * left * np.geomspace(1.0, 1.0 / condition, 8) @ right
    torque = matrix @ rng.normal(size=8) + 1e-3 * rng.normal(size=1000)
    expected = np.linalg.lstsq(matrix, torque, rcond=None)[0]
    errors = 1e-3 * np.sqrt(np.diag(np.linalg.pinv(matrix.T @ matrix, rcond=0, hermitian=True)))
    grams = GroupedNormalEquations([8])
    grams.add(0, [matrix], torque[:, None])
    factor = grams.factor(0)
    solution = np.linalg.lstsq(factor[:, :-1], factor[:, -1], rcond=None)[0]
    assert np.abs((solution - expected) / errors).max() < 1e-3


@pytest.fixture(name="plain_columns", scope="module")
def fixture_plain_columns():
    return LinkColumns(chain(), [(JointFriction(offset=True, rotor_inertia=True),)] * 3)


def compute_sum_of_squares(factor: np.ndarray, x: np.ndarray) -> float:
    return float(np.sum((factor @ np.append(x, -1.0)) ** 2))


def assign_groups(equations: DenseEquations, factors: NormalEquations) -> np.ndarray:
    """Return the group (N,) of each sample by time and speed."""
    first = np.cumsum([0, *factors.stretches])[equations.owner]
    count = np.array(factors.stretches)[equations.owner]
    segment = first + np.minimum((equations.time / 10 * count).astype(int), count - 1)
    return 2 * segment + (equations.speed >= equations.fast)


@pytest.mark.parametrize("sizes", [(400,), (1000, 60), (300, 7, 3000)])
def test_sums_of_squares_match_all_rows(plain_columns, sizes):
    equations = DenseEquations(plain_columns, sizes)
    factors = equations.factors(plain_columns)
    group = assign_groups(equations, factors)
    np.testing.assert_array_equal(factors.counts, np.bincount(group, minlength=len(factors.counts)))
    rng = np.random.default_rng(1)
    some = rng.permutation(np.unique(group))[: len(np.unique(group)) // 2]
    for joint, rows in enumerate(equations.rows):
        x = rng.normal(size=rows.shape[1])
        errors = (rows @ x - equations.torque[:, joint]) ** 2
        assert compute_sum_of_squares(factors.factor(joint), x) == pytest.approx(errors.sum())
        assert compute_sum_of_squares(factors.factor(joint, some), x) == pytest.approx(
            errors[np.isin(group, some)].sum()
        )
        assert compute_sum_of_squares(factors.factor(joint, []), x) == 0
        one = factors.gram(int(some[0]), joint)
        dense = np.column_stack([rows, equations.torque[:, joint]])[group == some[0]]
        np.testing.assert_allclose(one, dense.T @ dense, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(factors.norms(joint), np.linalg.norm(rows, axis=0))
        dense = np.column_stack([rows, equations.torque[:, joint]])[equations.kind == 3]
        np.testing.assert_allclose(factors.kind_gram(3, joint), dense.T @ dense, rtol=1e-9, atol=1e-9)
    assert factors.kinds == sorted(set(equations.kind))


def test_size_of_factors_does_not_depend_on_samples(plain_columns):
    for size in (100, 5000):
        factors = DenseEquations(plain_columns, (size,)).factors(plain_columns)
        assert all(
            len(factors.factor(j)) <= len(columns_of_joint) + 1
            for j, columns_of_joint in enumerate(plain_columns.of_joint)
        )


@pytest.mark.parametrize("size", [1, 24, 25, 120, 499, 500, 10**6])
def test_segments_are_long_enough_and_parts_consecutive(plain_columns, size):
    factors = NormalEquations(plain_columns, [size])
    (count,) = factors.stretches
    assert 1 <= count <= 20
    assert count == 1 or size / count >= 25
    assert len(factors.counts) == 2 * count == 2 * len(factors.parts)
    assert np.all(np.diff(factors.parts) >= 0)
    if count >= 5:
        lengths = np.bincount(factors.parts, minlength=5)
        assert lengths.min() >= 1
        assert np.ptp(lengths) <= 1


def test_short_recordings_form_separate_parts(plain_columns):
    factors = NormalEquations(plain_columns, [30] * 5)
    assert factors.stretches == [1] * 5
    assert sorted(factors.parts) == [0, 1, 2, 3, 4]
