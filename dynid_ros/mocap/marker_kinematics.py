"""Where markers on the links are, and how the joints move them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.model import RobotModel


class LinkFrames(NamedTuple):
    """Frames of a chain at M positions, all in the base frame.

    Attributes:
        rotation: (M, n + 1, 3, 3) of the links; the base comes last, so that index -1 finds it.
        origin: (M, n + 1, 3) m.
        axis: (M, n, 3) unit axes of the joints.
        pivot: (M, n, 3) a point on each axis, m.

    """

    rotation: NDArray
    origin: NDArray
    axis: NDArray
    pivot: NDArray


def link_frames(robot: RobotModel, q: NDArray) -> LinkFrames:
    """Frames at joint positions q (M, n)."""
    poses = robot.forward_kinematics(q)
    base = np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))
    frames = np.concatenate([poses, base], axis=1)
    # The joint frame, about or along whose z a link moves, is fixed in the link.
    offset = robot.chain.link_offsets
    axis_in_link = offset[:, 2, :3]
    pivot_in_link = -np.einsum("nji,nj->ni", offset[:, :3, :3], offset[:, :3, 3])
    axis, pivot = (np.einsum("mnij,nj->mni", poses[..., :3, :3], fixed) for fixed in (axis_in_link, pivot_in_link))
    return LinkFrames(frames[..., :3, :3], frames[..., :3, 3], axis, pivot + poses[..., :3, 3])


def marker_positions(frames: LinkFrames, markers: MarkerSet) -> NDArray:
    """Positions (M, P, 3) of markers in the base frame."""
    turned = frames.rotation[:, markers.links] @ markers.places[:, :, None]
    return frames.origin[:, markers.links] + turned[..., 0]


def marker_jacobian(robot: RobotModel, frames: LinkFrames, positions: NDArray, markers: MarkerSet) -> NDArray:
    """Derivatives (M, P, 3, n) of marker positions (M, P, 3), base frame, with respect to the joints."""
    ax, ay, az = (frames.axis[:, None, :, i] for i in range(3))
    x, y, z = (positions[:, :, None, i] - frames.pivot[:, None, :, i] for i in range(3))
    turning = np.stack([ay * z - az * y, az * x - ax * z, ax * y - ay * x], axis=2)
    sliding = np.swapaxes(frames.axis, 1, 2)[:, None]
    jacobian = np.where(robot.chain.prismatic, sliding, turning)
    return jacobian * markers.beyond(robot.n_joints)[:, None, :]
