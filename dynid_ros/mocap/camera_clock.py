"""Rough alignment of the clocks of camera and robot by turning speeds, before the camera's pose is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import MocapError, RecordingError
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.signals.clock_alignment import ClockAlignment, align_clocks

# Angles by which bodies turn within a short time. They do not depend on the poses of camera and markers.


GRID_STEP_S = 0.02
"""Step of the grid, s."""

TURN_INTERVAL_S = 0.1
"""Time within which a turn is measured, s: long for the markers' noise, short for the motion."""


def grid(time: NDArray) -> NDArray:
    """Return the times (G,) at which turns can be determined, s."""
    return np.arange(time[0] + TURN_INTERVAL_S / 2, time[-1] - TURN_INTERVAL_S / 2, GRID_STEP_S)


def link_turns(robot: RobotModel, time: NDArray, q: NDArray) -> NDArray:
    """Return the angles (G, n) of the links' turns around each time of the grid, rad, for motions q (N, n)."""
    before, after = (
        robot.forward_kinematics(_interpolated(time, q, grid(time) + side))[..., :3, :3]
        for side in (-TURN_INTERVAL_S / 2, TURN_INTERVAL_S / 2)
    )
    return _angle(np.swapaxes(before, -1, -2) @ after)


def body_turns(time: NDArray, positions: NDArray) -> NDArray:
    """Return the angles (G,) of a body's turns around each time of the grid, rad.

    NaN where fewer than three of its markers are seen.

    Args:
        time: Times (M,), s.
        positions: Positions (M, Q, 3) of its markers, m; NaN where not seen.
    """
    sides = [_interpolated(time, positions, grid(time) + side) for side in (-TURN_INTERVAL_S / 2, TURN_INTERVAL_S / 2)]
    both = np.isfinite(sides[0]).all(axis=2) & np.isfinite(sides[1]).all(axis=2)
    count = np.maximum(both.sum(axis=1), 1)[:, None, None]
    arms = []
    for side in sides:
        filled = np.where(both[..., None], side, 0.0)
        centred = filled - filled.sum(axis=1, keepdims=True) / count
        arms.append(np.where(both[..., None], centred, 0.0))
    # Kabsch 1976: the rotation that carries one set of points best into the other.
    u, _, vt = np.linalg.svd(np.swapaxes(arms[0], 1, 2) @ arms[1])
    u[..., -1] *= np.sign(np.linalg.det(u) * np.linalg.det(vt))[:, None]
    return np.where(both.sum(axis=1) >= 3, _angle(u @ vt), np.nan)


def _interpolated(time: NDArray, values: NDArray, at: NDArray) -> NDArray:
    """Return values (M, ...) by linear interpolation; NaN next to a NaN."""
    after = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    share = (at - time[after - 1]) / (time[after] - time[after - 1])
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return values[after - 1] * (1 - share) + values[after] * share


def _angle(rotation: NDArray) -> NDArray:
    """Return the angles (...) of rotations (..., 3, 3), rad; by sine and cosine, which is exact for small ones."""
    sine = np.stack([rotation[..., i, j] - rotation[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=-1)
    return np.arctan2(np.linalg.norm(sine, axis=-1), np.trace(rotation, axis1=-2, axis2=-1) - 1)


MAX_OVERLAP_OFFSET_S = 1.0
"""Largest offset of clocks whose records overlap, s."""

MIN_CORRELATION = 0.8
SUFFICIENT_CORRELATION = 0.95
"""Smallest correlation of turning speeds, of the middle one of several bodies, that is accepted, and the one above
which no further pair is tried."""


def first_clock(
    robot: RobotModel,
    recording: Recording,
    time: NDArray,
    positions: NDArray,
    bodies: Sequence[tuple[NDArray, int | None]],
) -> ClockAlignment:
    """Return the clock alignment by which each body turns as fast as its link.

    Args:
        robot: Model of the arm.
        recording: Recording of its joints alone.
        time: Times (M,) of the camera, s.
        positions: Marker positions (M, P, 3), m; NaN where not seen.
        bodies: Columns of three or more rigidly connected markers, and the index of their link; None: unknown, then the
            best pair of a body and a link is taken.

    Raises:
        MocapError: The records neither overlap nor match.
    """
    near = _overlap(recording, time) > 0.5 * min(recording.duration, time[-1] - time[0])
    moving = [(body_turns(time, positions[:, columns]), link) for columns, link in bodies if len(columns) >= 3]
    links = link_turns(robot, recording.time, recording.position)
    known = [(turns, links[:, link]) for turns, link in moving if link is not None and link >= 0]
    trials = [known] if known else [[(turns, column)] for turns, _ in moving for column in links.T]
    best: ClockAlignment | None = None
    error = "no body of three markers turns with a link"
    for pairs in trials:
        try:
            found = align_clocks(
                grid(recording.time),
                np.stack([link for _, link in pairs], axis=1),
                grid(time),
                np.stack([turns for turns, _ in pairs], axis=1),
                longest=MAX_OVERLAP_OFFSET_S if near else None,
                drift=False,
            )
        except RecordingError as reason:
            error = str(reason)
            continue
        if _match(found) > (MIN_CORRELATION if best is None else _match(best)):
            best = found
        if best is not None and _match(best) > SUFFICIENT_CORRELATION:
            break
    if best is not None:
        return best
    if near:  # nothing turns: the stamps are what there is
        return ClockAlignment(0.0, 0.0, float(time[[0, -1]].mean()), np.full(2, np.nan), np.empty(0), ())
    raise MocapError(
        f"{recording.source} and its markers do not overlap in time: joints from {recording.time[0]:.3f} to "
        f"{recording.time[-1]:.3f} s, markers from {time[0]:.3f} to {time[-1]:.3f} s, and at no offset do bodies turn "
        f"as links do ({error}); record both at once"
    )


def _overlap(recording: Recording, time: NDArray) -> float:
    return float(min(recording.time[-1], time[-1]) - max(recording.time[0], time[0]))


def _match(clock: ClockAlignment) -> float:
    return float(np.nanmedian(clock.correlation))
