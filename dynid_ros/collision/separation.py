"""Distances of a moving arm, and how they change with the positions of its joints."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.collision.checks import Checks
from dynid_ros.collision.placed import Placed
from dynid_ros.errors import CollisionError
from dynid_ros.model.arrays import cross, dot
from dynid_ros.model.chain import Chain


class Distances:
    """Distances of K checks in N poses.

    Where two links, or a link and an obstacle, overlap, the distance is negative: by how much the capsules would have
    to shrink, not how far the links would have to move apart. Beyond the axes of two capsules that cross it grows
    again.

    Attributes:
        room: (N, K) distance less the clearance asked for, m; negative: too near.
        names: (K,) what each is between.

    """

    def __init__(self, checks: Sequence[Checks], chain: Chain, placed: Placed) -> None:
        self._checks, self._chain = checks, chain
        self._axes, self._origins = placed.rotations[:-1, :, 2], placed.origins[:-1]
        self._contacts = [check.contact(placed) for check in checks]
        rooms = [check.room(contact) for check, contact in zip(checks, self._contacts, strict=True)]
        self.room = np.concatenate([np.empty((0, placed.points.shape[-1])), *rooms]).T

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each check is between."""
        return tuple(name for check in self._checks for name in check.names)

    def gradient(self, weights: ArrayLike) -> np.ndarray:
        """Gradient (N, n) with respect to the positions of the sum over checks of weights (N, K) times room.

        A weight is a force that pushes two things apart. Its virtual work in the motion of a joint is that of the
        wrench on all links that the joint moves.

        Raises:
            CollisionError: the weights are not of the shape of `room`.

        """
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.room.shape:
            raise CollisionError(f"weights have shape {weights.shape}; expected that of room, {self.room.shape}")
        n, n_samples = self._chain.n_joints, len(weights)
        force, moment = np.zeros((n, 3, n_samples)), np.zeros((n, 3, n_samples))
        joints = np.arange(n)[:, np.newaxis]
        first = 0
        for check, contact in zip(self._checks, self._contacts, strict=True):
            count = len(check.body)
            if count:
                moved = (check.link >= joints).astype(float) - (check.other_link >= joints)
                pushed, turned = check.wrench(contact, weights.T[first : first + count], moved)
                force += pushed
                moment += turned
            first += count
        prismatic = self._chain.prismatic[:, np.newaxis]
        turning = dot(self._axes, moment) - dot(self._axes, cross(self._origins, force))
        return np.where(prismatic, dot(self._axes, force), turning).T
