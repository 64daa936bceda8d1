"""Marker positions (N, P, 3): N frames of P markers on one body, m, in the camera's frame; NaN where not seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import median_deviation

# Repeated positions of trackers that see nothing.


NEIGHBOURS = 4
"""Number of steps before and after a repeated position that determine the usual step of a marker."""
JUMP_FRACTION = 0.5
"""Step into or out of a repeated position, in parts of the median of its neighbours, from which the marker was not
seen. A marker that comes to rest makes steps of less than 0.3."""
RESOLUTION_STEPS = 3.0
"""Steps, in parts of the smallest one, of a marker whose positions are so coarse that they repeat by chance."""


def without_repeated(positions: NDArray) -> NDArray:
    """Return positions (M, P, 3) with NaN where a marker was not seen and its last position was repeated.

    Noise makes no two measurements equal to the last digit. Equal positions are kept where they can be measured: where
    a marker of a simulation comes to rest, and where the resolution is as coarse as the noise.
    """
    same = np.all(positions[1:] == positions[:-1], axis=2)
    if not same.any():
        return positions
    found = positions.copy()
    for p in np.flatnonzero(same.any(axis=0)):
        own = same[:, p]
        first = np.flatnonzero(np.isfinite(positions[:, p]).all(axis=1) & ~np.append(False, own))
        steps = np.linalg.norm(np.diff(positions[first, p], axis=0), axis=1)
        if not len(steps):
            continue
        repeats = np.diff(np.append(first, len(positions))) > 1
        repeats &= np.append(own, False)[first]
        missing = repeats & _jumps(steps)
        frozen = np.repeat(missing, np.diff(np.append(first, len(positions))))
        rows = np.arange(first[0], len(positions))[frozen]
        rows = rows[np.append(False, own)[rows]]
        found[rows, p] = np.nan
    return found


def _jumps(steps: NDArray) -> NDArray:
    """Return a mask (S + 1,) of the positions whose steps (S,) in or out are as long as their neighbours.

    A marker that comes to rest makes shorter steps.
    """
    unknown = np.full(NEIGHBOURS, np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([unknown, steps, unknown]), NEIGHBOURS)
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no neighbour on one side
        before = np.nanmedian(windows[: len(steps)], axis=1)
        after = np.nanmedian(windows[NEIGHBOURS + 1 :], axis=1)
        coarse = RESOLUTION_STEPS * steps.min()
        into = (steps > JUMP_FRACTION * before) & (before > coarse)
        out_of = (steps > JUMP_FRACTION * after) & (after > coarse)
    return np.append(False, into) | np.append(out_of, False)


def require_positions(positions: ArrayLike, n_markers: int | None = None) -> NDArray:
    """Return positions (M, P, 3) as floats, NaN where a marker was not seen and its last position was repeated."""
    array = np.asarray(positions, dtype=float)
    if array.ndim != 3 or array.shape[2] != 3 or n_markers not in (None, array.shape[1]) or not len(array):
        raise MocapError(
            f"marker positions have shape {array.shape}; expected (frames, {n_markers or 'markers'}, 3): x, y, z in m "
            "of each marker, NaN where it was not seen"
        )
    return without_repeated(array)


MAX_WORKSPACE_M = 20.0
"""Largest distance within an arm's workspace, m; positions in mm exceed it."""


def checked_markers(markers: ArrayLike) -> NDArray:
    """Return a copy as floats, a marker NaN in all coordinates or in none, and where its last position was repeated.

    Args:
        markers: (N, P, 3), or (N, 3) of one marker.
    """
    positions = np.array(markers, dtype=float)
    if positions.ndim == 2:
        positions = positions[:, None]
    if positions.ndim != 3 or positions.shape[-1] != 3 or 0 in positions.shape:
        raise MocapError(f"markers have shape {np.shape(markers)}; expected (N, P, 3): N frames of P markers, m")
    if np.isinf(positions).any():
        frame, marker = np.argwhere(np.isinf(positions))[0][:2]
        raise MocapError(f"marker {marker} is infinite in frame {frame}; expected NaN where a marker is not seen")
    positions[np.isnan(positions).any(axis=2)] = np.nan
    positions = without_repeated(positions)
    seen = is_seen(positions)
    if not seen.any():
        raise MocapError("no marker is seen in any frame; are these the body's markers?")
    # The interquartile range: a single ghost far away does not count.
    spread = float(np.max(np.diff(np.percentile(positions[seen], [25, 75], axis=0), axis=0)))
    if spread > MAX_WORKSPACE_M:
        raise MocapError(
            f"half of the marker positions spread over more than {spread:.4g} m; no arm is that large: "
            "are they in mm? Divide by 1000"
        )
    return positions


