"""Compressed equations against all their rows."""

import numpy as np
import pytest
from link_problems import DenseEquations, chain

from dynid_ros.estimation.normal_equations import NormalEquations
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.link_columns import LinkColumns

FRICTION = JointFriction(offset=True, rotor_inertia=True)


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [(FRICTION,)] * 3)


def sum_of_squares(factor: np.ndarray, x: np.ndarray) -> float:
    return float(np.sum((factor @ np.append(x, -1.0)) ** 2))


def group_of(equations: DenseEquations, factors: NormalEquations) -> np.ndarray:
    """(N,) group that each sample belongs to, from what a group is said to be."""
    first = np.cumsum([0, *factors.stretches])[equations.owner]
    count = np.array(factors.stretches)[equations.owner]
    stretch = first + np.minimum((equations.time / 10 * count).astype(int), count - 1)
    return 2 * stretch + (equations.speed >= equations.fast)


@pytest.mark.parametrize("sizes", [(400,), (1000, 60), (300, 7, 3000)])
def test_sums_of_squares_are_those_of_all_rows(columns, sizes):
    equations = DenseEquations(columns, sizes)
    factors = equations.factors(columns)
    group = group_of(equations, factors)
    np.testing.assert_array_equal(factors.counts, np.bincount(group, minlength=len(factors.counts)))
    rng = np.random.default_rng(1)
    some = rng.permutation(np.unique(group))[: len(np.unique(group)) // 2]
    for joint, rows in enumerate(equations.rows):
        x = rng.normal(size=rows.shape[1])
        errors = (rows @ x - equations.torque[:, joint]) ** 2
        assert sum_of_squares(factors.factor(joint), x) == pytest.approx(errors.sum())
        assert sum_of_squares(factors.factor(joint, some), x) == pytest.approx(errors[np.isin(group, some)].sum())
        one = factors.gram(int(some[0]), joint)
        dense = np.column_stack([rows, equations.torque[:, joint]])[group == some[0]]
        np.testing.assert_allclose(one, dense.T @ dense, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(factors.norms(joint), np.linalg.norm(rows, axis=0))
        dense = np.column_stack([rows, equations.torque[:, joint]])[equations.kind == 3]
        np.testing.assert_allclose(factors.kind_gram(3, joint), dense.T @ dense, rtol=1e-9, atol=1e-9)
    assert factors.kinds == sorted(set(equations.kind))


def test_factors_are_small_however_many_samples(columns):
    for size in (100, 5000):
        factors = DenseEquations(columns, (size,)).factors(columns)
        assert all(len(factors.factor(j)) <= len(own) + 1 for j, own in enumerate(columns.of_joint))


def test_nothing_in_no_groups(columns):
    factors = DenseEquations(columns, (100,)).factors(columns)
    for joint, own in enumerate(columns.of_joint):
        assert sum_of_squares(factors.factor(joint, []), np.ones(len(own))) == 0
        assert factors.factor(joint, []).shape[1] == len(own) + 1


@pytest.mark.parametrize("size", [1, 24, 25, 120, 499, 500, 10**6])
def test_stretches_are_long_enough_and_parts_follow_each_other(columns, size):
    factors = NormalEquations(columns, [size])
    (count,) = factors.stretches
    assert 1 <= count <= 20
    assert count == 1 or size / count >= 25
    assert len(factors.counts) == 2 * count == 2 * len(factors.parts)
    assert np.all(np.diff(factors.parts) >= 0)
    if count >= 5:
        lengths = np.bincount(factors.parts, minlength=5)
        assert lengths.min() >= 1
        assert np.ptp(lengths) <= 1


def test_short_recordings_are_left_out_in_turn(columns):
    factors = NormalEquations(columns, [30] * 5)
    assert factors.stretches == [1] * 5
    assert sorted(factors.parts) == [0, 1, 2, 3, 4]
