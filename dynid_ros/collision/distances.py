"""How far segments are from each other, from boxes and from planes, and where they are closest.

Points and normals are (K, 3, N), for K things and N samples, or broadcast to it; samples come last, so that numpy's
inner loops run over them. Distances are (K, N), negative inside. The normal is the gradient of the distance with
respect to a shift of the first segment; the point is where on it a force along the normal would act.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from dynid_ros.collision.capsules import Placed, Placing
from dynid_ros.model.arrays import dot

TINY = 1e-12


class Contact(NamedTuple):
    """Distance (K, N), normal (K, 3, N) and point (K, 3, N) on the first segment."""

    distance: np.ndarray
    normal: np.ndarray
    point: np.ndarray


def segment_segment(a0: np.ndarray, a1: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> Contact:
    """Return the contact of segments a0-a1 with segments b0-b1 (Ericson 5.1.9); zero where they cross."""
    a, b, between = a1 - a0, b1 - b0, a0 - b0
    aa, bb, ab = dot(a, a), dot(b, b), dot(a, b)
    a_between, b_between = dot(a, between), dot(b, between)
    inverse_aa, inverse_bb = 1.0 / np.maximum(aa, TINY), 1.0 / np.maximum(bb, TINY)
    s = np.clip((ab * b_between - a_between * bb) / np.maximum(aa * bb - ab * ab, TINY), 0.0, 1.0)
    t = np.clip((ab * s + b_between) * inverse_bb, 0.0, 1.0)
    s = np.clip((ab * t - a_between) * inverse_aa, 0.0, 1.0)
    along = s[..., np.newaxis, :] * a
    offset = between + along
    offset -= t[..., np.newaxis, :] * b
    distance = np.sqrt(dot(offset, offset))
    normal = offset / np.maximum(distance, TINY)[..., np.newaxis, :]
    crossing = distance < 1e-9
    if crossing.any():  # the way out is across both
        k, n = np.nonzero(crossing)
        a_there, b_there = (np.broadcast_to(u, offset.shape)[k, :, n] for u in (a, b))
        both = np.cross(a_there, b_there)
        normal[k, :, n] = both / np.maximum(np.linalg.norm(both, axis=1, keepdims=True), TINY)
    along += a0
    return Contact(distance, normal, along)


def segment_box(p0: np.ndarray, p1: np.ndarray, half: np.ndarray) -> Contact:
    """Return the contact of segments p0-p1 with boxes about the origin with half sides `half` (3,) or (K, 3, 1).

    Inside it is the depth of the deepest point below the nearest face. Both are the least signed distance over the
    segment, which is a convex function along it.
    """
    half = np.broadcast_to(np.reshape(half, (-1, 3, 1)), (p0.shape[0], 3, 1))
    d = p1 - p0
    t = _nearest_to_box(p0, d, half)
    point = p0 + t[:, np.newaxis] * d
    offset = point - np.clip(point, -half, half)
    distance = np.sqrt(dot(offset, offset))
    normal = offset / np.maximum(distance, TINY)[:, np.newaxis]
    inside = distance < TINY
    if inside.any():
        k, n = np.nonzero(inside)
        distance[k, n], normal[k, :, n], depth_at = _depth(p0[k, :, n], d[k, :, n], half[k, :, 0])
        point[k, :, n] = p0[k, :, n] + depth_at[:, np.newaxis] * d[k, :, n]
    return Contact(distance, normal, point)


def _nearest_to_box(p0: np.ndarray, d: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Parameter (K, N) where the segment is nearest to the box: its slope is piecewise linear and rises."""
    slow = np.abs(d) < TINY
    inverse = 1.0 / np.where(slow, 1.0, d)
    low, low_slope = np.zeros_like(p0[:, 0]), None
    high, high_slope = np.ones_like(low), None

    def slope(t: np.ndarray) -> np.ndarray:
        point = p0 + t[:, np.newaxis] * d
        return dot(d, point - np.clip(point, -half, half))

    low_slope, high_slope = slope(low), slope(high)
    outward, inward = low_slope > 0.0, high_slope < 0.0
    for side in (-half, half):
        breaks = np.where(slow, 0.0, np.clip((side - p0) * inverse, 0.0, 1.0))
        for axis in range(3):
            t = breaks[:, axis]
            g = slope(t)
            better = (g <= 0.0) & (t >= low)
            low, low_slope = np.where(better, t, low), np.where(better, g, low_slope)
            better = (g >= 0.0) & (t <= high)
            high, high_slope = np.where(better, t, high), np.where(better, g, high_slope)
    rise = high_slope - low_slope
    between = np.where(rise > TINY, -low_slope / np.maximum(rise, TINY), 0.5)
    t = low + (high - low) * np.clip(between, 0.0, 1.0)
    return np.where(outward, 0.0, np.where(inward, 1.0, t))


