"""The choice of poses against all choices there are."""

from itertools import combinations

import numpy as np
import pytest

from dynid_ros.information.criteria import condition_number, d_optimal, log_determinant, rank, whitening_axes


@pytest.mark.parametrize("seed", range(12))
def test_best_of_all_choices_is_found(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((13, 2, 4)) * rng.uniform(0.2, 2.0, (13, 1, 1))
    every = [log_determinant(rows[list(chosen)]) for chosen in combinations(range(13), 4)]
    chosen = d_optimal(rows, 4)
    assert len(set(chosen.tolist())) == 4
    assert log_determinant(rows[chosen]) == pytest.approx(max(every), abs=1e-9)
    assert max(every) > np.median(every) + 1.0


def test_known_best_choice():
    """Of directions in a plane, each with its own length, a pair of long ones at right angles spans most."""
    angles = np.deg2rad([0.0, 30.0, 88.0, 90.0, 45.0])
    lengths = np.array([1.0, 1.0, 1.0, 1.0, 1.05])
    rows = (lengths * np.array([np.cos(angles), np.sin(angles)])).T[:, np.newaxis]
    assert set(d_optimal(rows, 2).tolist()) == {0, 3}
    assert log_determinant(rows[[0, 3]]) == pytest.approx(0.0, abs=1e-12)


def test_all_poses_tell_one_in_their_own_axes_and_units_do_not_matter():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 3, 5)) @ np.diag([1.0, 10.0, 0.01, 3.0, 1.0])
    rows[:, :, 4] = rows[:, :, 0] - 2 * rows[:, :, 3]
    rows = np.concatenate([rows, np.zeros((60, 3, 1))], axis=2)
    seen = rows @ whitening_axes(rows)
    assert seen.shape == (60, 3, 4)
    np.testing.assert_allclose(np.einsum("pmi,pmj->ij", seen, seen), 60 * np.eye(4), atol=1e-9)
    other = rows * np.array([7.0, 0.1, 1e3, 1.0, 2.0, 1.0])
    assert set(d_optimal(seen, 6).tolist()) == set(d_optimal(other @ whitening_axes(other), 6).tolist())


def test_open_combinations_are_told_as_such():
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


def test_more_poses_than_needed_to_start_are_still_all_different():
    rows = np.random.default_rng(2).standard_normal((9, 1, 2))
    assert sorted(d_optimal(rows, 9).tolist()) == list(range(9))
