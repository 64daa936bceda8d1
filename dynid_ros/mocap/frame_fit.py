"""Joint positions from the markers of each frame: robust Gauss-Newton, for many frames at once.

The cost is eq. 13 of Lightcap and Banks 2007 for the whole chain instead of one joint: the sum over markers of the
squared distance between the measured position and that of the kinematics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import MocapError
from dynid_ros.estimation.robust import spread, tukey
from dynid_ros.mocap.marker_set import MarkerSet, link_frames, marker_jacobian, marker_positions
from dynid_ros.model import RobotModel

MIN_LEVER_M = 2e-3
"""Movement of all markers together, m, per unit of a combination of joints (rad, m), below which it is undetermined: a
marker on the axis, or a singular pose."""

MAX_NULL_SHARE = 1e-4
"""Squared share of a joint in an undetermined combination above which the joint's own position is unknown."""

MAX_STEP = 0.5
"""Longest step of a joint in one iteration, rad or m."""

CONVERGENCE_STEP = 1e-6
"""Step, rad or m, below which a frame has converged: a hundredth of the effect of noise."""

FRAMES_PER_BLOCK = 1000

Weights = Callable[[NDArray], NDArray]
"""Function from lengths of residuals (M, P), see `MarkerSet.distances`, to weights of their squares (M, P)."""


@dataclass(frozen=True, eq=False)
class FrameFit:
    """Fit of M frames, see `fit_frames`.

    Attributes:
        position: Joint positions (M, n), rad or m; undetermined ones stay at their seeds.
        residual: Measured minus predicted positions (M, P, 3) in the base frame, m; NaN where not seen.
        weights: Weights (M, P) of the last iteration.
        determined: Mask (M, n) of the determined joint positions.
        reach: Movement (M, n) of all weighted markers together per unit of the joint, m.
        variance: Variances (M, n) of the positions for markers of unit variance; NaN where undetermined.
        rank: Numbers (M,) of determined combinations.
    """

    position: NDArray
    residual: NDArray
    weights: NDArray
    determined: NDArray
    reach: NDArray
    variance: NDArray
    rank: NDArray


def fit_frames(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, seed: NDArray, weights: Weights, *, iterations: int = 8
) -> FrameFit:
    """Return the joint positions that bring the markers nearest to those seen, from a seed for each frame.

    Args:
        robot: Model of the arm.
        markers: Markers with known places.
        seen: Marker positions (M, P, 3) in the base frame, m; NaN where not seen.
        seed: Joint positions (M, n), finite.
        weights: Function to weights of squared residuals; called in every iteration for a block of frames.
        iterations: Largest number of iterations.
    """
    parts = [
        _fit_block(robot, markers, seen[rows], seed[rows], weights, iterations=iterations)
        for rows in _frame_blocks(len(seen))
    ]
    return FrameFit(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in vars(parts[0])})


def _frame_blocks(n_frames: int) -> Iterator[slice]:
    for start in range(0, n_frames, FRAMES_PER_BLOCK):
        yield slice(start, start + FRAMES_PER_BLOCK)


def _fit_block(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, seed: NDArray, weights: Weights, *, iterations: int
) -> FrameFit:
    q = seed.copy()
    moving = np.arange(len(q))
    for _ in range(iterations):
        _, _, normal, gradient = _linearised(robot, markers, seen[moving], q[moving], weights)
        values, vectors = np.linalg.eigh(normal)
        inverse = np.where(values > MIN_LEVER_M**2, 1 / np.maximum(values, MIN_LEVER_M**2), 0.0)
        along = np.einsum("mji,mj->mi", vectors, gradient) * inverse
        step = np.einsum("mij,mj->mi", vectors, along)
        longest = np.max(np.abs(step), axis=1, keepdims=True)
        q[moving] += step * np.minimum(1.0, MAX_STEP / np.maximum(longest, MAX_STEP))
        moving = moving[longest[:, 0] > CONVERGENCE_STEP]
        if not moving.size:
            break
    residual, weight, normal, _ = _linearised(robot, markers, seen, q, weights)
    values, vectors = np.linalg.eigh(normal)
    determined = values > MIN_LEVER_M**2
    hidden = np.einsum("mij,mj->mi", vectors**2, (~determined).astype(float))
    variance = np.einsum("mij,mj->mi", vectors**2, np.where(determined, 1 / np.maximum(values, MIN_LEVER_M**2), 0.0))
    known = hidden < MAX_NULL_SHARE
    reach = np.sqrt(np.einsum("mjj->mj", normal))
    return FrameFit(q, residual, weight, known, reach, np.where(known, variance, np.nan), determined.sum(axis=1))


