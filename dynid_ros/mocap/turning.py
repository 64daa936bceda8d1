"""How far bodies turn within a short time: the same whoever looks, wherever the camera stands and the markers sit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel

STEP = 0.02
"""Of the grid, s."""

INTERVAL = 0.1
"""Time within which a turn is measured, s: noise of the markers matters little, and motion is not smeared."""


def grid(time: NDArray) -> NDArray:
    """Times (G,) at which turns can be told, s."""
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
    """Values (M, ...) on straight lines between samples; NaN beside a NaN."""
    after = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    share = (at - time[after - 1]) / (time[after] - time[after - 1])
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return values[after - 1] * (1 - share) + values[after] * share


def _angle(rotation: NDArray) -> NDArray:
    """Angles (...) of rotations (..., 3, 3), rad; by sine and cosine, for small ones too."""
    sine = np.stack([rotation[..., i, j] - rotation[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=-1)
    return np.arctan2(np.linalg.norm(sine, axis=-1), np.trace(rotation, axis1=-2, axis2=-1) - 1)
