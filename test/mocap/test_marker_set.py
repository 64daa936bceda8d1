import numpy as np
from scipy.spatial.transform import Rotation

from dynid_ros.mocap.marker_set import body_markers
from dynid_ros.mocap.markers import matched
from dynid_ros.mocap.recorded_links import Stream, on_one_clock


def test_virtual_markers_move_with_the_body():
    rng = np.random.default_rng(1)
    turns = Rotation.random(20, random_state=2)
    position = rng.normal(size=(20, 3))
    still = body_markers(np.zeros((1, 3)), np.array([[0, 0, 0, 1.0]]), 0.2)[0]
    moved = body_markers(position, -3 * turns.as_quat(), 0.2)
    for k in range(20):
        np.testing.assert_allclose(moved[k], turns[k].apply(still) + position[k], atol=1e-12)
    np.testing.assert_allclose(still.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(still, axis=1), 0.2)
    assert np.isnan(body_markers(np.zeros((1, 3)), np.zeros((1, 4)))).all()


def test_points_go_to_the_nearest_marker_within_the_gate():
    expected = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [np.nan] * 3])
    seen = np.array([[1.01, 0, 0], [0.02, 0, 0], [5, 0, 0], [np.nan] * 3])
    points, places = matched(seen, expected, 0.1)
    assert dict(zip(points.tolist(), places.tolist(), strict=True)) == {0: 1, 1: 0}


def test_streams_of_other_stamps_lie_between_their_samples():
    time = np.arange(100) / 100
    late = time[:-1] + 0.004
    gap = np.delete(np.arange(99), np.arange(40, 50))
    fast = Stream(time, time[:, None, None] * np.ones((1, 1, 3)))
    slow = Stream(late[gap], late[gap, None, None] * np.ones((1, 2, 3)))
    common, points = on_one_clock({"a": fast, "b": slow})
    np.testing.assert_array_equal(common, time)
    np.testing.assert_array_equal(points["a"], fast.points)
    known = np.isfinite(points["b"]).all(axis=(1, 2))
    np.testing.assert_allclose(points["b"][known, 1, 2], time[known], atol=1e-12)
    assert np.flatnonzero(~known).tolist() == [0, *range(40, 51), 99]
