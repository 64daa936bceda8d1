"""Markers followed from frame to frame by nearness, where a tracker has exchanged their names for a while."""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.markers import is_seen, pair_distances
from dynid_ros.mocap.mending import matched

STALE = 10
"""Frames for which the last place of an unseen marker still tells where it comes back."""

JUMP = 6.0
"""Step in parts of the median one, from which it is asked whose it is."""


def linked(markers: NDArray) -> NDArray:
    """Markers under the names that they have in most frames, (N, P, 3).

    No model of the motion is needed; errors add up, so this is for a start, not for counting faults.

    Args:
        markers: (N, P, 3) m, NaN where not seen.

    """
    n_frames, n_markers = markers.shape[:2]
    latest = np.maximum.accumulate(np.where(is_seen(markers), np.arange(n_frames)[:, None], -1), axis=0)
    last = np.take_along_axis(markers, np.maximum(latest, 0)[..., None], axis=0)
    step = np.linalg.norm(markers[1:] - last[:-1], axis=2)
    fresh = np.isfinite(step) & (latest[:-1] >= 0) & (np.arange(1, n_frames)[:, None] - latest[:-1] <= STALE)
    if n_markers < 2 or not fresh.any():
        return markers
    jumps = np.flatnonzero(np.any(fresh & (step > JUMP * np.median(step[fresh])), axis=1)) + 1
    reach = 0.5 * _closest(markers)
    # Which of the positions in a frame is each marker; where and when each was seen last.
    source, current, done = np.empty((n_frames, n_markers), dtype=int), np.arange(n_markers), 0
    place, when = np.full((n_markers, 3), np.nan), np.full(n_markers, -STALE - 1)
    for k in [*jumps.tolist(), n_frames]:
        source[done:k] = current
        newer = latest[k - 1, current] >= done
        place[newer], when[newer] = last[k - 1, current[newer]], latest[k - 1, current[newer]]
        if k < n_frames:
            known = np.where((k - when <= STALE)[:, None], place, np.nan)
            current, done = _renamed(current, *matched(markers[k], known, reach)), k
    usual, counts = np.unique(source, axis=0, return_counts=True)
    # The names are only relative to the first frame's, which need not be the usual ones.
    own = np.argsort(usual[np.argmax(counts)])
    return np.take_along_axis(markers, source[:, own][..., None], axis=1)


def _closest(markers: NDArray) -> float:
    """Smallest of the median distances between two markers, m."""
    return min((float(np.nanmedian(distance)) for _, _, distance in pair_distances(markers)), default=float("inf"))


def _renamed(current: NDArray, now: NDArray, then: NDArray) -> NDArray:
    """Which position is each marker (P,), some being found anew; the others keep theirs or share what is left."""
    renamed = np.full(len(current), -1)
    renamed[then] = now
    for p in np.flatnonzero(renamed < 0):
        if current[p] not in renamed:
            renamed[p] = current[p]
    renamed[renamed < 0] = np.setdiff1d(np.arange(len(current)), renamed)
    return renamed
