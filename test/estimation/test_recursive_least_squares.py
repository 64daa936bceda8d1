"""Compare recursive least squares with batch fits and dense formulas."""

import numpy as np
import pytest

from dynid_ros.estimation.recursive_least_squares import (
    MIN_BLOCKS,
    MIN_INFORMATION,
    EstimateWalk,
    Innovation,
    SquareRootInformation,
)


def _draw_rows(rng: np.random.Generator, samples: int, m: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return regressors (N, m, k) with columns of different scale and right-hand sides (N, m) with unit noise."""
    matrix = rng.normal(size=(samples, m, k)) * np.logspace(0, -3, k)
    return matrix, matrix @ rng.normal(size=k) + rng.normal(size=(samples, m))


def test_without_forgetting_equals_the_batch_fit():
    matrix, right = _draw_rows(np.random.default_rng(0), 2000, 7, 30)
    state = SquareRootInformation(30)
    for a, b in zip(matrix, right, strict=True):
        state.update(np.column_stack([a, b]))
    tall = matrix.reshape(-1, 30)
    expected = np.linalg.lstsq(tall, right.ravel(), rcond=None)[0]
    np.testing.assert_allclose(state.solution, expected, rtol=1e-9)
    R, _ = state.factor
    np.testing.assert_allclose(R.T @ R, tall.T @ tall, rtol=1e-9, atol=1e-9 * np.abs(tall.T @ tall).max())


def test_innovations_match_a_kalman_filter():
    rng = np.random.default_rng(1)
    k = 4
    state = SquareRootInformation(k, deviation=2.0)
    estimate = np.zeros(k)
    covariance = 4.0 * np.eye(k)
    for _ in range(30):
        a = rng.normal(size=(3, k))
        b = rng.normal(size=3)
        innovation = state.update(np.column_stack([a, b]))
        spread = a @ covariance @ a.T
        np.testing.assert_allclose(innovation.error, b - a @ estimate, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(innovation.spread, np.diag(spread), rtol=1e-9)
        np.testing.assert_allclose(innovation.gain, covariance @ a.T, rtol=1e-8, atol=1e-10)
        gain = covariance @ a.T @ np.linalg.inv(spread + np.eye(3))
        estimate = estimate + gain @ (b - a @ estimate)
        covariance = covariance - gain @ a @ covariance


def test_directional_forgetting_matches_its_dense_formula():
    rng = np.random.default_rng(2)
    k = 5
    keep = 0.8
    state = SquareRootInformation(k, deviation=3.0)
    information = np.eye(k) / 9
    estimate = np.zeros(k)
    for i in range(60):
        a = rng.normal(size=(3, k)) * (1.0 if i < 30 else 1e-3)
        b = rng.normal(size=3)
        half = np.linalg.cholesky(information).T
        directions, singular, _ = np.linalg.svd(np.linalg.solve(half.T, a.T), full_matrices=False)
        forgotten = half.T @ (directions * np.minimum(1 - keep, singular**2)) @ directions.T @ half
        right = (information - forgotten) @ estimate + a.T @ b
        information = information - forgotten + a.T @ a
        estimate = np.linalg.solve(information, right)
        state.update(np.column_stack([a, b]), keep)
        R, _ = state.factor
        np.testing.assert_allclose(R.T @ R, information, rtol=1e-8, atol=1e-8 * np.abs(information).max())
        np.testing.assert_allclose(state.solution, estimate, rtol=1e-7, atol=1e-9)


def test_forgets_nothing_at_rest():
    rng = np.random.default_rng(3)
    state = SquareRootInformation(6)
    for _ in range(300):
        state.update(rng.normal(size=(3, 7)), 0.99)
    before = np.linalg.inv(state.factor[0])
    rest = rng.normal(size=(3, 7))
    for _ in range(20000):
        rows = rest.copy()
        rows[:, :-1] += 1e-4 * rng.normal(size=(3, 6))  # noise of the columns
        rows[:, -1] += rng.normal(size=3)
        state.update(rows, 0.99)
    after = np.linalg.inv(state.factor[0])
    # No direction loses information; those of the rest pose gain little.
    assert np.linalg.eigvalsh(before @ before.T - after @ after.T).min() > -1e-9
    errors = np.linalg.norm(np.linalg.qr(rest[:, :-1].T)[0].T @ after, axis=1)
    assert errors.min() > 0.02


def test_forgetting_follows_a_change():
    rng = np.random.default_rng(4)
    k = 3
    state = SquareRootInformation(k)
    for i in range(2000):
        a = rng.normal(size=(2, k))
        truth = np.full(k, 1.0 if i < 1000 else 2.0)
        state.update(np.column_stack([a, a @ truth + 0.1 * rng.normal(size=2)]), np.exp(-1 / 50))
    np.testing.assert_allclose(state.solution, 2.0, atol=0.1)


def test_forgetting_first_parameters_keeps_the_others():
    matrix, right = _draw_rows(np.random.default_rng(5), 100, 3, 4)
    state = SquareRootInformation(4)
    for a, b in zip(matrix, right, strict=True):
        state.update(np.column_stack([a, b]))
    R, _ = state.factor
    solution = state.solution
    covariance = np.linalg.inv(R.T @ R)
    state.forget(2)
    R, _ = state.factor
    np.testing.assert_allclose(state.solution[2:], solution[2:], rtol=1e-9)
    np.testing.assert_allclose(np.linalg.inv(R.T @ R)[2:, 2:], covariance[2:, 2:], rtol=1e-6)
    assert np.sqrt(np.linalg.inv(R.T @ R)[0, 0]) == pytest.approx(1e6, rel=1e-3)


@pytest.mark.parametrize("keep", [1.0, 0.97])
def test_responses_equal_solutions_of_considered_right_hand_sides(keep):
    rng = np.random.default_rng(7)
    matrix, right = _draw_rows(rng, 300, 3, 5)
    other = rng.normal(size=(300, 3, 2))
    state = SquareRootInformation(5, considered=2)
    separate = [SquareRootInformation(5) for _ in range(2)]
    for step, (a, b, c) in enumerate(zip(matrix, right, other, strict=True)):
        state.update(np.column_stack([a, b]), keep, c)
        for single, column in zip(separate, c.T, strict=True):
            single.update(np.column_stack([a, column]), keep)
        if step == 200:
            for one in (state, *separate):
                one.forget(2)
    for single, response in zip(separate, state.responses.T, strict=True):
        np.testing.assert_allclose(response, single.solution, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("keep", [1.0, 0.97])
def test_innovations_contain_effects_of_considered_right_hand_sides(keep):
    rng = np.random.default_rng(8)
    matrix, right = _draw_rows(rng, 20, 3, 5)
    other = rng.normal(size=(20, 3, 1))
    plain = SquareRootInformation(5, considered=1)
    changed = SquareRootInformation(5)
    for a, b, c in zip(matrix, right, other, strict=True):
        before = plain.update(np.column_stack([a, b]), keep, c)
        after = changed.update(np.column_stack([a, b + 0.5 * c[:, 0]]), keep)
        np.testing.assert_allclose(after.error - before.error, 0.5 * before.considered[:, 0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("part", "counts"), [(0.9, True), (1.1, False)])
def test_innovations_without_prediction_do_not_count(part, counts):
    walk = EstimateWalk(2)
    for _ in range(2 * MIN_BLOCKS):
        walk.add(Innovation(np.array([3.0]), np.array([part * MIN_INFORMATION]), np.ones((2, 1)), np.zeros((1, 0))))
    assert np.isfinite(walk.inflation).all() == counts
    if counts:
        assert walk.overall > 9.0 / (1.0 + part * MIN_INFORMATION)
