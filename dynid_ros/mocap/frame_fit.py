"""Joint positions from the markers of one frame, for many frames at once: Gauss-Newton, robust, rank by rank.

The cost is eq. 13 of Lightcap and Banks 2007, for the whole chain instead of one joint: the sum over markers of the
squared distance from where they are to where the kinematics puts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.robust import lengths
from dynid_ros.mocap.marker_kinematics import link_frames, marker_jacobian, marker_positions
from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.model import RobotModel

LEVER = 2e-3
"""Movement of all markers together, m, that a unit of a combination of joints (rad, m) must make to be told: less is a
marker on the axis, or a singular pose."""

MINGLED = 1e-4
"""Share (squared) of a joint in a combination that is not told, from which the joint's own position is unknown."""

LONGEST_STEP = 0.5
"""Of a joint in one iteration, rad or m."""

SETTLED = 1e-6
"""Step, rad or m, after which a frame is left as it is: a hundredth of what noise makes."""

BLOCK = 1000

Weights = Callable[[NDArray], NDArray]
"""From lengths of residuals (M, P) to weights of their squares (M, P)."""


@dataclass(frozen=True, eq=False)
class FrameFit:
    """Fit of M frames, see `fit_frames`.

    Attributes:
        position: (M, n) rad or m; what is not told stays at its seed.
        residual: (M, P, 3) measured less predicted, m, in the base frame; NaN where not seen.
        weights: (M, P) of the last iteration.
        told: (M, n) whether the frame tells the joint's position.
        reach: (M, n) movement of all weighted markers together for a unit of the joint, m.
        variance: (M, n) of the position for markers with unit variance; NaN where not told.
        rank: (M,) number of combinations that the frame tells.

    """

    position: NDArray
    residual: NDArray
    weights: NDArray
    told: NDArray
    reach: NDArray
    variance: NDArray
    rank: NDArray


def fit_frames(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, seed: NDArray, weights: Weights, *, iterations: int = 8
) -> FrameFit:
    """Joint positions that bring the markers to where they are seen, from a seed for each frame.

    Args:
        robot: the arm.
        markers: with known places.
        seen: (M, P, 3) m in the base frame, NaN where not seen.
        seed: (M, n) finite.
        weights: of squared residuals, by their lengths; called in every iteration for a block of frames.
        iterations: at most.

    """
    parts = [
        _fit_block(robot, markers, seen[rows], seed[rows], weights, iterations=iterations)
        for rows in _frame_blocks(len(seen))
    ]
    return FrameFit(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in vars(parts[0])})


def _frame_blocks(n_frames: int) -> Iterator[slice]:
    for start in range(0, n_frames, BLOCK):
        yield slice(start, start + BLOCK)


def _fit_block(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, seed: NDArray, weights: Weights, *, iterations: int
) -> FrameFit:
    q = seed.copy()
    moving = np.arange(len(q))
    for _ in range(iterations):
        _, _, normal, gradient = _linearised(robot, markers, seen[moving], q[moving], weights)
        values, vectors = np.linalg.eigh(normal)
        inverse = np.where(values > LEVER**2, 1 / np.maximum(values, LEVER**2), 0.0)
        along = np.einsum("mji,mj->mi", vectors, gradient) * inverse
        step = np.einsum("mij,mj->mi", vectors, along)
        longest = np.max(np.abs(step), axis=1, keepdims=True)
        q[moving] += step * np.minimum(1.0, LONGEST_STEP / np.maximum(longest, LONGEST_STEP))
        moving = moving[longest[:, 0] > SETTLED]
        if not moving.size:
            break
    residual, weight, normal, _ = _linearised(robot, markers, seen, q, weights)
    values, vectors = np.linalg.eigh(normal)
    told = values > LEVER**2
    hidden = np.einsum("mij,mj->mi", vectors**2, (~told).astype(float))
    variance = np.einsum("mij,mj->mi", vectors**2, np.where(told, 1 / np.maximum(values, LEVER**2), 0.0))
    known = hidden < MINGLED
    reach = np.sqrt(np.einsum("mjj->mj", normal))
    return FrameFit(q, residual, weight, known, reach, np.where(known, variance, np.nan), told.sum(axis=1))


def _linearised(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, q: NDArray, weights: Weights
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Residuals, weights, and with them the normal matrices (M, n, n) and their right sides (M, n)."""
    frames = link_frames(robot, q)
    predicted = marker_positions(frames, markers)
    residual = seen - predicted
    weight = weights(lengths(residual))
    root = np.sqrt(weight)[..., None]
    rows = (marker_jacobian(robot, frames, predicted, markers) * root[..., None]).reshape(len(q), -1, robot.n_joints)
    target = (np.where(root > 0, residual, 0.0) * root).reshape(len(q), -1, 1)
    transposed = rows.transpose(0, 2, 1)
    return residual, weight, transposed @ rows, (transposed @ target)[..., 0]
