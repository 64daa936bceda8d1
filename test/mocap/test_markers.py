"""test_markers."""

import tracemalloc

import numpy as np
import pytest
from hinge_markers import NOISE, places, swing, turning

from dynid_ros.errors import MocapError
from dynid_ros.mocap.markers import checked_markers, is_seen, jitter, linked, tracks, without_repeated


def markers_linking(n_markers=3):
    return turning(swing(60.0), places()[:n_markers], np.random.default_rng(1)).markers


def test_clean_markers_are_left_alone():
    np.testing.assert_array_equal(linked(markers_linking()), markers_linking())


@pytest.mark.parametrize("exchange", [[1, 0, 2], [2, 1, 0], [1, 2, 0]])
@pytest.mark.parametrize("frames", [slice(700, 1500), slice(0, 400), slice(2300, None)])
def test_exchanged_for_long(exchange, frames):
    mixed = markers_linking()
    mixed[frames] = mixed[frames][:, exchange]
    np.testing.assert_array_equal(linked(mixed), markers_linking())


def test_exchanged_while_one_is_hidden():
    mixed = markers_linking()
    mixed[700:1500] = mixed[700:1500][:, [1, 0, 2]]
    mixed[695:705, 2] = np.nan
    expected = markers_linking()
    expected[695:705, 2] = np.nan
    np.testing.assert_array_equal(linked(mixed), expected)


def test_a_ghost_exchanges_nothing():
    mixed = markers_linking()
    mixed[700:900, 1] += [0.3, 0.2, 0.0]
    np.testing.assert_array_equal(linked(mixed), mixed)


def markers():
    return turning(swing(60.0), places(), np.random.default_rng(1)).markers


def test_a_coordinate_missing_is_a_marker_missing():
    positions = markers()
    positions[3, 1, 2] = np.nan
    checked = checked_markers(positions)
    assert not is_seen(checked)[3, 1]
    assert np.isnan(checked[3, 1]).all()
    assert np.isfinite(positions[3, 1, 0]), "what was given is left alone"


def test_jitter_is_the_noise_and_not_the_motion():
    assert jitter(markers()) == pytest.approx(NOISE, rel=0.05)
    assert jitter(markers()[:, :1]) == pytest.approx(NOISE, rel=0.05)
    assert np.isnan(jitter(markers()[:3]))


def test_jitter_of_poses_that_do_not_follow_each_other():
    shuffled = np.random.default_rng(2).permutation(markers())
    assert jitter(shuffled) == pytest.approx(NOISE, rel=0.1)
    assert jitter(shuffled[:, :1]) > 0.01, "a single marker has no other to be compared with"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((4, 3, 2)), "shape"),
        (np.zeros((0, 3, 3)), "shape"),
        (np.full((4, 3, 3), np.nan), "no marker is seen"),
        (np.where(np.arange(12).reshape(4, 3, 1) == 7, np.inf, np.zeros((4, 3, 3))), "marker 1 is infinite in frame 2"),
        (1000 * markers(), "in mm"),
    ],
)
def test_refused(given, message):
    with pytest.raises(MocapError, match=message):
        checked_markers(given)


def frozen(positions, start, stop, marker=slice(None)):
    """Positions whose tracker repeats the last one in some frames."""
    found = positions.copy()
    found[start:stop, marker] = found[start - 1, marker]
    return found


@pytest.mark.parametrize("marker", [slice(None), 1])
@pytest.mark.parametrize(("start", "stop"), [(100, 130), (700, 701), (2400, 2500)])
def test_repeated_positions_are_not_seen(marker, start, stop):
    expected = markers()
    expected[start:stop, marker] = np.nan
    np.testing.assert_array_equal(without_repeated(frozen(markers(), start, stop, marker)), expected)


def test_frames_that_come_twice_are_seen_once():
    twice = np.repeat(markers(), 2, axis=0)
    seen = is_seen(without_repeated(twice))
    assert seen[::2].all()
    assert seen[1::2].mean() < 0.05, "except where noise makes a step as small as that of a marker at rest"


def test_repeated_positions_of_a_marker_at_rest_are_kept():
    time = np.linspace(0.0, 4.0, 401)
    angle = np.where(time < 2.0, 0.5 - 0.5 * np.cos(np.pi * time), 0.0)
    exact = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)[:, None]
    exact[200:] = exact[200]
    np.testing.assert_array_equal(without_repeated(exact), exact)
    coarse = np.round(markers()[:400] / 1e-3) * 1e-3
    coarse[200:] = np.round((coarse[200] + 3e-4 * np.random.default_rng(3).standard_normal((200, 3, 3))) / 1e-3) * 1e-3
    np.testing.assert_array_equal(without_repeated(coarse)[200:], coarse[200:])


def test_tracks_of_many_ghosts_take_memory_for_those_that_last():
    rng = np.random.default_rng(6)
    n_frames = 1000
    points = markers()[:n_frames]
    ghosts = np.where(rng.random((n_frames, 1, 1)) < 0.5, rng.uniform(-3.0, 3.0, (n_frames, 1, 3)), np.nan)
    tracemalloc.start()
    found = tracks(np.concatenate([points, ghosts], axis=1), np.arange(n_frames) / 100.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == points.shape
    assert peak < 8 * points.nbytes
