"""A first pose of the camera from nothing: Gauss-Newton from all around, at once."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.estimation.robust import lengths, spread, tukey
from dynid_ros.mocap.marker_kinematics import link_frames
from dynid_ros.mocap.scatter import SeenOnLinks, turning

ITERATIONS = 30
FRAMES = 40

PROMISING = (10, 6)
"""Iteration after which only some starts go on, and how many."""

LONGEST_TURN = 0.6
DAMPING = 1e-6
"""Of the normal matrix, in parts of its trace: what the markers do not tell stays where it starts."""


def search(seen: SeenOnLinks, *, mirrored: bool = False, frames: int = FRAMES) -> tuple[NDArray, NDArray, float]:
    """Rotation (3, 3) and shift (3,) from the camera frame to the base frame under which markers stray least.

    Starts are the 24 rotations of a cube: no rotation is farther than 63° from one of them.

    Args:
        seen: markers and motors.
        mirrored: look for a reflection in place of a rotation.
        frames: that are looked at, spread over the record.

    Returns:
        rotation, shift (m) and the spread that is left, m, of a coordinate, by the median.

    """
    rows = np.unique(np.linspace(0, len(seen.motor) - 1, frames).astype(int))
    links = link_frames(seen.robot, seen.motor[rows])
    turn = links.rotation[:, seen.markers.links]
    origin = links.origin[:, seen.markers.links]
    points = seen.positions[rows]
    there = np.isfinite(points).all(axis=2)
    points = np.where(there[..., None], points, 0.0) * np.array([-1.0 if mirrored else 1.0, 1.0, 1.0])
    rotation, shift = _cube(), np.zeros((24, 3))
    weights = np.repeat(there[None].astype(float), len(rotation), axis=0)
    residual = np.zeros((len(rotation), *points.shape))
    for iteration in range(ITERATIONS):
        if iteration == PROMISING[0]:
            good = np.argsort(_scale(np.where(there, lengths(residual), np.inf))[:, 0, 0])[: PROMISING[1]]
            rotation, shift, weights = rotation[good], shift[good], weights[good]
        moved = np.einsum("sij,kpj->skpi", rotation, points)
        residual = _centred(turn, moved + shift[:, None, None] - origin, weights)
        if iteration > 2:
            length = np.where(there, lengths(residual), np.inf)
            weights = np.where(there, tukey(length, _scale(length)), 0.0)
            residual = _centred(turn, moved + shift[:, None, None] - origin, weights)
        unit = np.broadcast_to(np.eye(3), (*moved.shape, 3))
        columns = np.concatenate([turning(moved + shift[:, None, None]), unit], axis=-1)
        jacobian = _centred(turn, columns, weights)
        step = _step(jacobian, residual, weights, free=6 if iteration else 3)
        angle = np.linalg.norm(step[:, :3], axis=1, keepdims=True)
        step[:, :3] *= np.minimum(1.0, LONGEST_TURN / np.maximum(angle, LONGEST_TURN))
        turned = Rotation.from_rotvec(step[:, :3]).as_matrix()
        rotation = turned @ rotation
        shift = np.einsum("sij,sj->si", turned, shift) + step[:, 3:]
    length = np.where(there, lengths(residual), np.inf)
    misfit = _scale(length)[:, 0, 0]
    best = int(np.argmin(misfit))
    reflect = np.diag([-1.0 if mirrored else 1.0, 1.0, 1.0])
    return rotation[best] @ reflect, shift[best], float(misfit[best])


def _cube() -> NDArray:
    """The 24 rotations (24, 3, 3) of a cube."""
    signed = [
        np.eye(3)[list(order)] * np.array(signs)[:, None]
        for order in itertools.permutations(range(3))
        for signs in itertools.product([1.0, -1.0], repeat=3)
    ]
    return np.array([matrix for matrix in signed if np.linalg.det(matrix) > 0])


def _centred(turn: NDArray, values: NDArray, weights: NDArray) -> NDArray:
    """Vectors (S, K, P, 3) or (S, K, P, 3, C) of the base frame on the links, less their weighted mean over frames."""
    local = np.swapaxes(turn, -1, -2) @ (values if values.ndim == 5 else values[..., None])
    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    local = local - np.einsum("skp,skpic->spic", share, local)[:, None]
    return local if values.ndim == 5 else local[..., 0]


def _scale(length: NDArray) -> NDArray:
    """(S, 1, 1) spread of all residuals of a start."""
    return np.maximum(spread(length.reshape(len(length), -1)), 1e-9)[:, None, None]


def _step(jacobian: NDArray, residual: NDArray, weights: NDArray, free: int) -> NDArray:
    """Gauss-Newton steps (S, 6), lightly damped; only the shift if three are free."""
    root = np.sqrt(weights)[..., None]
    first = 6 - free
    rows = (jacobian[..., first:] * root[..., None]).reshape(len(jacobian), -1, free)
    target = (residual * root).reshape(len(jacobian), -1, 1)
    transposed = np.swapaxes(rows, -1, -2)
    normal = transposed @ rows
    damping = DAMPING * np.einsum("sii->s", normal) + np.finfo(float).tiny
    step = np.zeros((len(jacobian), 6))
    step[:, first:] = -np.linalg.solve(normal + damping[:, None, None] * np.eye(free), transposed @ target)[..., 0]
    return step
