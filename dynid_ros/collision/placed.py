"""Where the capsules of a moving arm are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.collision.bodies import Bodies
from dynid_ros.collision.placements import BASE
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import joint_samples
from dynid_ros.model.chain import joint_frames


class Placed(NamedTuple):
    """An arm in N poses, in the base frame.

    Attributes:
        points: (2 C, 3, N) ends of the capsules: all starts, then all ends.
        rotations: (n + 1, 3, 3, N) of the joint frames; BASE, the last, is the base frame.
        origins: (n + 1, 3, N).

    """

    points: np.ndarray
    rotations: np.ndarray
    origins: np.ndarray

    def only(self, poses: np.ndarray) -> Placed:
        """The poses of a mask (N,)."""
        return Placed(*(array[..., poses] for array in self))


class Placing:
    """Places the capsules of one arm.

    Attributes:
        robot, bodies: as given.

    """

    def __init__(self, robot: RobotModel, bodies: Bodies) -> None:
        self.robot, self.bodies = robot, bodies
        self._link = np.tile(bodies.link, 2)
        self._offsets = np.concatenate([robot.chain.link_offsets, np.eye(4)[np.newaxis]])
        points = np.concatenate([bodies.start, bodies.end])
        self._points = np.array([self.in_joint_frame(link, p) for link, p in zip(self._link, points, strict=True)])

    def in_joint_frame(self, link: int, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) of a link's frame in the frame of its joint."""
        return points @ self._offsets[link, :3, :3].T + self._offsets[link, :3, 3]

    def at(self, position: ArrayLike) -> Placed:
        """The arm at positions (N, n)."""
        (q,) = joint_samples(self.robot.joint_names, position=position)
        moved, shifted = joint_frames(self.robot.chain, q)
        base = np.repeat(np.eye(3)[:, :, np.newaxis], len(q), axis=2)
        rotations = np.concatenate([moved, base[np.newaxis]])
        origins = np.concatenate([shifted, np.zeros((1, 3, len(q)))])
        points = np.empty((*self._points.shape, len(q)))
        for link in range(BASE, self.robot.n_joints):
            on_link = self._link == link
            points[on_link] = (self._points[on_link] @ rotations[link]).transpose(1, 0, 2) + origins[link]
        return Placed(points, rotations, origins)
