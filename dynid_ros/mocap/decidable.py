"""What markers tell of the camera's pose and of the joints' zeros, and what they leave open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.scatter import Scatter
from dynid_ros.model import RobotModel

TELLING = 2e-3
"""RMS movement of the markers on their links, m, for a unit of a parameter (rad, m), below which it is not told."""


@dataclass(frozen=True, eq=False)
class Decidable:
    """Directions of the parameters (rotation and shift of the base, joint offsets) that the markers tell.

    Attributes:
        basis: (6 + n, F) of the free directions.
        offsets: (n,) joints whose offset is among them.
        undecided: what is left open, in words.

    """

    basis: NDArray
    offsets: NDArray
    undecided: tuple[str, ...]

    def step(self, scatter: Scatter, weights: NDArray) -> NDArray:
        """Gauss-Newton step (6 + n,)."""
        normal, gradient = normal_equations(scatter, weights)
        inner = self.basis.T @ normal @ self.basis
        return -self.basis @ np.linalg.lstsq(inner, self.basis.T @ gradient, rcond=None)[0]


def normal_equations(scatter: Scatter, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Normal matrix (6 + n, 6 + n) and gradient (6 + n,) of half the weighted squares."""
    rows = scatter.jacobian * weights[..., None, None]
    residual = np.where(weights[..., None] > 0, scatter.residual, 0.0)
    flat = scatter.jacobian.reshape(-1, scatter.jacobian.shape[-1])
    return rows.reshape(flat.shape).T @ flat, rows.reshape(flat.shape).T @ residual.ravel()


def decidable(scatter: Scatter, weights: NDArray, robot: RobotModel, *, offsets: bool) -> Decidable:
    """Free directions: of the camera's pose by the rank of its part, then one offset after the other.

    An offset that the camera's pose, the markers' places and the offsets before it can imitate stays at zero.
    """
    normal = normal_equations(scatter, weights)[0] / max(float(weights.sum()), np.finfo(float).tiny)
    size = len(normal)
    values, vectors = np.linalg.eigh(normal[:6, :6])
    told = values > TELLING**2
    basis = np.zeros((size, int(told.sum())))
    basis[:6] = vectors[:, told]
    undecided = [_freedom(vector) for vector in vectors[:, ~told].T]
    found = np.zeros(robot.n_joints, dtype=bool)
    for j in range(robot.n_joints if offsets else 0):
        column = np.zeros(size)
        column[6 + j] = 1.0
        across = basis.T @ normal @ column
        own = normal[6 + j, 6 + j] - across @ np.linalg.lstsq(basis.T @ normal @ basis, across, rcond=None)[0]
        if own > TELLING**2:
            found[j] = True
            basis = np.column_stack([basis, column])
        else:
            camera = ", another pose of the camera" if normal[6 + j, 6 + j] > TELLING**2 else ""
            undecided.append(
                f"offset of {robot.joint_names[j]}: left at zero, other places of the markers{camera} or other offsets "
                "look alike"
            )
    return Decidable(basis, found, tuple(undecided))


def _freedom(direction: NDArray) -> str:
    """A rotation and shift (6,) of the base that changes nothing, in words."""
    turn, shift = direction[:3], direction[3:]
    size = np.linalg.norm(turn)
    if size < 0.05:
        return f"the base may slide along {_vector(shift / np.linalg.norm(shift))} before the camera: no marker tells"
    axis, point = turn / size, np.cross(turn, shift) / size**2
    pitch = float(axis @ shift) / size
    words = f"the base may turn about {_vector(axis)} through {_vector(point)} m before the camera"
    return f"{words}{f', sliding along by {pitch:.2f} m per rad' if abs(pitch) > 0.005 else ''}: no marker tells"


def _vector(values: NDArray) -> str:
    return "(" + ", ".join(f"{value + 0.0:.2f}" for value in np.round(values, 2)) + ")"
