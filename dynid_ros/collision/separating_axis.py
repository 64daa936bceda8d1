"""Two hulls are at least as far apart as along any one direction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynid_ros.collision.distances import Contact
from dynid_ros.collision.placed import Placed, Placing

DIRECTIONS = 80
"""Tried in each of the two links of a pair, all around."""
HELPS = 0.004
"""A direction is used if it clears this part of all poses."""
MOST = 8
"""Directions of a pair."""


@dataclass(frozen=True, eq=False)
class SeparatingAxes:
    """Directions fixed in one link, and how far another hull is beyond the first along the best of them.

    Joint housings are cylinders with flat ends, over which a capsule bulges; along the axis of the joint their hulls
    are apart where their capsules overlap.

    Attributes:
        k: the pair of capsules.
        fixed: link that the directions are fixed in.
        moving: link of the other hull.
        directions: (A, 3) unit vectors in the joint frame of `fixed`.
        bounds: (A,) how far the hull of `fixed` reaches along them from the origin of that frame, m.
        corners: (V, 4) of the other hull, in the joint frame of `moving`, and their margins.
        sign: 1 if the hull that is pushed is the moving one, else -1.

    """

    k: int
    fixed: int
    moving: int
    directions: np.ndarray
    bounds: np.ndarray
    corners: np.ndarray
    sign: float

    def distances(self, placed: Placed) -> tuple[np.ndarray, np.ndarray]:
        """Distances (A, N) along all directions, and the corners (A, N) they are to."""
        normals = self._normals(placed)
        turn, origin = placed.rotations[self.moving], placed.origins[self.moving]
        count, n = len(normals), origin.shape[-1]
        local = np.einsum("ijn,ain->anj", turn, normals).reshape(-1, 3)
        along = local @ self.corners[:, :3].T
        along -= self.corners[:, 3]
        nearest = along.argmin(axis=1)
        beyond = along[np.arange(count * n), nearest].reshape(count, n)
        between = np.einsum("ain,in->an", normals, origin - placed.origins[self.fixed])
        return beyond + between - self.bounds[:, np.newaxis], nearest.reshape(count, n)

    def contact(self, placed: Placed) -> Contact:
        """Distance (N,), normal (3, N) and point (3, N), along the direction that separates most."""
        distances, nearest = self.distances(placed)
        best, all_ = distances.argmax(axis=0), np.arange(distances.shape[1])
        corner = self.corners[nearest[best, all_], :3]
        point = np.einsum("ijn,nj->in", placed.rotations[self.moving], corner) + placed.origins[self.moving]
        return Contact(distances[best, all_], self.sign * self._normals(placed)[best, :, all_].T, point)

    def only(self, kept: np.ndarray) -> SeparatingAxes:
        """Those directions."""
        return replace(self, directions=self.directions[kept], bounds=self.bounds[kept])

    def _normals(self, placed: Placed) -> np.ndarray:
        """(A, 3, N) in the base frame."""
        return np.einsum("ijn,aj->ain", placed.rotations[self.fixed], self.directions)


def helpful_axes(placing: Placing, k: int, pair: np.ndarray, *, near: Placed, n_poses: int) -> list[SeparatingAxes]:
    """The few directions along which a pair is clear in most of the poses in which its capsules overlap.

    Args:
        placing: the capsules.
        k: number of the pair.
        pair: its capsules, the pushed one first.
        near: the poses in which these overlap.
        n_poses: of so many.

    """
    both = list(_all_around(placing, k, int(pair[0]), int(pair[1])))
    clear = np.concatenate([axes.distances(near)[0] > 0.0 for axes in both])
    left = np.ones(clear.shape[1], dtype=bool)
    chosen: list[int] = []
    while len(chosen) < MOST:
        helped = np.sum(clear & left, axis=1)
        best = int(helped.argmax())
        if helped[best] <= HELPS * n_poses:
            break
        chosen.append(best)
        left &= ~clear[best]
    count = len(both[0].directions)
    kept = ([i for i in chosen if i < count], [i - count for i in chosen if i >= count])
    return [axes.only(np.array(those)) for axes, those in zip(both, kept, strict=True) if those]


def _all_around(placing: Placing, k: int, body: int, other: int) -> Iterator[SeparatingAxes]:
    bodies = placing.bodies
    hulls = {
        c: np.column_stack([placing.in_joint_frame(int(bodies.link[c]), bodies.hulls[c][:, :3]), bodies.hulls[c][:, 3]])
        for c in (body, other)
    }
    for first, second, sign in ((other, body, 1.0), (body, other, -1.0)):
        fixed = int(bodies.link[first])
        directions = np.concatenate([_joint_axes(placing, fixed), _sphere(DIRECTIONS)])
        bounds = (hulls[first][:, :3] @ directions.T + hulls[first][:, 3:]).max(axis=0)
        yield SeparatingAxes(k, fixed, int(bodies.link[second]), directions, bounds, hulls[second], sign)


def _joint_axes(placing: Placing, link: int) -> np.ndarray:
    """(A, 3) both ways along the axes of the joints at both ends of a link, in its joint frame."""
    chain = placing.robot.chain
    axes = [np.array([0.0, 0.0, 1.0])] if link >= 0 else []
    axes += [chain.transforms[link + 1, :3, 2]] if link + 1 < chain.n_joints else []
    return np.array([way * axis for axis in axes for way in (1.0, -1.0)])


def _sphere(count: int) -> np.ndarray:
    """(count, 3) unit vectors spread all around: a Fibonacci lattice."""
    z = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    angle = np.arange(count) * np.pi * (3.0 - np.sqrt(5.0))
    across = np.sqrt(1.0 - z * z)
    return np.column_stack([across * np.cos(angle), across * np.sin(angle), z])
