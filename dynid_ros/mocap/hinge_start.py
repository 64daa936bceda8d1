"""A first axis and centre of rotation, in spite of ghosts, jumps and exchanged markers."""

import contextlib

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import GAUSSIAN, lengths, spread
from dynid_ros.mocap.axis import axis_of_rotation
from dynid_ros.mocap.center import center_of_rotation
from dynid_ros.mocap.hinge import Hinge, start_hinge
from dynid_ros.mocap.linking import linked
from dynid_ros.mocap.marker_faults import FINEST, GATE
from dynid_ros.mocap.markers import is_seen, jitter, pair_distances

CIRCLE = 1.177410
"""Median length of a vector of two standard normal numbers."""

NEIGHBOURS = 2
"""Frames before and after one whose median it is compared with."""

PASSES = 20

SUSPECT = 2.0
"""Noise in parts of that from frame to frame, beyond which other beginnings are tried."""

BEGINNINGS, FEW = 20, 20
"""How many of them, and frames in each."""


def first_hinge(markers: NDArray) -> tuple[Hinge, float]:
    """Hinge by axis and centre of rotation from positions that agree with most others, and its noise, m.

    Exchanged names are followed first. Then are left out positions off the median of their neighbours in time, pairs of
    markers at another distance than mostly, and those off their circles, until these stay the same (concentration
    steps, Rousseeuw and Van Driessen 1999). Should that end far above the noise, as a few gross errors among short arcs
    can make it, it begins again with few frames, which hardly hold one of them, and the best end is taken.

    Args:
        markers: (N, P, 3) m, NaN where not seen.

    Raises:
        MocapError: what is left tells no axis or centre.

    """
    markers = linked(markers)
    used = _steady(markers) & _at_distance(markers)
    best, noise = _concentrated(markers, used)
    if noise > SUSPECT * jitter(np.where(used[..., None], markers, np.nan)):
        rng, frames = np.random.default_rng(0), np.flatnonzero(used.any(axis=1))
        for _ in range(BEGINNINGS):
            few = np.isin(np.arange(len(markers)), rng.choice(frames, min(FEW, len(frames)), replace=False))
            with contextlib.suppress(MocapError):  # these few tell no axis
                found, there = _concentrated(markers, used & few[:, None])
                best, noise = (found, there) if there < noise else (best, noise)
    return best, noise


def _concentrated(markers: NDArray, used: NDArray) -> tuple[Hinge, float]:
    """Hinge and noise by concentration steps that begin with the positions `used` (N, P)."""
    for _ in range(PASSES):
        trusted = np.where(used[..., None], markers, np.nan)
        axis = axis_of_rotation(trusted).direction
        hinge = start_hinge(markers, axis, _center(trusted, axis))
        local = hinge.local(markers)
        radial = np.hypot(local[..., 0], local[..., 1]) - hinge.radii
        off = np.hypot(radial, local[..., 2] - hinge.template[:, 2])
        before, used = used, off < GATE * max(float(np.nanmedian(off)) / CIRCLE, FINEST)
        if np.array_equal(before, used):
            break
    residual = local - hinge.turned(hinge.angles(local))
    return hinge, float(spread(lengths(residual).ravel()))


def _center(markers: NDArray, axis: NDArray) -> NDArray:
    try:
        return center_of_rotation(markers, axis).point
    except MocapError:  # arcs too short for it; least squares of all together may still do
        return center_of_rotation(markers, axis, compensated=False).point


def _steady(markers: NDArray) -> NDArray:
    """(N, P) seen, and near the median of the neighbours in time."""
    padded = np.pad(markers, [(NEIGHBOURS, NEIGHBOURS), (0, 0), (0, 0)], constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1, axis=0)
    seen = is_seen(markers)
    off = np.full(seen.shape, np.inf)
    company = np.isfinite(windows[..., 0, :]).sum(axis=-1) > NEIGHBOURS
    # Alone in its time, a ghost looks steady; where most are alone there is no telling.
    judged = seen & company if 2 * np.sum(seen & company) > seen.sum() else seen
    off[judged] = np.linalg.norm(markers[judged] - np.nanmedian(windows[judged], axis=-1), axis=1)
    some = markers[:, seen.any(axis=0)]
    travel = np.max(np.nanpercentile(some, 75, axis=0) - np.nanpercentile(some, 25, axis=0))
    # Even without noise, a turn is no straight line.
    return off < max(GATE * GAUSSIAN * float(np.median(off[judged])), 0.01 * float(travel), FINEST)


def _at_distance(markers: NDArray) -> NDArray:
    """(N, P) at the usual distance to all other markers, as far as both are seen."""
    good = is_seen(markers)
    for i, j, distance in pair_distances(markers):
        off = np.abs(distance - np.nanmedian(distance))
        bad = off > max(GATE * GAUSSIAN * float(np.nanmedian(off)), FINEST)
        good[bad, i] = good[bad, j] = False
    return good
