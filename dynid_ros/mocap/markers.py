"""Marker positions (N, P, 3) in N frames of a camera: missing positions, exchanged names, tracks.

Positions are in m in the camera's frame, and NaN where a marker is not seen.
"""

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

# Repeated positions of trackers that lose a marker.


NEIGHBOURS = 4
"""Number of steps before and after a repeated position that determine the typical step of a marker."""
JUMP_FRACTION = 0.5
"""Smallest step into or out of repeated positions, relative to the median of neighbouring steps, that proves that the
marker was not seen. A marker that comes to rest makes steps of less than 0.3."""
RESOLUTION_STEPS = 3.0
"""Ratio of typical steps to the smallest step, up to which positions are so coarse that they repeat by chance."""


def without_repeated(positions: NDArray) -> NDArray:
    """Return positions (M, P, 3) with NaN where a marker was not seen and its last position was repeated.

    Due to noise, no two measurements are equal to the last digit. Equal positions are kept if they can be measurements:
    of a simulated marker that comes to rest, or with a resolution as coarse as the noise.
    """
    same = np.all(positions[1:] == positions[:-1], axis=2)
    if not same.any():
        return positions
    result = positions.copy()
    for p in np.flatnonzero(same.any(axis=0)):
        is_repeat = np.append(False, same[:, p])
        # Frames in which a new position begins, and steps between these positions.
        first = np.flatnonzero(np.isfinite(positions[:, p]).all(axis=1) & ~is_repeat)
        steps = np.linalg.norm(np.diff(positions[first, p], axis=0), axis=1)
        if not len(steps):
            continue
        lengths = np.diff(np.append(first, len(positions)))
        repeats = (lengths > 1) & np.append(same[:, p], False)[first]
        missing = repeats & _jumps(steps)
        rows = np.arange(first[0], len(positions))[np.repeat(missing, lengths)]
        result[rows[is_repeat[rows]], p] = np.nan
    return result


def _jumps(steps: NDArray) -> NDArray:
    """Return a mask (S + 1,) of the positions with a step (S,) in or out about as long as its neighbours.

    A marker that comes to rest makes shorter steps there.
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
    """Return a copy as floats, with all coordinates of a marker NaN where it was not seen.

    These are positions with a NaN, and positions that only repeat the last one.

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
    # The interquartile range is robust against a false marker far away.
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
    """Return the means (P, ...) of values (N, P, ...) over the frames in which a marker is seen; zero if never seen."""
    mask = seen.reshape(seen.shape + (1,) * (values.ndim - 2))
    count = np.maximum(seen.sum(axis=0), 1).reshape((-1,) + (1,) * (values.ndim - 2))
    return np.sum(np.where(mask, values, 0.0), axis=0) / count


def pair_distances(markers: NDArray) -> Iterator[tuple[int, int, NDArray]]:
    """Yield all pairs i < j of markers that are seen together, with distances (N,), m; NaN where one is not seen."""
    for i, j in combinations(range(markers.shape[1]), 2):
        distance = np.linalg.norm(markers[:, i] - markers[:, j], axis=1)
        if np.isfinite(distance).any():
            yield i, j, distance


def jitter(markers: NDArray) -> float:
    """Return the standard deviation of the noise of markers (K, P, 3) without a model of the motion, m; NaN if unknown.

    It is the smallest estimate from third differences in time and from distances between two markers. A smooth motion
    hardly affects third differences, and the motion of a rigid body does not affect distances. Slow errors that move
    all markers equally affect neither, so the noise about a fitted motion may be larger.
    """
    difference = np.diff(markers, n=3, axis=0)
    difference = difference[np.isfinite(difference)]
    # A third difference of white noise has the variance 1 + 9 + 9 + 1 = 20.
    estimates = [median_deviation(difference) / np.sqrt(20.0)] if difference.size else []
    for _, _, distance in pair_distances(markers):
        together = distance[np.isfinite(distance)]
        if together.size > 3:
            estimates.append(median_deviation(together - np.median(together)) / np.sqrt(2.0))
    return min(estimates, default=float("nan"))


# Exchanged markers, restored by their expected positions.


def matched(seen: NDArray, expected: NDArray, gate: float) -> tuple[NDArray, NDArray]:
    """Match the points of one frame with markers: least total distance, each distance within a gate.

    Args:
        seen: Points (S, 3), m; NaN for missing points.
        expected: Expected positions (P, 3) of the markers, m; NaN for unknown positions.
        gate: Largest distance of a point from its marker, m.

    Returns:
        Indices of the matched points, and indices of their markers.
    """
    points, places = (np.flatnonzero(np.isfinite(x).all(axis=1)) for x in (seen, expected))
    # A pair beyond the gate costs more than all pairs within it, so that as many pairs as possible are within.
    distance = cdist(seen[points], expected[places])
    cost = np.where(distance < gate, distance, gate * (1 + len(points)))
    rows, columns = linear_sum_assignment(cost)
    good = distance[rows, columns] < gate
    return points[rows[good]], places[columns[good]]


