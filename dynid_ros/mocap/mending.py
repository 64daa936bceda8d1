"""Markers that the tracker has mixed up, put back by where they should be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist


def matched(seen: NDArray, expected: NDArray, gate: float) -> tuple[NDArray, NDArray]:
    """Which seen point is which expected marker, in one frame: least total distance, none farther than `gate`.

    Args:
        seen: (S, 3) m, NaN for one that is not there.
        expected: (P, 3) m, NaN for a marker of which nothing is known.
        gate: m.

    Returns:
        indices of seen points and, as long, of the markers that they are.

    """
    points, places = (np.flatnonzero(np.isfinite(x).all(axis=1)) for x in (seen, expected))
    # All pairs beyond the gate cost the same, more than any sum within it: as many as can are matched within.
    distance = cdist(seen[points], expected[places])
    cost = np.where(distance < gate, distance, gate * (1 + len(points)))
    rows, columns = linear_sum_assignment(cost)
    good = distance[rows, columns] < gate
    return points[rows[good]], places[columns[good]]


def mended(seen: NDArray, expected: NDArray, gate: float) -> NDArray:
    """Points (M, P, 3) in the order of the markers they are nearest to, frame by frame; NaN where none is near.

    Args:
        seen: (M, P, 3) m, NaN where not seen.
        expected: (M, P, 3) m where the markers should be.
        gate: m, farthest that a point may be from there.

    """
    ordered = np.full_like(seen, np.nan)
    for frame, (points, places) in enumerate(zip(seen, expected, strict=True)):
        found, marker = matched(points, places, gate)
        ordered[frame, marker] = points[found]
    return ordered
