"""Markers that are another's, or no marker at all, told by where a hinge can put the body's markers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.robust import lengths
from dynid_ros.mocap.hinge import Hinge
from dynid_ros.mocap.markers import is_seen
from dynid_ros.mocap.mending import matched

GATE = 6.0
"""Standard deviations of a coordinate within which a position may be a marker's: noise stays within, also one with
heavier tails than a normal one's, and what a fault within does to an angle is small."""

FINEST = 1e-6
"""Least noise of a camera, m: less is rounding."""


@dataclass(frozen=True, eq=False)
class Mended:
    """Markers without faults.

    Attributes:
        markers: (N, P, 3) m; exchanged markers in their own places, NaN for what is no marker of the body.
        swapped: (N,) frames in which markers were exchanged.
        outliers: (N, P) positions, as given, that were dropped.

    """

    markers: NDArray
    swapped: NDArray
    outliers: NDArray


def mend(markers: NDArray, hinge: Hinge, noise: float) -> Mended:
    """Put exchanged markers back and drop positions that no angle of the hinge explains.

    In a frame with a residual beyond the gate, each position in turn is taken for each marker; that gives an angle and
    with it the places of all markers. The angle with the most positions in place wins, and of those the one that leaves
    each marker its own name.

    Args:
        markers: (N, P, 3) m, NaN where not seen.
        hinge: of the body; markers unknown there are dropped without being counted.
        noise: standard deviation of a coordinate, m.

    """
    limit = GATE * max(noise, FINEST)
    known = np.isfinite(hinge.template[:, 0])
    mended = np.where(known[:, None], markers, np.nan)
    swapped, outliers = np.zeros(len(markers), dtype=bool), np.zeros(markers.shape[:2], dtype=bool)
    local = hinge.local(mended)
    off = lengths(local - hinge.turned(hinge.angles(local)))
    suspect = np.flatnonzero(np.any((off > limit) & is_seen(local), axis=1))
    for k in suspect:
        source = _sources(local[k], hinge, limit)
        used = source >= 0
        swapped[k] = np.any(used & (source != np.arange(len(source))))
        outliers[k] = is_seen(local[k]) & ~np.isin(np.arange(len(source)), source)
        mended[k] = np.where(used[:, None], mended[k, source], np.nan)
    return Mended(mended, swapped, outliers)


def is_symmetric(hinge: Hinge, noise: float) -> bool:
    """Whether a turn about the axis exchanges the markers unnoticed, so that only the angle jumps."""
    known = np.isfinite(hinge.template[:, 0])
    body = Hinge(hinge.frame, hinge.center, hinge.template[known])
    limit = GATE * max(noise, FINEST)
    candidates = _candidates(body.template, body, limit)
    return any(i != p and len(_assigned(body.template, body, i, p, limit)[0]) == len(body.radii) for i, p in candidates)


def _sources(local: NDArray, hinge: Hinge, limit: float) -> NDArray:
    """(P,) which of a frame's local positions (P, 3) is each marker, -1 for none."""
    best, best_rank = np.full(len(local), -1), (0, 0, 0.0)
    n_seen = int(is_seen(local).sum())
    for i, p in _candidates(local, hinge, limit):
        points, places, cost = _assigned(local, hinge, i, p, limit)
        rank = (len(points), int(np.sum(points == places)), -cost)
        # A lone position under another's name is chance.
        if rank > best_rank and (rank[0] > 1 or rank[1] == 1):
            best, best_rank = np.full(len(local), -1), rank
            best[places] = points
            if rank[0] == n_seen:
                break
    return best


def _candidates(local: NDArray, hinge: Hinge, limit: float) -> NDArray:
    """(C, 2) positions and markers of the same radius and height, those of the same name first."""
    radius = np.hypot(local[:, 0], local[:, 1])
    # A marker on the axis tells no angle.
    turning = hinge.radii > 2 * limit
    off = np.hypot(radius[:, None] - hinge.radii, local[:, 2][:, None] - hinge.template[:, 2])
    with np.errstate(invalid="ignore"):
        pairs = np.argwhere((off < limit) & turning)
    return pairs[np.argsort(pairs[:, 0] != pairs[:, 1], kind="stable")]


def _assigned(local: NDArray, hinge: Hinge, i: int, p: int, limit: float) -> tuple[NDArray, NDArray, float]:
    """Positions and the markers that they are if position i is marker p, and the sum of squared misfits."""
    angle = np.arctan2(local[i, 1], local[i, 0]) - np.arctan2(hinge.template[p, 1], hinge.template[p, 0])
    expected = hinge.turned(np.array([angle]))[0]
    # The noise of position i turns the others.
    gate = limit * float(np.hypot(1.0, np.nanmax(hinge.radii) / hinge.radii[p]))
    points, places = matched(local, expected, gate)
    return points, places, float(np.sum((local[points] - expected[places]) ** 2))