def reordered(seen: NDArray, expected: NDArray, gate: float) -> NDArray:
    """Return points (M, P, 3) in the order of the markers that they match, frame by frame; NaN where no point matches.

    Args:
        seen: Points (M, P, 3), m; NaN where not seen.
        expected: Expected positions (M, P, 3) of the markers, m.
        gate: Largest distance of a point from its marker, m.
    """
    ordered = np.full_like(seen, np.nan)
    for frame, (points, places) in enumerate(zip(seen, expected, strict=True)):
        point, marker = matched(points, places, gate)
        ordered[frame, marker] = points[point]
    return ordered


# Exchanged markers, restored by the distances between successive frames.


MAX_UNSEEN_FRAMES = 10
"""Number of frames for which the last position of an unseen marker serves to recognise it."""

MIN_JUMP_STEPS = 6.0
"""Ratio of a step to the median step, above which names are checked."""


def linked(markers: NDArray) -> NDArray:
    """Return markers (N, P, 3) under the names that they have in most frames, without a model of the motion.

    Errors accumulate from frame to frame, so the result serves as a start of a fit, not for counting faults.

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
    # Column of each marker's position in each frame; place and frame in which each marker was seen last.
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
    # These names are those of the first frame; return to the names of most frames.
    order = np.argsort(typical[np.argmax(counts)])
    return np.take_along_axis(markers, source[:, order][..., None], axis=1)


def _closest(markers: NDArray) -> float:
    """Return the smallest of the median distances between two markers, m."""
    return min((float(np.nanmedian(distance)) for _, _, distance in pair_distances(markers)), default=float("inf"))


def _renamed(current: NDArray, now: NDArray, then: NDArray) -> NDArray:
    """Return the columns (P,) of the markers after some were matched; others keep their column or get a free one."""
    renamed = np.full(len(current), -1)
    renamed[then] = now
    for p in np.flatnonzero(renamed < 0):
        if current[p] not in renamed:
            renamed[p] = current[p]
    renamed[renamed < 0] = np.setdiff1d(np.arange(len(current)), renamed)
    return renamed


# Tracks of markers whose order changes from frame to frame.


TRACK_GATE_M = 0.03
"""Largest distance of a point from the prediction of its track, m: less than half the distance between markers, more
than the error of a prediction (half acceleration times squared interval, plus noise)."""

MAX_UNSEEN_S = 0.5
"""Time after which an unseen track ends, s."""

MIN_TRACK_SHARE = 0.05
"""Smallest fraction of the frames in which a track must be seen: tracks of false markers are short."""


def tracks(points: ArrayLike, time: ArrayLike) -> NDArray:
    """Return tracks (M, T, 3), m, of points whose order differs from frame to frame; NaN where not seen.

    Each track predicts its next point by constant velocity. Points and predictions are matched by least total distance
    within the gate. A point that continues no track starts a new one. A marker that is hidden for more than half a
    second continues as another track, which `bodies` assigns to the same body.

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
        # The velocity holds for 0.1 s at most; a hidden marker may reverse.
        point, track = matched(row, last + velocity * np.minimum(ahead, 0.1), TRACK_GATE_M)
        if len(track):
            fresh = (row[point] - last[track]) / ahead[track]
            velocity[track] = (velocity[track] + fresh) / 2  # the mean reduces the noise of differences
            last[track] = row[point]
            when[track] = now
            owner[frame, point] = current[track]
        new = np.setdiff1d(np.flatnonzero(np.isfinite(row).all(axis=1)), point)
        if len(new):
            begun = np.arange(count, count + len(new))
            count += len(new)
            owner[frame, new] = begun
            current = np.append(current, begun)
            last = np.concatenate([last, row[new]])
            velocity = np.concatenate([velocity, np.zeros((len(new), 3))])
            when = np.append(when, np.full(len(new), now))
    # Only lasting tracks get a column: a recording with many false markers starts a track in most frames.
    lasting = np.flatnonzero(np.bincount(owner[owner >= 0], minlength=count) >= MIN_TRACK_SHARE * len(seen))
    frames, points_of = np.nonzero(np.isin(owner, lasting))
    result = np.full((len(seen), len(lasting), 3), np.nan)
    result[frames, np.searchsorted(lasting, owner[frames, points_of])] = seen[frames, points_of]
    return result
