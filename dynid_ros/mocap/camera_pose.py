"""Estimation of the camera's pose, and of offsets of the joints, from the scatter of markers on their links.

A marker is at rest in the frame of its link. With the right pose of the camera and the right zeros of the joints, the
places z_k of a marker on its link, computed from each frame k and the motors' positions, coincide. The mean of z_k is
the estimate of the place, so the places are eliminated from the fit (variable projection; Golub and Pereyra 1973). Six
numbers of the camera and one per offset remain, and the residual of a marker is z_k minus the mean of all z_k.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.estimation.covariance import jackknife_variance, left_out_steps
from dynid_ros.estimation.robust import spread, tukey
from dynid_ros.mocap.marker_set import BASE, FREE, MarkerSet, link_frames, marker_jacobian
from dynid_ros.model import RobotModel


class Scatter(NamedTuple):
    """Scatter of the places of markers on their links in K frames, with derivatives.

    Attributes:
        places: Weighted mean places (P, 3), m; NaN if all weights are zero.
        residual: Places in each frame minus their means, (K, P, 3) m; NaN where not seen.
        jacobian: Derivatives (K, P, 3, 6 + n) of the residual by rotation and shift of the base frame and by offsets.
        mean_jacobian: Derivatives (P, 3, 6 + n) of the mean places.
    """

    places: NDArray
    residual: NDArray
    jacobian: NDArray
    mean_jacobian: NDArray


@dataclass(frozen=True, eq=False)
class SeenOnLinks:
    """Markers seen in K frames of known motor positions.

    Attributes:
        robot: Model of the arm.
        markers: P markers with their links.
        motor: Motor positions (K, n), rad or m.
        positions: Marker positions (K, P, 3) in the camera frame, m; NaN where not seen.
    """

    robot: RobotModel
    markers: MarkerSet
    motor: NDArray
    positions: NDArray

    def places(self, rotation: NDArray, shift: NDArray, offsets: NDArray | float = 0.0) -> NDArray:
        """Return the places (K, P, 3) on the links, m, for a rotation (3, 3) and shift (3,) to the base frame."""
        frames = link_frames(self.robot, self.motor + offsets)
        relative = self.positions @ rotation.T + shift - frames.origin[:, self.markers.links]
        return np.einsum("kpji,kpj->kpi", frames.rotation[:, self.markers.links], relative)

    def scatter(self, rotation: NDArray, shift: NDArray, offsets: NDArray, weights: NDArray) -> Scatter:
        """Return residuals and derivatives for a pose of the camera and offsets of the joints.

        Derivatives are evaluated at the predicted places, so that they are exactly zero along undetermined directions.

        Args:
            rotation: Rotation (3, 3) from the camera frame to the base frame.
            shift: Shift (3,) from the camera frame to the base frame, m.
            offsets: Offsets (n,) added to the motors' positions, rad or m.
            weights: Weights (K, P) of squared residuals.
        """
        frames = link_frames(self.robot, self.motor + offsets)
        turn = frames.rotation[:, self.markers.links]
        origin = frames.origin[:, self.markers.links]
        relative = self.positions @ rotation.T + shift - origin
        seen = np.einsum("kpji,kpj->kpi", turn, relative)
        share = weights / np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
        places = np.einsum("kp,kpi->pi", share, np.where(share[..., None] > 0, seen, 0.0))
        places[~(weights.sum(axis=0) > 0)] = np.nan
        predicted = np.einsum("kpij,pj->kpi", turn, np.nan_to_num(places)) + origin
        moves = np.concatenate(
            [
                turning(predicted),
                np.broadcast_to(np.eye(3), (*predicted.shape, 3)),
                -marker_jacobian(self.robot, frames, predicted, self.markers),
            ],
            axis=-1,
        )
        moves = np.einsum("kpji,kpjc->kpic", turn, moves)
        mean = np.einsum("kp,kpic->pic", share, moves)
        return Scatter(places, seen - places, moves - mean, mean)

    def stray_by_link(self, marker: int, rotation: NDArray, shift: NDArray, offsets: NDArray | float = 0.0) -> NDArray:
        """Return the median distance (m + 1,), m, of a marker from its median place on each of m links and the base."""
        n = self.robot.chain.n_links
        there = np.isfinite(self.positions[:, marker]).all(axis=1)
        everywhere = MarkerSet(
            ("",) * (n + 1), np.append(np.arange(n), BASE), np.zeros((n + 1, 3)), np.full(n + 1, FREE), np.arange(n + 1)
        )
        repeated = np.repeat(self.positions[there, marker][:, None], n + 1, axis=1)
        places = SeenOnLinks(self.robot, everywhere, self.motor[there], repeated).places(rotation, shift, offsets)
        return np.median(np.linalg.norm(places - np.median(places, axis=0), axis=2), axis=0)


def turning(points: NDArray) -> NDArray:
    """Return matrices (..., 3, 3) that map a small rotation vector to the displacement of points (..., 3)."""
    x, y, z = (points[..., i] for i in range(3))
    zero = np.zeros_like(x)
    return np.stack([zero, z, -y, -z, zero, x, y, -x, zero], axis=-1).reshape(*points.shape, 3)


# Global search of the camera's pose: Gauss-Newton from many orientations at once.


MAX_ITERATIONS = 30
SEARCH_FRAMES = 40

PROMISING = (10, 6)
"""Iteration after which only the best starts continue, and number of these."""

MAX_TURN_RAD = 0.6
"""Largest rotation in one iteration, rad."""
RELATIVE_DAMPING = 1e-6
"""Damping of the normal matrix, relative to its trace: undetermined directions keep their initial values."""


def search(seen: SeenOnLinks, *, mirrored: bool = False, frames: int = SEARCH_FRAMES) -> tuple[NDArray, NDArray, float]:
    """Search the rotation and shift from the camera frame to the base frame with the least scatter of the markers.

    The starts are the 24 rotations of a cube: no rotation is farther than 63° from one of them.

    Args:
        seen: Positions of markers and motors.
        mirrored: Whether a reflection is searched instead of a rotation.
        frames: Number of frames to use, spread over the record.

    Returns:
        Rotation (3, 3), shift (3,) in m, and the remaining robust standard deviation of a coordinate, m.
    """
    rows = np.unique(np.linspace(0, len(seen.motor) - 1, frames).astype(int))
    links = link_frames(seen.robot, seen.motor[rows])
    turn = links.rotation[:, seen.markers.links]
    origin = links.origin[:, seen.markers.links]
    points = seen.positions[rows]
    is_seen = np.isfinite(points).all(axis=2)
    points = np.where(is_seen[..., None], points, 0.0) * np.array([-1.0 if mirrored else 1.0, 1.0, 1.0])

    def distances(residual: NDArray) -> NDArray:
        return seen.markers.distances(np.where(is_seen[..., None], residual, np.nan))

    rotation = _cube()
    shift = np.zeros((24, 3))
    weights = np.repeat(is_seen[None].astype(float), len(rotation), axis=0)
    residual = np.zeros((len(rotation), *points.shape))
    for iteration in range(MAX_ITERATIONS):
        if iteration == PROMISING[0]:
            good = np.argsort(_scale(distances(residual))[:, 0, 0])[: PROMISING[1]]
            rotation = rotation[good]
            shift = shift[good]
            weights = weights[good]
        moved = np.einsum("sij,kpj->skpi", rotation, points)
        residual = _centred(turn, moved + shift[:, None, None] - origin, weights)
        if iteration > 2:
            length = distances(residual)
            weights = np.where(is_seen, tukey(length, _scale(length)), 0.0)
            residual = _centred(turn, moved + shift[:, None, None] - origin, weights)
        unit = np.broadcast_to(np.eye(3), (*moved.shape, 3))
        columns = np.concatenate([turning(moved + shift[:, None, None]), unit], axis=-1)
        jacobian = _centred(turn, columns, weights)
        step = _step(jacobian, residual, weights, free=6 if iteration else 3)
        angle = np.linalg.norm(step[:, :3], axis=1, keepdims=True)
        step[:, :3] *= np.minimum(1.0, MAX_TURN_RAD / np.maximum(angle, MAX_TURN_RAD))
        turned = Rotation.from_rotvec(step[:, :3]).as_matrix()
        rotation = turned @ rotation
        shift = np.einsum("sij,sj->si", turned, shift) + step[:, 3:]
    misfit = _scale(distances(residual))[:, 0, 0]
    best = int(np.argmin(misfit))
    reflect = np.diag([-1.0 if mirrored else 1.0, 1.0, 1.0])
    return rotation[best] @ reflect, shift[best], float(misfit[best])


def _cube() -> NDArray:
    """Return the rotations (24, 3, 3) of a cube."""
    signed = [
        np.eye(3)[list(order)] * np.array(signs)[:, None]
        for order in itertools.permutations(range(3))
        for signs in itertools.product([1.0, -1.0], repeat=3)
    ]
    return np.array([matrix for matrix in signed if np.linalg.det(matrix) > 0])


def _centred(turn: NDArray, values: NDArray, weights: NDArray) -> NDArray:
    """Rotate vectors (S, K, P, 3) or (S, K, P, 3, C) to the links, and subtract their weighted means over frames."""
    local = np.swapaxes(turn, -1, -2) @ (values if values.ndim == 5 else values[..., None])
    share = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    local = local - np.einsum("skp,skpic->spic", share, local)[:, None]
    return local if values.ndim == 5 else local[..., 0]


def _scale(length: NDArray) -> NDArray:
    """Return the robust standard deviation (S, 1, 1) of the residuals of each start."""
    return np.maximum(spread(length.reshape(len(length), -1)), 1e-9)[:, None, None]


def _step(jacobian: NDArray, residual: NDArray, weights: NDArray, free: int) -> NDArray:
    """Return damped Gauss-Newton steps (S, 6) of rotation and shift, or if `free` is 3, of the shift only."""
    root = np.sqrt(weights)[..., None]
    first = 6 - free
    rows = (jacobian[..., first:] * root[..., None]).reshape(len(jacobian), -1, free)
    target = (residual * root).reshape(len(jacobian), -1, 1)
    transposed = np.swapaxes(rows, -1, -2)
    normal = transposed @ rows
    damping = RELATIVE_DAMPING * np.einsum("sii->s", normal) + np.finfo(float).tiny
    step = np.zeros((len(jacobian), 6))
    step[:, first:] = -np.linalg.solve(normal + damping[:, None, None] * np.eye(free), transposed @ target)[..., 0]
    return step


# Determined directions of the camera's pose and of the joints' zeros.


MIN_LEVER_M = 2e-3
"""RMS movement of the markers on their links, m, per unit of a parameter (rad, m), below which it is undetermined."""


@dataclass(frozen=True, eq=False)
class EstimablePose:
    """Directions of the parameters that the markers determine: rotation and shift of the base, offsets of the joints.

    Attributes:
        basis: Basis (6 + n, F) of the determined directions.
        offsets: Mask (n,) of the joints whose offset is determined.
        undecided: Sentences on undetermined directions.
    """

    basis: NDArray
    offsets: NDArray
    undecided: tuple[str, ...]

    def step(self, scatter: Scatter, weights: NDArray) -> NDArray:
        """Return the Gauss-Newton step (6 + n,) along the determined directions."""
        normal, gradient = normal_equations(scatter.jacobian, scatter.residual, weights)
        inner = self.basis.T @ normal @ self.basis
        return -self.basis @ np.linalg.lstsq(inner, self.basis.T @ gradient, rcond=None)[0]


def normal_equations(jacobian: NDArray, residual: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Return normal matrix (F, F) and gradient (F,) of half the weighted sum of squares of residuals (K, P, 3)."""
    flat = jacobian.reshape(-1, jacobian.shape[-1])
    weighted = (jacobian * weights[..., None, None]).reshape(flat.shape)
    return weighted.T @ flat, weighted.T @ np.where(weights[..., None] > 0, residual, 0.0).ravel()


