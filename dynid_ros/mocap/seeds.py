"""Joint positions to start from, where no encoder gives them: frame after frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import spread, tukey
from dynid_ros.mocap.frame_fit import Weights, fit_frames
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.model import RobotModel

STRIDE = 10
"""Frames that start from the same one before them: as good as one after the other at a camera's rates, and faster."""

STARTS = 200
"""Random positions within the limits that the first frame is tried from."""

FITS = 0.02
"""Median distance of markers, m, up to which a first frame is believed."""


def cautious(floor: float) -> Weights:
    """Tukey's weights by the spread of each frame's own residuals, so that most markers of a frame always count."""
    return lambda length: tukey(length, np.maximum(np.nan_to_num(spread(length)), floor)[:, None])


def follow(robot: RobotModel, markers: MarkerSet, seen: NDArray, first: NDArray | None) -> NDArray:
    """Seeds (M, n) for all frames, each found from those before it.

    Args:
        robot: the arm.
        markers: with known places.
        seen: (M, P, 3) m in the base frame, NaN where not seen.
        first: (n,) joint positions near those of the first frames; None: they are searched for within the limits.

    Raises:
        MocapError: no start was found.

    """
    most = np.isfinite(seen).all(axis=2).sum(axis=1)
    start = int(np.flatnonzero(most >= np.quantile(most, 0.5))[0])
    q = _first(robot, markers, seen[start]) if first is None else np.asarray(first, dtype=float)
    seeds = np.empty((len(seen), robot.n_joints))
    for forward in (True, False):
        order = np.arange(start, len(seen)) if forward else np.arange(start)[::-1]
        current = q
        for begin in range(0, len(order), STRIDE):
            rows = order[begin : begin + STRIDE]
            fit = fit_frames(robot, markers, seen[rows], np.tile(current, (len(rows), 1)), cautious(1e-4))
            seeds[rows] = fit.position
            for position, told in zip(fit.position, fit.told, strict=True):
                current = np.where(told, position, current)
    return seeds


def _first(robot: RobotModel, markers: MarkerSet, seen: NDArray) -> NDArray:
    limits = robot.limits
    lower, upper = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
    starts = np.random.default_rng(0).uniform(lower, upper, (STARTS, robot.n_joints))
    frames = np.repeat(seen[None], STARTS, axis=0)
    fit = fit_frames(robot, markers, frames, starts, lambda length: np.isfinite(length).astype(float), iterations=40)
    misfit = spread(np.linalg.norm(fit.residual, axis=2))
    best = int(np.nanargmin(misfit))
    if not misfit[best] < FITS:
        raise MocapError(
            f"no joint positions within the limits bring the markers of the first frame nearer than "
            f"{1000 * misfit[best]:.0f} mm to where they are seen: give the motors' positions, or look at the "
            "registration"
        )
    q = fit.position[best]
    turn = np.where(robot.chain.prismatic, 0.0, 2 * np.pi * np.round(q / (2 * np.pi)))
    return q - turn
