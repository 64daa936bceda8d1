"""Test the folds of cross-validation, and compare their losses with ridge regression of all rows."""

import numpy as np
import pytest
from link_problems import DenseEquations, chain

from dynid_ros.estimation.cross_validation import FoldGrams, SharedColumnLosses, folds
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns

NOISE = np.array([0.1, 1.0, 0.3])


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [(JointFriction(offset=True),)] * 3)


def test_folds_hold_out_time_speed_and_kind_of_motion(columns):
    factors = DenseEquations(columns, (500, 300)).factors(columns)
    parts, (fast, slow), kinds = split_folds(factors)
    groups_by_time = np.arange(len(factors.counts))
    groups_by_kind = len(factors.counts) + np.arange(len(factors.kinds))
    for folds_, groups in ((parts, groups_by_time), (kinds, groups_by_kind)):
        np.testing.assert_array_equal(np.sort(np.concatenate([fold.test for fold in folds_])), groups)
        for fold in folds_:
            assert not set(fold.train) & set(fold.test)
            np.testing.assert_array_equal(np.union1d(fold.train, fold.test), groups)
    assert set(fast.test % 2) == set(slow.train % 2) == {1}
    assert set(fast.train % 2) == set(slow.test % 2) == {0}
    assert sum(fold.share for fold in folds(factors)) == pytest.approx(1)
    assert factors.count(groups_by_kind) == factors.count(groups_by_time) == 800


def split_folds(factors):
    """Return the folds by time, by speed and by kind of motion."""
    all_folds = folds(factors)
    assert len(all_folds) == 5 + 2 + 4
    return all_folds[:5], all_folds[5:7], all_folds[7:]


