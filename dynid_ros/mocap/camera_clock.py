"""Clocks of camera and robot, before it is known where the camera stands: by how fast bodies turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import MocapError, RecordingError
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.signals.clock_alignment import ClockAlignment, align_clocks

# How far bodies turn within a short time: the same whoever looks, wherever the camera stands and the markers sit.


STEP = 0.02
"""Step of the grid, s."""

INTERVAL = 0.1
"""Time within which a turn is measured, s: noise of the markers matters little, and motion is not smeared."""


def grid(time: NDArray) -> NDArray:
    """Times (G,) at which turns can be determined, s."""
    return np.arange(time[0] + INTERVAL / 2, time[-1] - INTERVAL / 2, STEP)


def link_turns(robot: RobotModel, time: NDArray, q: NDArray) -> NDArray:
    """Angles (G, n), rad, by which links turn around each time of the grid, of motions q (N, n) at times (N,)."""
    before, after = (
        robot.forward_kinematics(_interpolated(time, q, grid(time) + side))[..., :3, :3]
        for side in (-INTERVAL / 2, INTERVAL / 2)
    )
    return _angle(np.swapaxes(before, -1, -2) @ after)


def body_turns(time: NDArray, positions: NDArray) -> NDArray:
    """Angles (G,), rad, by which a body turns around each time of the grid; NaN where fewer than three are seen.

    Args:
        time: (M,) s.
        positions: (M, Q, 3) m of its markers, NaN where not seen.
    """
    sides = [_interpolated(time, positions, grid(time) + side) for side in (-INTERVAL / 2, INTERVAL / 2)]
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
    """Values (M, ...) on straight lines between samples; NaN next to a NaN."""
    after = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    share = (at - time[after - 1]) / (time[after] - time[after - 1])
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return values[after - 1] * (1 - share) + values[after] * share


def _angle(rotation: NDArray) -> NDArray:
    """Angles (...) of rotations (..., 3, 3), rad; by sine and cosine, for small ones too."""
    sine = np.stack([rotation[..., i, j] - rotation[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=-1)
    return np.arctan2(np.linalg.norm(sine, axis=-1), np.trace(rotation, axis1=-2, axis2=-1) - 1)


NEAR = 1.0
"""How far clocks may be apart whose records overlap, s."""

LIKE, ALIKE = 0.8, 0.95
"""Correlation of turning speeds, of the middle one of several bodies, that is believed at all, and that makes further
trials needless."""


def first_clock(
    robot: RobotModel,
    recording: Recording,
    time: NDArray,
    positions: NDArray,
    bodies: Sequence[tuple[NDArray, int | None]],
) -> ClockAlignment:
    """Clock alignment by which each body turns as fast as its link.

    Args:
        robot: the arm.
        recording: its joints alone.
        time: (M,) s, of the camera.
        positions: (M, P, 3) m, NaN where not seen.
        bodies: columns of three or more markers that are rigidly connected, and the index of their link; None: unknown,
            then the best pair of a body and a link is taken.

    Raises:
        MocapError: records that do not overlap and do not match.
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
                longest=NEAR if near else None,
                drift=False,
            )
        except RecordingError as reason:
            error = str(reason)
            continue
        if _match(found) > (LIKE if best is None else _match(best)):
            best = found
        if best is not None and _match(best) > ALIKE:
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
