"""How far markers stray on their links, for a camera pose and offsets that are tried.

Seen from its link a marker stands still. With the right pose of the camera (and the right zeros of the joints) its
places z_k, carried back from each frame k by the motors' positions, coincide, and their mean is where it is fixed. So
the places drop out of the fit (variable projection; Golub and Pereyra 1973): six numbers of the camera and one per
offset stay, and the residual of a marker is z_k less the mean of all z_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.marker_kinematics import link_frames, marker_jacobian
from dynid_ros.mocap.marker_set import BASE, FREE, MarkerSet
from dynid_ros.model import RobotModel


class Scatter(NamedTuple):
    """Places of markers on their links in K frames, and what changes them.

    Attributes:
        places: (P, 3) weighted mean, m; NaN without a weight.
        residual: (K, P, 3) m, places less their mean; NaN where not seen.
        jacobian: (K, P, 3, 6 + n) derivatives of the residual: rotation and shift of the base frame, joint offsets.
        mean_jacobian: (P, 3, 6 + n) of the mean places.

    """

    places: NDArray
    residual: NDArray
    jacobian: NDArray
    mean_jacobian: NDArray


@dataclass(frozen=True, eq=False)
class SeenOnLinks:
    """Markers seen in K frames of known motor positions.

    Attributes:
        robot: the arm.
        markers: links alone matter.
        motor: (K, n) rad or m.
        positions: (K, P, 3) m in the camera frame, NaN where not seen.

    """

    robot: RobotModel
    markers: MarkerSet
    motor: NDArray
    positions: NDArray

    def places(self, rotation: NDArray, shift: NDArray, offsets: NDArray | float = 0.0) -> NDArray:
        """(K, P, 3) on their links, m, if the base frame is reached by `rotation` (3, 3) and `shift` (3,), m."""
        frames = link_frames(self.robot, self.motor + offsets)
        relative = self.positions @ rotation.T + shift - frames.origin[:, self.markers.links]
        return np.einsum("kpji,kpj->kpi", frames.rotation[:, self.markers.links], relative)

    def scatter(self, rotation: NDArray, shift: NDArray, offsets: NDArray, weights: NDArray) -> Scatter:
        """Residuals and their derivatives, at the predicted places: what cannot be told has columns of exact zeros.

        Args:
            rotation: (3, 3) from the camera frame to the base frame.
            shift: (3,) likewise, m.
            offsets: (n,) to add to the motors' positions.
            weights: (K, P) of squared residuals.

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
        """(n + 1,) median distance from its median place, m, that one marker would stray on each link, base last."""
        n = self.robot.n_joints
        there = np.isfinite(self.positions[:, marker]).all(axis=1)
        everywhere = MarkerSet(
            ("",) * (n + 1), np.append(np.arange(n), BASE), np.zeros((n + 1, 3)), np.full(n + 1, FREE)
        )
        repeated = np.repeat(self.positions[there, marker][:, None], n + 1, axis=1)
        places = SeenOnLinks(self.robot, everywhere, self.motor[there], repeated).places(rotation, shift, offsets)
        return np.median(np.linalg.norm(places - np.median(places, axis=0), axis=2), axis=0)


def turning(points: NDArray) -> NDArray:
    """(..., 3, 3) matrices from a small rotation to the movement of points (..., 3)."""
    x, y, z = (points[..., i] for i in range(3))
    zero = np.zeros_like(x)
    return np.stack([zero, z, -y, -z, zero, x, y, -x, zero], axis=-1).reshape(*points.shape, 3)
