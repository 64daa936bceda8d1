"""Test checks of marker positions: exchanged, repeated and missing markers, and noise."""

import tracemalloc

import numpy as np
import pytest
from hinge_markers import NOISE_M, place_markers, record_rotation, swing_angle

from dynid_ros.errors import MocapError
from dynid_ros.mocap.markers import checked_markers, is_seen, jitter, linked, tracks, without_repeated


def record_markers(n_markers=3):
    return record_rotation(swing_angle(60.0), place_markers()[:n_markers], np.random.default_rng(1)).markers


def test_correct_markers_stay_unchanged():
    np.testing.assert_array_equal(linked(record_markers()), record_markers())


@pytest.mark.parametrize("exchange", [[1, 0, 2], [2, 1, 0], [1, 2, 0]])
@pytest.mark.parametrize("frames", [slice(700, 1500), slice(0, 400), slice(2300, None)])
def test_markers_exchanged_for_long_are_restored(exchange, frames):
    mixed = record_markers()
    mixed[frames] = mixed[frames][:, exchange]
    np.testing.assert_array_equal(linked(mixed), record_markers())


def test_exchange_with_a_hidden_marker_is_restored():
    mixed = record_markers()
    mixed[700:1500] = mixed[700:1500][:, [1, 0, 2]]
    mixed[695:705, 2] = np.nan
    expected = record_markers()
    expected[695:705, 2] = np.nan
    np.testing.assert_array_equal(linked(mixed), expected)


def test_ghost_causes_no_exchange():
    mixed = record_markers()
    mixed[700:900, 1] += [0.3, 0.2, 0.0]
    np.testing.assert_array_equal(linked(mixed), mixed)


def test_marker_with_a_missing_coordinate_is_hidden():
    positions = record_markers()
    positions[3, 1, 2] = np.nan
    checked = checked_markers(positions)
    assert not is_seen(checked)[3, 1]
    assert np.isnan(checked[3, 1]).all()
    assert np.isfinite(positions[3, 1, 0]), "the argument stays unchanged"


def test_jitter_is_the_noise_of_moving_markers():
    assert jitter(record_markers()) == pytest.approx(NOISE_M, rel=0.05)
    assert jitter(record_markers()[:, :1]) == pytest.approx(NOISE_M, rel=0.05)
    assert np.isnan(jitter(record_markers()[:3]))


def test_jitter_of_unordered_poses_needs_several_markers():
    shuffled = np.random.default_rng(2).permutation(record_markers())
    assert jitter(shuffled) == pytest.approx(NOISE_M, rel=0.1)
    assert jitter(shuffled[:, :1]) > 0.01, "a single marker has no reference"


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (np.zeros((4, 3, 2)), "shape"),
        (np.zeros((0, 3, 3)), "shape"),
        (np.full((4, 3, 3), np.nan), "no marker is seen"),
        (np.where(np.arange(12).reshape(4, 3, 1) == 7, np.inf, np.zeros((4, 3, 3))), "marker 1 is infinite in frame 2"),
        (1000 * record_markers(), "in mm"),
    ],
)
def test_invalid_positions_are_refused(positions, message):
    with pytest.raises(MocapError, match=message):
        checked_markers(positions)


def repeat_positions(positions, start, stop, marker=slice(None)):
    """Return positions in which the tracker repeats the last one in some frames."""
    repeated = positions.copy()
    repeated[start:stop, marker] = repeated[start - 1, marker]
    return repeated


@pytest.mark.parametrize("marker", [slice(None), 1])
@pytest.mark.parametrize(("start", "stop"), [(100, 130), (700, 701), (2400, 2500)])
def test_repeated_positions_are_hidden(marker, start, stop):
    expected = record_markers()
    expected[start:stop, marker] = np.nan
    np.testing.assert_array_equal(without_repeated(repeat_positions(record_markers(), start, stop, marker)), expected)


def test_duplicate_frames_are_hidden():
    twice = np.repeat(record_markers(), 2, axis=0)
    is_visible = is_seen(without_repeated(twice))
    assert is_visible[::2].all()
    assert is_visible[1::2].mean() < 0.05, "noise may be as small as that of a marker at rest"


def test_repeated_positions_of_a_marker_at_rest_are_kept():
    time = np.linspace(0.0, 4.0, 401)
    angle = np.where(time < 2.0, 0.5 - 0.5 * np.cos(np.pi * time), 0.0)
    exact = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)[:, None]
    exact[200:] = exact[200]
    np.testing.assert_array_equal(without_repeated(exact), exact)
    coarse = np.round(record_markers()[:400] / 1e-3) * 1e-3
    coarse[200:] = np.round((coarse[200] + 3e-4 * np.random.default_rng(3).standard_normal((200, 3, 3))) / 1e-3) * 1e-3
    np.testing.assert_array_equal(without_repeated(coarse)[200:], coarse[200:])


def test_short_tracks_of_ghosts_take_little_memory():
    rng = np.random.default_rng(6)
    n_frames = 1000
    points = record_markers()[:n_frames]
    ghosts = np.where(rng.random((n_frames, 1, 1)) < 0.5, rng.uniform(-3.0, 3.0, (n_frames, 1, 3)), np.nan)
    tracemalloc.start()
    tracked = tracks(np.concatenate([points, ghosts], axis=1), np.arange(n_frames) / 100.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tracked.shape == points.shape
    assert peak < 8 * points.nbytes
