"""Sums of equations by kinds of motion, updated sample by sample."""

import numpy as np
import pytest

from dynid_ros.estimation.recursive_least_squares import SquareRootInformation
from dynid_ros.identification.equations import MAX_KINDS
from dynid_ros.identification.online.online_estimate import N_SMALL_KINDS, KindSums


def _experiment(samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return states (N, 4) of a motion with a period of 100 samples, and equations (N, 2, 4) [A b]."""
    rng = np.random.default_rng(seed)
    phase = 2 * np.pi * np.arange(samples)[:, None] / 100 + np.array([0.0, 1.0])
    return np.hstack([np.sin(phase), np.cos(phase)]), rng.normal(size=(samples, 2, 4))


def test_kinds_are_few_and_their_sums_complete():
    states, rows = _experiment(1000)
    kinds = KindSums(2, 3)
    for state, equations in zip(states, rows, strict=True):
        kinds.add(state, equations, np.ones(2))
    sums, weights = kinds.kinds()
    assert len(sums) == MAX_KINDS
    np.testing.assert_allclose(sums.sum(axis=0), np.einsum("tja,tjb->jab", rows, rows))
    np.testing.assert_allclose(weights.sum(axis=0), [1000, 1000])
    # The kinds of a stationary motion have about the same size.
    assert weights[:, 0].max() < 4 * weights[:, 0].min()


def test_repeated_motion_adds_no_kinds():
    """The second half of a motion joins the kinds of the first, so that repeated errors count once."""
    states, _ = _experiment(1000)
    kinds = KindSums(2, 1)
    first = np.zeros((2, 2))
    second = np.zeros((2, 2))
    first[:, 0] = 1.0
    second[:, 1] = 1.0
    for k, state in enumerate(states):
        kinds.add(state, first if k < 500 else second, np.ones(2))
    sums, _ = kinds.kinds()
    np.testing.assert_allclose(sums[:, 0, 0, 0], sums[:, 0, 1, 1], rtol=0.5)


def test_forgetting_acts_on_all_kinds():
    states, rows = _experiment(N_SMALL_KINDS + 60)
    kinds = KindSums(2, 3)
    expected = np.zeros((2, 4, 4))
    for state, equations in zip(states, rows, strict=True):
        kinds.add(state, equations, np.ones(2), keep=0.9)
        expected = 0.9 * expected + equations[:, :, None] * equations[:, None, :]
    np.testing.assert_allclose(kinds.kinds()[0].sum(axis=0), expected)


def test_sums_additional_right_hand_sides():
    states, rows = _experiment(500)
    others = np.random.default_rng(1).normal(size=(500, 2, 5))
    kinds = KindSums(2, 3, considered=5)
    expected = np.zeros((2, 4, 9))
    for state, equations, considered in zip(states, rows, others, strict=True):
        kinds.add(state, equations, np.ones(2), 0.99, considered)
        expected = 0.99 * expected + equations[:, :, None] * np.hstack([equations, considered])[:, None, :]
    np.testing.assert_allclose(kinds.kinds()[0].sum(axis=0), expected)


def test_pending_equations_follow_merged_kinds():
    """The sums of a kind are those of its states, independent of when they are evaluated and of merges in between."""
    states, _ = _experiment(700)
    often = KindSums(2, 1)
    seldom = KindSums(2, 1)
    rng = np.random.default_rng(0)
    for k, state in enumerate(states):
        rows = rng.normal(size=(2, 2))
        for kinds in (often, seldom):
            kinds.add(state * (1 + k / 100), rows, np.ones(2))
        often.kinds()
    for sums, other_sums in zip(often.kinds(), seldom.kinds(), strict=True):
        np.testing.assert_allclose(sums, other_sums, rtol=1e-9, atol=1e-9)


def test_forgetting_first_parameters_equals_that_of_the_factor():
    states, rows = _experiment(300)
    others = np.random.default_rng(1).normal(size=(300, 2, 5))
    kinds = KindSums(2, 3, considered=5)
    state = SquareRootInformation(3, deviation=1e9, considered=5)
    for motion, equations, considered in zip(states, rows, others, strict=True):
        kinds.add(motion, equations, np.ones(2), considered=considered)
        state.update(equations, considered=considered)
    kinds.forget(2, *state.factor, state.considered)
    state.forget(2)
    R, z = state.factor
    total = kinds.kinds()[0].sum(axis=(0, 1))
    np.testing.assert_allclose(total[:3, :3], R.T @ R, atol=1e-8)
    assert total[2, 3] == pytest.approx(R[2] @ z)
    np.testing.assert_allclose(total[:3, 4:], R.T @ state.considered, atol=1e-8)