def _linearised(
    robot: RobotModel, markers: MarkerSet, seen: NDArray, q: NDArray, weights: Weights
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return residuals, weights, normal matrices (M, n, n) and their right-hand sides (M, n)."""
    frames = link_frames(robot, q)
    predicted = marker_positions(frames, markers)
    residual = seen - predicted
    weight = weights(markers.distances(residual))
    root = np.sqrt(weight)[..., None]
    rows = (marker_jacobian(robot, frames, predicted, markers) * root[..., None]).reshape(len(q), -1, robot.n_joints)
    target = (np.where(root > 0, residual, 0.0) * root).reshape(len(q), -1, 1)
    transposed = rows.transpose(0, 2, 1)
    return residual, weight, transposed @ rows, (transposed @ target)[..., 0]


# Reasons for undetermined joints.


def unknown_joints(robot: RobotModel, markers: MarkerSet, fit: FrameFit) -> list[str]:
    """Return one sentence for each joint that some frame does not determine, with the reasons and their frequency."""
    used = (fit.weights > 0).astype(int)
    beyond = used @ markers.beyond(robot).astype(int)
    remarks = []
    for j, name in enumerate(robot.joint_names):
        unknown = ~fit.determined[:, j]
        if not unknown.any():
            continue
        if not markers.beyond(robot)[:, j].any():
            remarks.append(f"{name}: not known, it moves no marker")
            continue
        unseen = unknown & (beyond[:, j] == 0)
        axial = unknown & ~unseen & (fit.reach[:, j] < MIN_LEVER_M)
        mingled = unknown & ~unseen & ~axial
        reasons = []
        if unseen.any():
            reasons.append(f"no marker beyond it was seen ({unseen.sum()})")
        if axial.any():
            reasons.append(f"those seen lie on its axis ({axial.sum()})")
        if mingled.any():
            reasons.append(
                f"the markers seen do not distinguish it from {_partners(robot, fit, j, mingled)} ({mingled.sum()}): "
                "too few, or a singular pose"
            )
        remarks.append(f"{name}: not known in {unknown.sum()} of {len(unknown)} frames: {'; '.join(reasons)}")
    return remarks


def _partners(robot: RobotModel, fit: FrameFit, joint: int, frames: NDArray) -> str:
    """Return the joints that are undetermined together with one in most of these frames."""
    together = (~fit.determined[frames]).mean(axis=0) > 0.5
    together &= (fit.reach[frames] >= MIN_LEVER_M).mean(axis=0) > 0.5
    together[joint] = False
    return ", ".join(name for name, other in zip(robot.joint_names, together, strict=True) if other) or "other joints"


# Joint positions to start from, where no encoder gives them: frame after frame.


SEED_STRIDE = 10
"""Number of consecutive frames that start from the same earlier one: as good as one after the other at a camera's
rates, and faster."""

N_STARTS = 200
"""Number of random positions within the limits from which the first frame is tried."""

MAX_FIRST_DISTANCE_M = 0.02
"""Largest median distance of markers, m, of a valid first frame."""


def cautious(floor: float) -> Weights:
    """Return Tukey's weights by the spread of each frame's own residuals, so that most of its markers always count."""
    return lambda length: tukey(length, np.maximum(np.nan_to_num(spread(length)), floor)[:, None])


def follow(robot: RobotModel, markers: MarkerSet, seen: NDArray, first: NDArray | None) -> NDArray:
    """Return seeds (M, n) for all frames, each found from those before it.

    Args:
        robot: Model of the arm.
        markers: Markers with known places.
        seen: Marker positions (M, P, 3) in the base frame, m; NaN where not seen.
        first: Joint positions (n,) near those of the first frames; None: they are searched for within the limits.

    Raises:
        MocapError: No start was found.
    """
    most = np.isfinite(seen).all(axis=2).sum(axis=1)
    start = int(np.flatnonzero(most >= np.quantile(most, 0.5))[0])
    q = _first(robot, markers, seen[start]) if first is None else np.asarray(first, dtype=float)
    seeds = np.empty((len(seen), robot.n_joints))
    for forward in (True, False):
        order = np.arange(start, len(seen)) if forward else np.arange(start)[::-1]
        current = q
        for begin in range(0, len(order), SEED_STRIDE):
            rows = order[begin : begin + SEED_STRIDE]
            fit = fit_frames(robot, markers, seen[rows], np.tile(current, (len(rows), 1)), cautious(1e-4))
            seeds[rows] = fit.position
            for position, determined in zip(fit.position, fit.determined, strict=True):
                current = np.where(determined, position, current)
    return seeds


def _first(robot: RobotModel, markers: MarkerSet, seen: NDArray) -> NDArray:
    limits = robot.limits
    lower = np.maximum(limits.lower, -np.pi)
    upper = np.minimum(limits.upper, np.pi)
    starts = np.random.default_rng(0).uniform(lower, upper, (N_STARTS, robot.n_joints))
    frames = np.repeat(seen[None], N_STARTS, axis=0)
    fit = fit_frames(robot, markers, frames, starts, lambda length: np.isfinite(length).astype(float), iterations=40)
    misfit = spread(np.linalg.norm(fit.residual, axis=2))
    best = int(np.nanargmin(misfit))
    if not misfit[best] < MAX_FIRST_DISTANCE_M:
        raise MocapError(
            f"no joint positions within the limits bring the markers of the first frame nearer than "
            f"{1000 * misfit[best]:.0f} mm to where they are seen: give the motors' positions, or look at the "
            "registration"
        )
    q = fit.position[best]
    turn = np.where(robot.chain.prismatic, 0.0, 2 * np.pi * np.round(q / (2 * np.pi)))
    return q - turn
