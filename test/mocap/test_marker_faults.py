import numpy as np
import pytest
from hinge_markers import AXIS, NOISE, POINT, places, swing, turning

from dynid_ros.mocap import start_hinge
from dynid_ros.mocap.hinge import is_symmetric, mend

RNG = np.random.default_rng(1)
RECORD = turning(swing(60.0), places(), RNG)
HINGE = start_hinge(RECORD.markers, AXIS, POINT)


def test_clean_markers_are_left_alone():
    found = mend(RECORD.markers, HINGE, NOISE)
    np.testing.assert_array_equal(found.markers, RECORD.markers)
    assert not found.swapped.any()
    assert not found.outliers.any()


@pytest.mark.parametrize("exchange", [[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]])
def test_exchanged_markers_are_put_back(exchange):
    mixed = RECORD.markers.copy()
    mixed[100:130] = mixed[100:130][:, exchange]
    found = mend(mixed, HINGE, NOISE)
    np.testing.assert_array_equal(found.markers, RECORD.markers)
    assert np.flatnonzero(found.swapped).tolist() == list(range(100, 130))
    assert not found.outliers.any()


def test_a_marker_under_the_name_of_a_hidden_one():
    mixed = RECORD.markers.copy()
    mixed[100, 0], mixed[100, 1] = mixed[100, 1], np.nan
    found = mend(mixed, HINGE, NOISE)
    np.testing.assert_array_equal(found.markers[100], [[np.nan] * 3, *RECORD.markers[100, 1:]])
    assert found.swapped.sum() == 1


def test_ghosts_are_dropped_and_the_rest_is_kept():
    mixed = RECORD.markers.copy()
    ghost = np.random.default_rng(2).random(mixed.shape[:2]) < 0.05
    ghost[ghost.all(axis=1)] = [True, False, False]
    mixed[ghost] += 0.02 * np.array([0.6, 0.48, 0.64])
    found = mend(mixed, HINGE, NOISE)
    np.testing.assert_array_equal(found.outliers, ghost)
    np.testing.assert_array_equal(found.markers[~ghost], RECORD.markers[~ghost])
    assert np.isnan(found.markers[ghost]).all()


def test_a_ghost_that_is_alone():
    mixed = RECORD.markers.copy()
    mixed[100, :2] = np.nan
    mixed[100, 2] += 0.02
    found = mend(mixed, HINGE, NOISE)
    assert np.isnan(found.markers[100]).all()
    assert found.outliers.sum() == 1


@pytest.mark.parametrize(
    ("angles", "heights", "symmetric"),
    [((0, 120, 240), (0, 0, 0), True), ((0, 120, 240), (0, 0, 0.05), False), ((0, 100, 240), (0, 0, 0), False)],
)
def test_symmetric_bodies(angles, heights, symmetric):
    record = turning(swing(60.0), places(0.15, angles, heights), np.random.default_rng(3))
    assert is_symmetric(start_hinge(record.markers, AXIS, POINT), NOISE) == symmetric
