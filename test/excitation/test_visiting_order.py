from itertools import permutations

import numpy as np
import pytest

from dynid_ros.excitation.pose_set import length, visiting_order


def distances(points):
    return np.linalg.norm(points[:, np.newaxis] - points, axis=2)


@pytest.mark.parametrize("seed", range(10))
def test_way_is_near_the_shortest_of_all(seed):
    times = distances(np.random.default_rng(seed).uniform(size=(7, 2)))
    way = visiting_order(times)
    assert sorted(way) == list(range(7))
    shortest = min(length(times, list(order)) for order in permutations(range(7)))
    assert length(times, way) <= 1.05 * shortest


def test_points_on_a_line_are_visited_along_it():
    places = np.random.default_rng(0).permutation(12)
    way = visiting_order(distances(places[:, np.newaxis].astype(float)))
    along = places[way].tolist()
    assert along in (sorted(along), sorted(along, reverse=True))


def test_way_is_much_shorter_than_as_they_come():
    times = distances(np.random.default_rng(3).uniform(size=(30, 3)))
    assert length(times, visiting_order(times)) < 0.5 * length(times, list(range(30)))


def test_one_pose_is_a_way():
    assert visiting_order(np.zeros((1, 1))) == [0]
