"""Test virtual markers of bodies, matching of points, and the common clock of streams."""

import numpy as np
from scipy.spatial.transform import Rotation

from dynid_ros.mocap.marker_set import body_markers
from dynid_ros.mocap.markers import matched
from dynid_ros.mocap.recorded_links import Stream, on_one_clock


def test_virtual_markers_move_with_the_body():
    rng = np.random.default_rng(1)
    rotations = Rotation.random(20, random_state=2)
    position = rng.normal(size=(20, 3))
    at_rest = body_markers(np.zeros((1, 3)), np.array([[0, 0, 0, 1.0]]), 0.2)[0]
    moved = body_markers(position, -3 * rotations.as_quat(), 0.2)
    for k in range(20):
        np.testing.assert_allclose(moved[k], rotations[k].apply(at_rest) + position[k], atol=1e-12)
    np.testing.assert_allclose(at_rest.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(at_rest, axis=1), 0.2)
    assert np.isnan(body_markers(np.zeros((1, 3)), np.zeros((1, 4)))).all()


def test_points_match_the_nearest_marker_within_the_gate():
    expected = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [np.nan] * 3])
    seen = np.array([[1.01, 0, 0], [0.02, 0, 0], [5, 0, 0], [np.nan] * 3])
    points, places = matched(seen, expected, 0.1)
    assert dict(zip(points.tolist(), places.tolist(), strict=True)) == {0: 1, 1: 0}


def test_streams_are_interpolated_on_a_common_clock():
    time = np.arange(100) / 100
    late = time[:-1] + 0.004
    gap = np.delete(np.arange(99), np.arange(40, 50))
    fast = Stream(time, time[:, None, None] * np.ones((1, 1, 3)))
    slow = Stream(late[gap], late[gap, None, None] * np.ones((1, 2, 3)))
    common, points = on_one_clock({"a": fast, "b": slow})
    np.testing.assert_array_equal(common, time)
    np.testing.assert_array_equal(points["a"], fast.points)
    is_known = np.isfinite(points["b"]).all(axis=(1, 2))
    np.testing.assert_allclose(points["b"][is_known, 1, 2], time[is_known], atol=1e-12)
    assert np.flatnonzero(~is_known).tolist() == [0, *range(40, 51), 99]