def is_seen(markers: NDArray) -> NDArray:
    """Return a mask (N, P) of the seen markers."""
    return np.isfinite(markers[..., 0])


def column_means(values: NDArray, seen: NDArray) -> NDArray:
    """Return the means (P, ...) of values (N, P, ...) over the frames with a marker; zero for one never seen."""
    mask = seen.reshape(seen.shape + (1,) * (values.ndim - 2))
    count = np.maximum(seen.sum(axis=0), 1).reshape((-1,) + (1,) * (values.ndim - 2))
    return np.sum(np.where(mask, values, 0.0), axis=0) / count


def pair_distances(markers: NDArray) -> Iterator[tuple[int, int, NDArray]]:
    """Yield two markers i < j that are seen together, and their distances (N,), m; NaN where one is not seen."""
    for i, j in combinations(range(markers.shape[1]), 2):
        distance = np.linalg.norm(markers[:, i] - markers[:, j], axis=1)
        if np.isfinite(distance).any():
            yield i, j, distance


def jitter(markers: NDArray) -> float:
    """Return the standard deviation of the noise of markers (K, P, 3) without a model of the motion, m; NaN if unknown.

    It is the smallest by third differences in time and by distances of any two markers. A smooth motion hardly affects
    the former, a rigid body's motion not at all the latter. Slow errors that move all markers equally affect neither,
    so the noise about a fitted motion may be larger.
    """
    difference = np.diff(markers, n=3, axis=0)
    difference = difference[np.isfinite(difference)]
    found = [median_deviation(difference) / np.sqrt(20.0)] if difference.size else []
    for _, _, distance in pair_distances(markers):
        together = distance[np.isfinite(distance)]
        if together.size > 3:
            found.append(median_deviation(together - np.median(together)) / np.sqrt(2.0))
    return min(found, default=float("nan"))


# Exchanged markers, restored by their expected positions.


def matched(seen: NDArray, expected: NDArray, gate: float) -> tuple[NDArray, NDArray]:
    """Return the markers of the seen points of one frame: least total distance, each within a gate.

    Args:
        seen: Points (S, 3), m; NaN for missing ones.
        expected: Positions (P, 3), m; NaN for unknown ones.
        gate: Largest distance, m.

    Returns:
        Indices of seen points and, of equal length, of their markers.
    """
    points, places = (np.flatnonzero(np.isfinite(x).all(axis=1)) for x in (seen, expected))
    # Pairs beyond the gate have one cost above any sum within it, so that as many as possible are within.
    distance = cdist(seen[points], expected[places])
    cost = np.where(distance < gate, distance, gate * (1 + len(points)))
    rows, columns = linear_sum_assignment(cost)
    good = distance[rows, columns] < gate
    return points[rows[good]], places[columns[good]]


def reordered(seen: NDArray, expected: NDArray, gate: float) -> NDArray:
    """Return points (M, P, 3) in the order of their nearest markers, frame by frame; NaN where none is near.

    Args:
        seen: Points (M, P, 3), m; NaN where not seen.
        expected: Expected positions (M, P, 3) of the markers, m.
        gate: Largest distance, m.
    """
    ordered = np.full_like(seen, np.nan)
    for frame, (points, places) in enumerate(zip(seen, expected, strict=True)):
        found, marker = matched(points, places, gate)
        ordered[frame, marker] = points[found]
    return ordered


# Exchanged markers, restored by the distances between successive frames.


MAX_UNSEEN_FRAMES = 10
"""Number of frames for which the last place of an unseen marker determines its name."""

MIN_JUMP_STEPS = 6.0
"""Step, in parts of the median one, above which names are checked."""


