"""Sums of products against least squares on the rows themselves."""

from itertools import pairwise

import numpy as np
import pytest

from dynid_ros.estimation.normal_equations import JointGrams, gram_factor

COUNTS = (40, 0, 25)
UNITS = 10.0 ** np.array([-6.0, 0.0, 3.0, 5.0])


def _rows(rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    return [rng.normal(size=(sum(COUNTS), 4)) * UNITS, rng.normal(size=(sum(COUNTS), 2))], rng.normal(
        size=(sum(COUNTS), 2)
    )


def _summed(rows: list[np.ndarray], torque: np.ndarray) -> JointGrams:
    grams = JointGrams([matrix.shape[1] for matrix in rows], len(COUNTS))
    ends = np.cumsum([0, *COUNTS])
    for group, (start, end) in enumerate(pairwise(ends)):
        middle = start + (end - start) // 3
        for window in (slice(start, middle), slice(middle, end)):
            grams.add(group, [matrix[window] for matrix in rows], torque[window])
    return grams


def test_factors_have_the_solutions_and_residuals_of_all_rows():
    rows, torque = _rows(np.random.default_rng(0))
    grams = _summed(rows, torque)
    assert grams.counts.tolist() == list(COUNTS)
    for joint, (matrix, units) in enumerate(zip(rows, (UNITS, 1.0), strict=True)):
        expected, squares, *_ = np.linalg.lstsq(matrix / units, torque[:, joint], rcond=None)
        factor = grams.factor(joint)
        scaled, right = factor[:, :-1] / units, factor[:, -1]
        np.testing.assert_allclose(np.linalg.lstsq(scaled, right, rcond=None)[0], expected, rtol=1e-11)
        np.testing.assert_allclose(np.sum((right - scaled @ expected) ** 2), squares[0], rtol=1e-11)


def test_groups_are_summed_apart():
    rows, torque = _rows(np.random.default_rng(1))
    grams = _summed(rows, torque)
    for groups, window in (([0], slice(0, 40)), ([2], slice(40, 65)), (np.array([0, 1, 2]), slice(None))):
        for joint, matrix in enumerate(rows):
            own = np.column_stack([matrix, torque[:, joint]])[window]
            factor = grams.factor(joint, groups)
            np.testing.assert_allclose(factor.T @ factor, own.T @ own, rtol=1e-10, atol=1e-12)
    assert grams.factor(0, [1]).shape == (0, 5)


def test_factor_of_all_samples_follows_what_is_added():
    rows, torque = _rows(np.random.default_rng(5))
    own = np.column_stack([rows[1], torque[:, 1]])
    grams = JointGrams([4, 2])
    for times in (1, 2):
        grams.add(0, rows, torque)
        factor = grams.factor(1)
        np.testing.assert_allclose(factor.T @ factor, times * own.T @ own, rtol=1e-11)


def test_combinations_without_effect_are_zero():
    rng = np.random.default_rng(2)
    shown = rng.normal(size=(100, 2)) * [1e4, 1e-3]
    matrix = np.column_stack([shown, shown @ [1.0, 1e7], np.zeros(100)])
    factor = gram_factor(matrix.T @ matrix)
    assert factor.shape == (2, 4)
    assert (factor[:, 3] == 0.0).all()
    np.testing.assert_allclose(factor[:, :2] @ [1.0, 1e7], factor[:, 2], rtol=1e-6)


def test_torque_without_noise_leaves_no_residual():
    rng = np.random.default_rng(3)
    matrix, truth = rng.normal(size=(500, 6)), rng.normal(size=6)
    grams = JointGrams([6])
    grams.add(0, [matrix], (matrix @ truth)[:, None])
    factor = grams.factor(0)
    np.testing.assert_allclose(factor[:, -1], factor[:, :-1] @ truth, atol=1e-6 * np.linalg.norm(factor[:, -1]))


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
def test_rounding_is_below_what_noise_leaves_open(condition):
    rng = np.random.default_rng(4)
    left, _ = np.linalg.qr(rng.normal(size=(1000, 8)))
    right, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    matrix = 30.0 * left * np.geomspace(1.0, 1.0 / condition, 8) @ right
    torque = matrix @ rng.normal(size=8) + 1e-3 * rng.normal(size=1000)
    expected = np.linalg.lstsq(matrix, torque, rcond=None)[0]
    errors = 1e-3 * np.sqrt(np.diag(np.linalg.pinv(matrix.T @ matrix, rcond=0, hermitian=True)))
    grams = JointGrams([8])
    grams.add(0, [matrix], torque[:, None])
    factor = grams.factor(0)
    found = np.linalg.lstsq(factor[:, :-1], factor[:, -1], rcond=None)[0]
    assert np.abs((found - expected) / errors).max() < 1e-3