def estimable_pose(scatter: Scatter, weights: NDArray, robot: RobotModel, *, offsets: bool) -> EstimablePose:
    """Return the determined directions, first of the camera's pose, then one offset after the other.

    An offset stays at zero if a change of the camera's pose, of the markers' places and of the offsets before it has
    the same effect.
    """
    normal, _ = normal_equations(scatter.jacobian, scatter.residual, weights)
    normal = normal / max(float(weights.sum()), np.finfo(float).tiny)
    size = len(normal)
    values, vectors = np.linalg.eigh(normal[:6, :6])
    determined = values > MIN_LEVER_M**2
    basis = np.zeros((size, int(determined.sum())))
    basis[:6] = vectors[:, determined]
    undecided = [_null_direction(vector) for vector in vectors[:, ~determined].T]
    has_offset = np.zeros(robot.n_joints, dtype=bool)
    for j in range(robot.n_joints if offsets else 0):
        column = np.zeros(size)
        column[6 + j] = 1.0
        across = basis.T @ normal @ column
        # What remains of the offset's information after the other parameters are eliminated (Schur complement).
        schur = normal[6 + j, 6 + j] - across @ np.linalg.lstsq(basis.T @ normal @ basis, across, rcond=None)[0]
        if schur > MIN_LEVER_M**2:
            has_offset[j] = True
            basis = np.column_stack([basis, column])
        else:
            camera = ", another pose of the camera" if normal[6 + j, 6 + j] > MIN_LEVER_M**2 else ""
            undecided.append(
                f"offset of {robot.joint_names[j]}: left at zero, other places of the markers{camera} or other offsets "
                "look the same"
            )
    return EstimablePose(basis, has_offset, tuple(undecided))


