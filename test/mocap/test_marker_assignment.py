import numpy as np
import pytest
from marker_experiment import experiment, noisy, ur10

from dynid_ros.errors import MocapError
from dynid_ros.mocap.marker_assignment import assign, bodies
from dynid_ros.mocap.markers import tracks


@pytest.fixture(scope="module")
def moved():
    rng = np.random.default_rng(1)
    e = experiment(rng, ur10(), frames=800, per_link=3, on=(0, 2, 5), rate=50)
    return e, noisy(rng, e.positions, 0.1)


def test_bodies_are_links(moved):
    e, positions = moved
    stray = np.concatenate([positions, np.random.default_rng(2).normal(size=(800, 1, 3))], axis=1)
    found = bodies(stray[::5])
    assert found[-1] == -1
    assert len(set(found[:-1])) == 3
    for number in range(3):
        assert len({e.links[p] for p in np.flatnonzero(found == number)}) == 1


def test_unlabelled_markers_find_their_links(moved):
    e, positions = moved
    order = np.random.default_rng(3).permutation(len(e.links))
    found = assign(e.robot, e.motor, positions[:, order])
    assert list(found.links) == [e.links[p] for p in order]
    assert found.stray.max() < 0.02


def test_no_body_is_refused():
    rng = np.random.default_rng(4)
    with pytest.raises(MocapError, match="no three of 5 markers keep their distances"):
        assign(ur10(), rng.normal(size=(50, 6)), rng.normal(size=(50, 5, 3)))


def test_tracks_stay_with_one_marker(moved):
    e, positions = moved
    rng = np.random.default_rng(5)
    shuffled = np.array([row[rng.permutation(len(row))] for row in positions[:600]])
    found = tracks(shuffled, e.time[:600])
    assert found.shape == (600, 9, 3)
    seen = np.isfinite(found).all(axis=2)
    nearest = np.linalg.norm(found[:, :, None] - e.positions[:600, None], axis=3)
    owner = np.where(seen, np.nanargmin(np.where(np.isnan(nearest), np.inf, nearest), axis=2), -1)
    assert sorted(max(set(column[column >= 0])) for column in owner.T) == list(range(9))
    assert all(len(set(column[column >= 0])) == 1 for column in owner.T)
    assert seen.sum() == np.isfinite(shuffled).all(axis=2).sum()