def test_folds_by_time_are_consecutive_segments_of_each_recording(columns):
    equations = DenseEquations(columns, (500, 500))
    factors = equations.factors(columns)
    for number, fold in enumerate(split_folds(factors)[0]):
        assert np.all(factors.parts[fold.test // 2] == number)
        for recording in (0, 1):
            segments = fold.test[fold.test // 40 == recording] // 2
            assert len(set(segments)) == 4  # a fifth of twenty segments
            assert np.ptp(segments) == 3  # consecutive


def test_folds_of_slow_and_of_short_recordings(columns):
    slow_folds = folds(DenseEquations(columns, (500,), fast=0.0).factors(columns))
    assert len(slow_folds) == 5 + 4
    assert sum(fold.share for fold in slow_folds) == pytest.approx(1)
    assert folds(DenseEquations(columns, (20,)).factors(columns)) == []
    assert len(folds(DenseEquations(columns, (20, 20)).factors(columns))) == 2 + 2 + 4


def fit_ridge(equations, chosen, fold, factors, penalty, center):
    """Return the mean squared errors over noise squared (n,) of the held-out samples, and the solution."""
    count = np.array(factors.stretches)[equations.owner]
    first = np.cumsum([0, *factors.stretches])[equations.owner]
    group = 2 * (first + np.minimum((equations.time / 10 * count).astype(int), count - 1))
    group += equations.speed >= equations.fast
    if min(fold.test) >= len(factors.counts):
        group = len(factors.counts) + np.searchsorted(factors.kinds, equations.kind)
    train = np.isin(group, fold.train)
    test = np.isin(group, fold.test)
    matrix, torque = equations.dense(chosen)
    A = np.concatenate([matrix[train, j] / NOISE[j] for j in range(3)])
    b = np.concatenate([torque[train, j] / NOISE[j] for j in range(3)])
    x = np.linalg.solve(A.T @ A + penalty, A.T @ b + penalty @ center)
    return np.mean((torque - matrix @ x)[test] ** 2, axis=0) / NOISE**2, x


def test_losses_match_ridge_regression_of_all_rows(columns):
    equations = DenseEquations(columns, (300, 200), noise=NOISE)
    factors = equations.factors(columns)
    grams = FoldGrams(factors, NOISE)
    rng = np.random.default_rng(3)
    chosen = np.sort(rng.permutation(columns.size)[: columns.size - 3])
    root = rng.normal(size=(len(chosen), 4))
    penalty = 30 * root @ root.T
    center = rng.normal(size=len(chosen))
    free = np.zeros(len(chosen), dtype=bool)
    fold_losses = grams.losses(chosen, penalty, center, free)
    for fold, losses in zip(folds(factors), fold_losses, strict=True):
        np.testing.assert_allclose(losses, fit_ridge(equations, chosen, fold, factors, penalty, center)[0], rtol=1e-6)
    shares = np.array([fold.share for fold in folds(factors)])
    assert grams.mean(fold_losses) == pytest.approx(np.mean(np.log(shares @ fold_losses)))


def test_standard_error_of_a_gain_follows_the_spread_of_folds(columns):
    grams = FoldGrams(DenseEquations(columns, (300, 200), noise=NOISE).factors(columns), NOISE)
    shares = np.array([fold.share for fold in grams.folds])
    losses = np.random.default_rng(0).uniform(1.0, 2.0, (len(shares), 3))
    gain, error = grams.gain(losses, losses * [0.5, 1.0, 1.0])
    assert gain == pytest.approx(np.log(2.0))
    assert error == pytest.approx(0.0, abs=1e-12)
    # Only the first fold gains, so the other folds must make the gain uncertain.
    other = losses.copy()
    other[0, 0] *= 0.5
    ratio = np.log(2.0)
    mean = shares[0] * ratio
    spread = shares[0] * (ratio - mean) ** 2 + (1 - shares[0]) * mean**2
    assert grams.gain(losses, other)[1] == pytest.approx(np.sqrt(spread / (len(shares) - 1)))


def test_omits_coefficients_that_would_become_negative(columns):
    equations = DenseEquations(columns, (400,), noise=NOISE)
    factors = equations.factors(columns)
    grams = FoldGrams(factors, NOISE)
    all_columns = np.arange(columns.size)
    no_penalty = np.zeros((columns.size, columns.size))
    negative = equations.solution < -0.3
    assert 2 < negative.sum() < columns.size - 2
    bounded = grams.losses(all_columns, no_penalty, np.zeros(columns.size), negative)
    kept = all_columns[~negative]
    reduced_penalty = np.zeros((len(kept), len(kept)))
    expected = [
        fit_ridge(equations, kept, fold, factors, reduced_penalty, np.zeros(len(kept))) for fold in folds(factors)
    ]
    # Other coefficients may change sign without these, but they are not bounded.
    np.testing.assert_allclose(bounded, [losses for losses, _ in expected], rtol=1e-6)


def test_exact_torques_give_positive_negligible_losses(columns):
    """Differences of normal equations are rounding errors here and may be negative."""
    equations = DenseEquations(columns, (400,), noise=0.0)
    grams = FoldGrams(equations.factors(columns), NOISE)
    no_penalty = np.zeros((columns.size, columns.size))
    losses = grams.losses(
        np.arange(columns.size), no_penalty, np.zeros(columns.size), np.zeros(columns.size, dtype=bool)
    )
    power = np.mean(equations.torque**2, axis=0) / NOISE**2
    assert np.all(losses > 0)
    assert np.all(losses < 1e-9 * power)


def test_shared_columns_give_the_losses_of_separate_models(columns):
    equations = DenseEquations(columns, (300, 200), noise=NOISE)
    grams = FoldGrams(equations.factors(columns), NOISE)
    rng = np.random.default_rng(4)
    n_shared = columns.size - 6
    root = rng.normal(size=(n_shared, 4))
    penalty = 30 * root @ root.T
    center = rng.normal(size=n_shared)
    shared = SharedColumnLosses(grams, penalty, center)
    models = []
    for count in (0, 3, 6):
        others = n_shared + np.sort(rng.permutation(6)[:count])
        models.append((others, rng.uniform(0.0, 5.0, count), equations.solution[others] < 0))
    assert models[-1][2].any()  # a bound is active
    for (others, weights, bounded), losses in zip(models, shared.losses(models), strict=True):
        chosen = np.append(np.arange(n_shared), others)
        full_penalty = np.diag(np.append(np.zeros(n_shared), weights))
        full_penalty[:n_shared, :n_shared] = penalty
        mask = np.append(np.zeros(n_shared, dtype=bool), bounded)
        expected = grams.losses(chosen, full_penalty, np.append(center, np.zeros(len(others))), mask)
        np.testing.assert_allclose(losses, expected, rtol=1e-9)
