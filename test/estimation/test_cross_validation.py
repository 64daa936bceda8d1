"""Folds leave out what they say, and their losses are those of ridge regression on all rows."""

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


def test_sorts_of_motion_are_left_out_and_predicted_from_all_others(columns):
    factors = DenseEquations(columns, (500, 300)).factors(columns)
    parts, (fast, slow), kinds = sorts(factors)
    everything, beyond = np.arange(len(factors.counts)), len(factors.counts) + np.arange(len(factors.kinds))
    for folds_, groups in ((parts, everything), (kinds, beyond)):
        np.testing.assert_array_equal(np.sort(np.concatenate([fold.test for fold in folds_])), groups)
        for fold in folds_:
            assert not set(fold.train) & set(fold.test)
            np.testing.assert_array_equal(np.union1d(fold.train, fold.test), groups)
    assert set(fast.test % 2) == set(slow.train % 2) == {1}
    assert set(fast.train % 2) == set(slow.test % 2) == {0}
    assert sum(fold.share for fold in folds(factors)) == pytest.approx(1)
    assert factors.count(beyond) == factors.count(everything) == 800


def sorts(factors):
    """Parts of time, fast and slow, kinds."""
    found = folds(factors)
    assert len(found) == 5 + 2 + 4
    return found[:5], found[5:7], found[7:]


def test_parts_are_whole_stretches_of_time_in_every_recording(columns):
    equations = DenseEquations(columns, (500, 500))
    factors = equations.factors(columns)
    for number, fold in enumerate(sorts(factors)[0]):
        assert np.all(factors.parts[fold.test // 2] == number)
        for recording in (0, 1):
            own = fold.test[fold.test // 40 == recording] // 2
            assert len(set(own)) == 4  # a fifth of twenty stretches
            assert np.ptp(own) == 3  # next to each other


def test_without_fast_samples_and_with_too_few(columns):
    found = folds(DenseEquations(columns, (500,), fast=0.0).factors(columns))
    assert len(found) == 5 + 4
    assert sum(fold.share for fold in found) == pytest.approx(1)
    assert folds(DenseEquations(columns, (20,)).factors(columns)) == []
    two = folds(DenseEquations(columns, (20, 20)).factors(columns))
    assert len(two) == 2 + 2 + 4


def ridge(equations, chosen, fold, factors, penalty, center):
    """(n,) mean squared error over noise squared of the samples left out, from all rows."""
    count = np.array(factors.stretches)[equations.owner]
    first = np.cumsum([0, *factors.stretches])[equations.owner]
    group = 2 * (first + np.minimum((equations.time / 10 * count).astype(int), count - 1))
    group += equations.speed >= equations.fast
    if min(fold.test) >= len(factors.counts):
        group = len(factors.counts) + np.searchsorted(factors.kinds, equations.kind)
    train, test = np.isin(group, fold.train), np.isin(group, fold.test)
    matrix, torque = equations.dense(chosen)
    A = np.concatenate([matrix[train, j] / NOISE[j] for j in range(3)])
    b = np.concatenate([torque[train, j] / NOISE[j] for j in range(3)])
    x = np.linalg.solve(A.T @ A + penalty, A.T @ b + penalty @ center)
    return np.mean((torque - matrix @ x)[test] ** 2, axis=0) / NOISE**2, x


def test_losses_are_those_of_all_rows(columns):
    equations = DenseEquations(columns, (300, 200), noise=NOISE)
    factors = equations.factors(columns)
    grams = FoldGrams(factors, NOISE)
    rng = np.random.default_rng(3)
    chosen = np.sort(rng.permutation(columns.size)[: columns.size - 3])
    root = rng.normal(size=(len(chosen), 4))
    penalty, center = 30 * root @ root.T, rng.normal(size=len(chosen))
    free = np.zeros(len(chosen), dtype=bool)
    found = grams.losses(chosen, penalty, center, free)
    for fold, losses in zip(folds(factors), found, strict=True):
        np.testing.assert_allclose(losses, ridge(equations, chosen, fold, factors, penalty, center)[0], rtol=1e-6)
    shares = np.array([fold.share for fold in folds(factors)])
    assert grams.mean(found) == pytest.approx(np.mean(np.log(shares @ found)))


def test_a_gain_is_as_sure_as_the_folds_agree_on_it(columns):
    grams = FoldGrams(DenseEquations(columns, (300, 200), noise=NOISE).factors(columns), NOISE)
    shares = np.array([fold.share for fold in grams.folds])
    losses = np.random.default_rng(0).uniform(1.0, 2.0, (len(shares), 3))
    gain, error = grams.gain(losses, losses * [0.5, 1.0, 1.0])
    assert gain == pytest.approx(np.log(2.0))
    assert error == pytest.approx(0.0, abs=1e-12)
    # Only the first fold gains: the rest must say that this is not sure.
    other = losses.copy()
    other[0, 0] *= 0.5
    ratio = np.log(2.0)
    mean = shares[0] * ratio
    spread = shares[0] * (ratio - mean) ** 2 + (1 - shares[0]) * mean**2
    assert grams.gain(losses, other)[1] == pytest.approx(np.sqrt(spread / (len(shares) - 1)))


def test_coefficients_that_cannot_be_negative_are_left_out(columns):
    equations = DenseEquations(columns, (400,), noise=NOISE)
    factors = equations.factors(columns)
    grams = FoldGrams(factors, NOISE)
    everything = np.arange(columns.size)
    nothing = np.zeros((columns.size, columns.size))
    negative = equations.solution < -0.3
    assert 2 < negative.sum() < columns.size - 2
    bounded = grams.losses(everything, nothing, np.zeros(columns.size), negative)
    kept = everything[~negative]
    fewer = np.zeros((len(kept), len(kept)))
    expected = [ridge(equations, kept, fold, factors, fewer, np.zeros(len(kept))) for fold in folds(factors)]
    # Others may change sign once those are gone, but these are not bounded.
    np.testing.assert_allclose(bounded, [losses for losses, _ in expected], rtol=1e-6)


def test_exact_torques_leave_rounding_that_decides_nothing(columns):
    """Differences of normal equations are rounding there, and can be negative."""
    equations = DenseEquations(columns, (400,), noise=0.0)
    grams = FoldGrams(equations.factors(columns), NOISE)
    nothing = np.zeros((columns.size, columns.size))
    losses = grams.losses(np.arange(columns.size), nothing, np.zeros(columns.size), np.zeros(columns.size, dtype=bool))
    power = np.mean(equations.torque**2, axis=0) / NOISE**2
    assert np.all(losses > 0)
    assert np.all(losses < 1e-9 * power)


def test_models_that_share_columns_have_the_losses_of_each_alone(columns):
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
    for (others, weights, bounded), found in zip(models, shared.losses(models), strict=True):
        chosen = np.append(np.arange(n_shared), others)
        whole = np.diag(np.append(np.zeros(n_shared), weights))
        whole[:n_shared, :n_shared] = penalty
        mask = np.append(np.zeros(n_shared, dtype=bool), bounded)
        expected = grams.losses(chosen, whole, np.append(center, np.zeros(len(others))), mask)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
