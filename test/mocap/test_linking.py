import numpy as np
import pytest
from hinge_markers import places, swing, turning

from dynid_ros.mocap.markers import linked


def markers(n_markers=3):
    return turning(swing(60.0), places()[:n_markers], np.random.default_rng(1)).markers


def test_clean_markers_are_left_alone():
    np.testing.assert_array_equal(linked(markers()), markers())


@pytest.mark.parametrize("exchange", [[1, 0, 2], [2, 1, 0], [1, 2, 0]])
@pytest.mark.parametrize("frames", [slice(700, 1500), slice(0, 400), slice(2300, None)])
def test_exchanged_for_long(exchange, frames):
    mixed = markers()
    mixed[frames] = mixed[frames][:, exchange]
    np.testing.assert_array_equal(linked(mixed), markers())


def test_exchanged_while_one_is_hidden():
    mixed = markers()
    mixed[700:1500] = mixed[700:1500][:, [1, 0, 2]]
    mixed[695:705, 2] = np.nan
    expected = markers()
    expected[695:705, 2] = np.nan
    np.testing.assert_array_equal(linked(mixed), expected)


def test_a_ghost_exchanges_nothing():
    mixed = markers()
    mixed[700:900, 1] += [0.3, 0.2, 0.0]
    np.testing.assert_array_equal(linked(mixed), mixed)


def test_a_single_marker():
    np.testing.assert_array_equal(linked(markers(1)), markers(1))
