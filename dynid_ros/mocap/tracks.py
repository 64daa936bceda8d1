"""Markers whose order changes from frame to frame, made into tracks that stay with one marker."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.mocap.marker_set import require_positions
from dynid_ros.mocap.mending import matched

GATE = 0.03
"""Distance from its prediction up to which a point can continue a track, m."""

FORGOTTEN = 0.5
"""Time after which a track that is not seen is given up, s."""

SHORTEST = 0.05
"""Share of the frames that a track must hold to be kept: ghosts flash up."""


def tracks(points: ArrayLike, time: ArrayLike, gate: float = GATE) -> NDArray:
    """Points in any order, frame by frame, as tracks (M, T, 3) in m, NaN where not seen.

    Each track predicts its next point by constant velocity; points and predictions are matched by least total distance
    within the gate. A point that continues no track starts one. A marker that is hidden for more than half a second
    comes back as another track: `bodies` and links tell that they are one.

    Args:
        points: (M, S, 3) m, NaN for points that are not there.
        time: (M,) s, increasing.
        gate: m; less than half the distance between markers, more than the error of a prediction (half acceleration
            times squared interval, plus noise).

    Raises:
        MocapError: points of another shape.

    """
    seen = require_positions(points, np.shape(points)[1] if np.ndim(points) == 3 else 0)
    stamps = np.asarray(time, dtype=float)
    finished: list[NDArray] = []
    current = np.empty((0, len(seen), 3))
    last, velocity, when = np.empty((0, 3)), np.empty((0, 3)), np.empty(0)
    for frame, (now, row) in enumerate(zip(stamps, seen, strict=True)):
        alive = now - when <= FORGOTTEN
        finished.extend(current[~alive])
        current, last, velocity, when = current[alive], last[alive], velocity[alive], when[alive]
        ahead = (now - when)[:, None]
        # Velocity is trusted for a few frames only; a hidden marker may have turned round.
        found, track = matched(row, last + velocity * np.minimum(ahead, 0.1), gate)
        if len(track):
            fresh = (row[found] - last[track]) / ahead[track]
            velocity[track] = (velocity[track] + fresh) / 2  # half of the noise of a difference stays out
            last[track], when[track] = row[found], now
            current[track, frame] = row[found]
        new = np.setdiff1d(np.flatnonzero(np.isfinite(row).all(axis=1)), found)
        if len(new):
            begun = np.full((len(new), len(seen), 3), np.nan)
            begun[:, frame] = row[new]
            current = np.concatenate([current, begun])
            last, velocity = np.concatenate([last, row[new]]), np.concatenate([velocity, np.zeros((len(new), 3))])
            when = np.append(when, np.full(len(new), now))
    everything = np.array([*finished, *current]).reshape(-1, len(seen), 3)
    lasting = np.isfinite(everything).all(axis=2).mean(axis=1) >= SHORTEST
    return everything[lasting].transpose(1, 0, 2)
