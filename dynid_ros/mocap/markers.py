"""Marker positions (N, P, 3): N frames of P markers on one body, m, in the camera's frame; NaN where not seen."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import _deviation

LARGEST = 20.0
"""Greatest distance within an arm's workspace, m; positions in mm exceed it."""


def checked_markers(markers: ArrayLike) -> NDArray:
    """Copy as floats, a marker NaN in all coordinates or in none.

    Args:
        markers: (N, P, 3), or (N, 3) of one marker.

    Raises:
        MocapError: another shape, infinite values, no marker seen, or positions that cannot be metres.

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
    seen = is_seen(positions)
    if not seen.any():
        raise MocapError("no marker is seen in any frame; are these the body's markers?")
    # Half of what is seen, or a single ghost far away would decide.
    spread = float(np.max(np.diff(np.percentile(positions[seen], [25, 75], axis=0), axis=0)))
    if spread > LARGEST:
        raise MocapError(
            f"half of the marker positions spread over more than {spread:.4g} m; no arm is that large: "
            "are they in mm? Divide by 1000"
        )
    return positions


def is_seen(markers: NDArray) -> NDArray:
    """(N, P) whether each marker is seen."""
    return np.isfinite(markers[..., 0])


def column_means(values: NDArray, seen: NDArray) -> NDArray:
    """(P, ...) mean of (N, P, ...) over the frames in which a marker is seen; zero for one never seen."""
    mask = seen.reshape(seen.shape + (1,) * (values.ndim - 2))
    count = np.maximum(seen.sum(axis=0), 1).reshape((-1,) + (1,) * (values.ndim - 2))
    return np.sum(np.where(mask, values, 0.0), axis=0) / count


def pair_distances(markers: NDArray) -> Iterator[tuple[int, int, NDArray]]:
    """Two markers i < j that are seen together, and their distances (N,), m; NaN where one is not seen."""
    for i, j in combinations(range(markers.shape[1]), 2):
        distance = np.linalg.norm(markers[:, i] - markers[:, j], axis=1)
        if np.isfinite(distance).any():
            yield i, j, distance


def jitter(markers: NDArray) -> float:
    """Standard deviation, m, of the noise of markers (K, P, 3), by no model of the motion; NaN if nothing tells it.

    The smallest of what third differences in time and distances of any two markers say: a smooth motion hardly shows in
    the former, a rigid body's not at all in the latter. Errors that change slowly and move all markers alike show in
    neither, so the noise about a fitted motion may be larger.
    """
    difference = np.diff(markers, n=3, axis=0)
    difference = difference[np.isfinite(difference)]
    found = [_deviation(difference) / np.sqrt(20.0)] if difference.size else []
    for _, _, distance in pair_distances(markers):
        together = distance[np.isfinite(distance)]
        if together.size > 3:
            found.append(_deviation(together - np.median(together)) / np.sqrt(2.0))
    return min(found, default=float("nan"))