def _null_direction(direction: NDArray) -> str:
    """Describe a rotation and shift (6,) of the base that changes no residual."""
    turn = direction[:3]
    shift = direction[3:]
    size = np.linalg.norm(turn)
    if size < 0.05:
        return (
            f"the base may slide along {_vector(shift / np.linalg.norm(shift))} before the camera: no marker determines"
        )
    axis = turn / size
    point = np.cross(turn, shift) / size**2
    pitch = float(axis @ shift) / size
    words = f"the base may turn about {_vector(axis)} through {_vector(point)} m before the camera"
    return f"{words}{f', sliding along by {pitch:.2f} m per rad' if abs(pitch) > 0.005 else ''}: no marker determines"


def _vector(values: NDArray) -> str:
    return "(" + ", ".join(f"{value + 0.0:.2f}" for value in np.round(values, 2)) + ")"


# Standard errors of a registration, from leaving out blocks of frames.


N_FRAME_BLOCKS = 10
"""Number of blocks of consecutive frames, which are so long that their errors are almost uncorrelated."""


def block_errors(scatter: Scatter, weights: NDArray, basis: NDArray) -> tuple[NDArray, NDArray]:
    """Return the standard errors (6 + n,) of the parameters and (P, 3) of the places; zero for fixed parameters.

    They result from a jackknife over blocks of consecutive frames, each left out by one Gauss-Newton step (Miller 1974,
    "The jackknife: a review"). It allows for correlated residuals of neighbouring frames, such as deflections.
    """
    n_blocks = min(N_FRAME_BLOCKS, len(weights))
    residual = np.where(weights[..., None] > 0, scatter.residual, 0.0)
    jacobian = scatter.jacobian @ basis
    mean_jacobian = np.nan_to_num(scatter.mean_jacobian @ basis)
    totals = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
    parts = np.array_split(np.arange(len(weights)), n_blocks)
    blocks = [normal_equations(jacobian[rows], residual[rows], weights[rows]) for rows in parts]
    normals, gradients = zip(*blocks, strict=True)
    steps = left_out_steps(np.array(normals), np.array(gradients))
    places = []
    for rows, step in zip(parts, steps, strict=True):
        share = weights[rows].sum(axis=0) / totals
        pull = np.einsum("kp,kpi->pi", weights[rows], residual[rows]) / totals[:, None]
        places.append(mean_jacobian @ step - pull / np.maximum(1 - share, 1e-9)[:, None])
    return np.sqrt(jackknife_variance(steps @ basis.T)), np.sqrt(jackknife_variance(np.array(places)))