def _depth(p0: np.ndarray, d: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signed distance (M,), its gradient (M, 3) and where it is taken (M,), for M segments (M, 3) that enter the box.

    It is the least over the segment of the largest of six lines, one for each face: at an end, or where a falling and a
    rising line meet; there the gradient is the mix of both that does not change along the segment.
    """
    value = np.concatenate([p0 - half, -p0 - half], axis=1)  # (M, 6)
    rise = np.concatenate([d, -d], axis=1)
    i, j = np.triu_indices(6, 1)
    meeting = rise[:, j] - rise[:, i]
    level = np.abs(meeting) < TINY
    t = np.where(level, 0.0, (value[:, i] - value[:, j]) / np.where(level, 1.0, meeting))
    t = np.concatenate([np.zeros((len(t), 1)), np.ones((len(t), 1)), np.clip(t, 0.0, 1.0)], axis=1)
    depths = (value[:, np.newaxis] + t[:, :, np.newaxis] * rise[:, np.newaxis]).max(axis=2)
    rows = np.arange(len(t))
    where = t[rows, depths.argmin(axis=1)]
    at = value + where[:, np.newaxis] * rise
    depth = at.max(axis=1)
    active = at >= depth[:, np.newaxis] - 1e-9
    falling = np.where(active, rise, np.inf).argmin(axis=1)
    rising = np.where(active, rise, -np.inf).argmax(axis=1)
    a, b = rise[rows, falling], rise[rows, rising]
    interior = (where > 0.0) & (where < 1.0) & (a < 0.0) & (b > 0.0)
    share = np.where(interior, b / np.where(interior, b - a, 1.0), np.where(where >= 1.0, 1.0, 0.0))
    faces = np.concatenate([np.eye(3), -np.eye(3)])
    return depth, share[:, np.newaxis] * faces[falling] + (1.0 - share[:, np.newaxis]) * faces[rising], where


# Two hulls are at least as far apart as along any one direction.


DIRECTIONS = 80
"""Tried in each of the two links of a pair, all around."""
HELPS = 0.004
"""A direction is used if it clears this part of all poses."""
MOST = 8
"""Directions of a pair."""
MOST_CORNERS = 400
"""Corners of a hull that are looked at: those of a mesh with thousands are as many too many."""
MOST_PRODUCTS = 1_000_000
"""Corners times directions and poses that are held at once."""


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
        nearest = np.empty(len(local), dtype=int)
        beyond = np.empty(len(local))
        step = max(1, MOST_PRODUCTS // len(self.corners))
        for start in range(0, len(local), step):
            block = slice(start, start + step)
            along = local[block] @ self.corners[:, :3].T
            along -= self.corners[:, 3]
            nearest[block] = along.argmin(axis=1)
            beyond[block] = along[np.arange(len(along)), nearest[block]]
        reaches = beyond.reshape(count, n)
        between = np.einsum("ain,in->an", normals, origin - placed.origins[self.fixed])
        return reaches + between - self.bounds[:, np.newaxis], nearest.reshape(count, n)

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
    hulls = {}
    for c in (body, other):
        corners = few_corners(bodies.hulls[c])
        hulls[c] = np.column_stack([placing.in_joint_frame(int(bodies.link[c]), corners[:, :3]), corners[:, 3]])
    for first, second, sign in ((other, body, 1.0), (body, other, -1.0)):
        fixed = int(bodies.link[first])
        directions = np.concatenate([_joint_axes(placing, fixed), _sphere(DIRECTIONS)])
        bounds = (hulls[first][:, :3] @ directions.T + hulls[first][:, 3:]).max(axis=0)
        yield SeparatingAxes(k, fixed, int(bodies.link[second]), directions, bounds, hulls[second], sign)


def few_corners(corners: np.ndarray) -> np.ndarray:
    """Return at most `MOST_CORNERS` of the corners (V, 4) of a hull, with margins by which they hold all the others.

    Those that reach furthest along spread directions are kept. Another corner p sticks out of their hull by less than
    its distance from the point where the way from p to a point inside crosses the surface.
    """
    if len(corners) <= MOST_CORNERS:
        return corners
    points = corners[:, :3]
    kept = points[np.unique((points @ _sphere(MOST_CORNERS).T).argmax(axis=0))]
    centre = kept.mean(axis=0)
    try:
        faces = ConvexHull(kept).equations
    except QhullError:  # flat
        return corners
    outside = points @ faces[:, :3].T + faces[:, 3]
    depth = -(faces[:, :3] @ centre + faces[:, 3])
    beyond = np.maximum(outside / np.maximum(outside + depth, TINY), 0.0).max(axis=1)
    margin = corners[:, 3].max() + (beyond * np.linalg.norm(points - centre, axis=1)).max()
    return np.column_stack([kept, np.full(len(kept), margin)])


def _joint_axes(placing: Placing, link: int) -> np.ndarray:
    """(A, 3) both ways along the axes of the joints at both ends of a link, in its joint frame."""
    chain = placing.robot.chain
    axes = [np.array([0.0, 0.0, 1.0])] if link >= 0 else []
    axes += list(chain.transforms[chain.parents == link, :3, 2])
    return np.array([way * axis for axis in axes for way in (1.0, -1.0)])


def _sphere(count: int) -> np.ndarray:
    """(count, 3) unit vectors spread all around: a Fibonacci lattice."""
    z = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    angle = np.arange(count) * np.pi * (3.0 - np.sqrt(5.0))
    across = np.sqrt(1.0 - z * z)
    return np.column_stack([across * np.cos(angle), across * np.sin(angle), z])