def linked(markers: NDArray) -> NDArray:
    """Return markers (N, P, 3) under the names that they have in most frames.

    It needs no model of the motion. Errors accumulate, so this is for a start, not for counting faults.

    Args:
        markers: Positions (N, P, 3), m; NaN where not seen.
    """
    n_frames, n_markers = markers.shape[:2]
    latest = np.maximum.accumulate(np.where(is_seen(markers), np.arange(n_frames)[:, None], -1), axis=0)
    last = np.take_along_axis(markers, np.maximum(latest, 0)[..., None], axis=0)
    step = np.linalg.norm(markers[1:] - last[:-1], axis=2)
    fresh = (
        np.isfinite(step) & (latest[:-1] >= 0) & (np.arange(1, n_frames)[:, None] - latest[:-1] <= MAX_UNSEEN_FRAMES)
    )
    if n_markers < 2 or not fresh.any():
        return markers
    jumps = np.flatnonzero(np.any(fresh & (step > MIN_JUMP_STEPS * np.median(step[fresh])), axis=1)) + 1
    reach = 0.5 * _closest(markers)
    # Which of the positions in a frame is each marker; where and when each was seen last.
    source = np.empty((n_frames, n_markers), dtype=int)
    current = np.arange(n_markers)
    done = 0
    place = np.full((n_markers, 3), np.nan)
    when = np.full(n_markers, -MAX_UNSEEN_FRAMES - 1)
    for k in [*jumps.tolist(), n_frames]:
        source[done:k] = current
        newer = latest[k - 1, current] >= done
        place[newer] = last[k - 1, current[newer]]
        when[newer] = latest[k - 1, current[newer]]
        if k < n_frames:
            known = np.where((k - when <= MAX_UNSEEN_FRAMES)[:, None], place, np.nan)
            current = _renamed(current, *matched(markers[k], known, reach))
            done = k
    typical, counts = np.unique(source, axis=0, return_counts=True)
    # The names are only relative to the first frame's, which need not be the typical ones.
    own = np.argsort(typical[np.argmax(counts)])
    return np.take_along_axis(markers, source[:, own][..., None], axis=1)


def _closest(markers: NDArray) -> float:
    """Return the smallest of the median distances between two markers, m."""
    return min((float(np.nanmedian(distance)) for _, _, distance in pair_distances(markers)), default=float("inf"))


def _renamed(current: NDArray, now: NDArray, then: NDArray) -> NDArray:
    """Return the positions (P,) of the markers after some were found; the others keep theirs or share the rest."""
    renamed = np.full(len(current), -1)
    renamed[then] = now
    for p in np.flatnonzero(renamed < 0):
        if current[p] not in renamed:
            renamed[p] = current[p]
    renamed[renamed < 0] = np.setdiff1d(np.arange(len(current)), renamed)
    return renamed


# Markers whose order changes from frame to frame, as tracks.


TRACK_GATE_M = 0.03
"""Largest distance of a point from the prediction of its track, m: less than half the distance between markers, more
than the error of a prediction (half acceleration times squared interval, plus noise)."""

MAX_UNSEEN_S = 0.5
"""Time after which an unseen track ends, s."""

MIN_TRACK_SHARE = 0.05
"""Smallest share of the frames that a track must hold: ghosts are short."""


def tracks(points: ArrayLike, time: ArrayLike) -> NDArray:
    """Return points in any order, frame by frame, as tracks (M, T, 3), m; NaN where not seen.

    Each track predicts its next point by constant velocity. Points and predictions are matched by least total distance
    within the gate. A point that continues no track starts one. A marker that is hidden for more than half a second
    comes back as another track: `bodies` and links join them.

    Args:
        points: Points (M, S, 3), m; NaN for missing ones.
        time: Times (M,), increasing, s.

    Raises:
        MocapError: The points have another shape.
    """
    seen = require_positions(points)
    stamps = np.asarray(time, dtype=float)
    owner = np.full(seen.shape[:2], -1)
    current = np.empty(0, dtype=int)
    last = np.empty((0, 3))
    velocity = np.empty((0, 3))
    when = np.empty(0)
    count = 0
    for frame, (now, row) in enumerate(zip(stamps, seen, strict=True)):
        alive = now - when <= MAX_UNSEEN_S
        current = current[alive]
        last = last[alive]
        velocity = velocity[alive]
        when = when[alive]
        ahead = (now - when)[:, None]
        # Velocity is trusted for a few frames only; a hidden marker may have reversed.
        found, track = matched(row, last + velocity * np.minimum(ahead, 0.1), TRACK_GATE_M)
        if len(track):
            fresh = (row[found] - last[track]) / ahead[track]
            velocity[track] = (velocity[track] + fresh) / 2  # half of the noise of a difference stays out
            last[track] = row[found]
            when[track] = now
            owner[frame, found] = current[track]
        new = np.setdiff1d(np.flatnonzero(np.isfinite(row).all(axis=1)), found)
        if len(new):
            begun = np.arange(count, count + len(new))
            count += len(new)
            owner[frame, new] = begun
            current = np.append(current, begun)
            last = np.concatenate([last, row[new]])
            velocity = np.concatenate([velocity, np.zeros((len(new), 3))])
            when = np.append(when, np.full(len(new), now))
    # Only tracks that last get a column of their own: a recording with many ghosts begins a track in most frames.
    lasting = np.flatnonzero(np.bincount(owner[owner >= 0], minlength=count) >= MIN_TRACK_SHARE * len(seen))
    frames, points_of = np.nonzero(np.isin(owner, lasting))
    result = np.full((len(seen), len(lasting), 3), np.nan)
    result[frames, np.searchsorted(lasting, owner[frames, points_of])] = seen[frames, points_of]
    return result
