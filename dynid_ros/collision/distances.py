"""Distances between segments, and of segments from boxes, with their nearest points.

Points and normals are (K, 3, N), for K pairs and N samples, or arrays that broadcast to this shape. Samples come last,
so that numpy's inner loops run over them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from dynid_ros.collision.capsules import Placed, Placing
from dynid_ros.model.arrays import dot

MIN_DISTANCE = 1e-12
"""Smallest length, m, or squared length, m^2, in a denominator."""
N_TRIED_DIRECTIONS = 80
"""Number of evenly distributed directions that are tried in each of the two links of a pair."""
MIN_CLEARED_FRACTION = 0.004
"""Fraction of all poses in which a direction must be the first to separate the pair; otherwise it is not used."""
MAX_DIRECTIONS = 8
"""Largest number of directions of a pair."""
MAX_CORNERS = 400
"""Largest number of corners of a hull; hulls of fine meshes with more corners are simplified."""
MAX_PRODUCTS = 1_000_000
"""Largest number of products of corners, directions and poses in memory."""


class Contact(NamedTuple):
    """Distances of K pairs in N samples, with the vectors that their gradients need.

    Attributes:
        distance: (K, N) m; negative inside a box.
        normal: (K, 3, N) gradient of the distance with respect to a translation of the first segment.
        point: (K, 3, N) nearest point of the first segment, m.
    """

    distance: np.ndarray
    normal: np.ndarray
    point: np.ndarray


def segment_segment(a0: np.ndarray, a1: np.ndarray, b0: np.ndarray, b1: np.ndarray) -> Contact:
    """Return the contact of segments a0-a1 with segments b0-b1 (Ericson 2005, section 5.1.9).

    The distance of crossing segments is zero; their normal is perpendicular to both segments.
    """
    a = a1 - a0
    b = b1 - b0
    between = a0 - b0
    aa = dot(a, a)
    bb = dot(b, b)
    ab = dot(a, b)
    a_between = dot(a, between)
    b_between = dot(b, between)
    inverse_aa = 1.0 / np.maximum(aa, MIN_DISTANCE)
    inverse_bb = 1.0 / np.maximum(bb, MIN_DISTANCE)
    s = np.clip((ab * b_between - a_between * bb) / np.maximum(aa * bb - ab * ab, MIN_DISTANCE), 0.0, 1.0)
    t = np.clip((ab * s + b_between) * inverse_bb, 0.0, 1.0)
    s = np.clip((ab * t - a_between) * inverse_aa, 0.0, 1.0)
    along = s[..., np.newaxis, :] * a
    offset = between + along
    offset -= t[..., np.newaxis, :] * b
    distance = np.sqrt(dot(offset, offset))
    normal = offset / np.maximum(distance, MIN_DISTANCE)[..., np.newaxis, :]
    crossing = distance < 1e-9
    if crossing.any():
        k, n = np.nonzero(crossing)
        crossing_a, crossing_b = (np.broadcast_to(u, offset.shape)[k, :, n] for u in (a, b))
        across = np.cross(crossing_a, crossing_b)
        normal[k, :, n] = across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), MIN_DISTANCE)
    along += a0
    return Contact(distance, normal, along)


def segment_box(p0: np.ndarray, p1: np.ndarray, half: np.ndarray) -> Contact:
    """Return the contact of segments p0-p1 with boxes about the origin with half sides `half` (3,) or (K, 3, 1).

    The distance of a segment is the smallest signed distance of its points from the box. Inside the box, the signed
    distance of a point is minus its depth below the nearest face. It is a convex function along the segment.
    """
    half = np.broadcast_to(np.reshape(half, (-1, 3, 1)), (p0.shape[0], 3, 1))
    d = p1 - p0
    t = _nearest_to_box(p0, d, half)
    point = p0 + t[:, np.newaxis] * d
    offset = point - np.clip(point, -half, half)
    distance = np.sqrt(dot(offset, offset))
    normal = offset / np.maximum(distance, MIN_DISTANCE)[:, np.newaxis]
    inside = distance < MIN_DISTANCE
    if inside.any():
        k, n = np.nonzero(inside)
        distance[k, n], normal[k, :, n], depth_at = _depth(p0[k, :, n], d[k, :, n], half[k, :, 0])
        point[k, :, n] = p0[k, :, n] + depth_at[:, np.newaxis] * d[k, :, n]
    return Contact(distance, normal, point)


def _nearest_to_box(p0: np.ndarray, d: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Return the parameter t (K, N), 0 to 1, of the point p0 + t d that is nearest to the box.

    The derivative of half the squared distance is continuous, piecewise linear and rising. Its zero lies between two
    neighbouring breakpoints, where the segment crosses the plane of a face.
    """
    is_constant = np.abs(d) < MIN_DISTANCE
    inverse = 1.0 / np.where(is_constant, 1.0, d)
    low = np.zeros_like(p0[:, 0])
    high = np.ones_like(low)

    def slope(t: np.ndarray) -> np.ndarray:
        point = p0 + t[:, np.newaxis] * d
        return dot(d, point - np.clip(point, -half, half))

    low_slope = slope(low)
    high_slope = slope(high)
    outward = low_slope > 0.0
    inward = high_slope < 0.0
    for side in (-half, half):
        breaks = np.where(is_constant, 0.0, np.clip((side - p0) * inverse, 0.0, 1.0))
        for axis in range(3):
            t = breaks[:, axis]
            g = slope(t)
            better = (g <= 0.0) & (t >= low)
            low = np.where(better, t, low)
            low_slope = np.where(better, g, low_slope)
            better = (g >= 0.0) & (t <= high)
            high = np.where(better, t, high)
            high_slope = np.where(better, g, high_slope)
    rise = high_slope - low_slope
    between = np.where(rise > MIN_DISTANCE, -low_slope / np.maximum(rise, MIN_DISTANCE), 0.5)
    t = low + (high - low) * np.clip(between, 0.0, 1.0)
    return np.where(outward, 0.0, np.where(inward, 1.0, t))


def _depth(p0: np.ndarray, d: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return signed distance (M,), gradient (M, 3) and parameter (M,) of M segments (M, 3) that enter the box.

    At each point of a segment, the signed distance is the largest of six linear functions, one for each face. Its
    minimum over the segment is at an end, or where a falling and a rising function intersect. At an intersection, the
    gradient is the weighted mean of both gradients whose component along the segment is zero.
    """
    value = np.concatenate([p0 - half, -p0 - half], axis=1)  # (M, 6)
    rise = np.concatenate([d, -d], axis=1)
    i, j = np.triu_indices(6, 1)
    difference = rise[:, j] - rise[:, i]
    is_parallel = np.abs(difference) < MIN_DISTANCE
    t = np.where(is_parallel, 0.0, (value[:, i] - value[:, j]) / np.where(is_parallel, 1.0, difference))
    t = np.concatenate([np.zeros((len(t), 1)), np.ones((len(t), 1)), np.clip(t, 0.0, 1.0)], axis=1)
    depths = (value[:, np.newaxis] + t[:, :, np.newaxis] * rise[:, np.newaxis]).max(axis=2)
    rows = np.arange(len(t))
    where = t[rows, depths.argmin(axis=1)]
    at = value + where[:, np.newaxis] * rise
    depth = at.max(axis=1)
    active = at >= depth[:, np.newaxis] - 1e-9
    falling = np.where(active, rise, np.inf).argmin(axis=1)
    rising = np.where(active, rise, -np.inf).argmax(axis=1)
    a = rise[rows, falling]
    b = rise[rows, rising]
    interior = (where > 0.0) & (where < 1.0) & (a < 0.0) & (b > 0.0)
    share = np.where(interior, b / np.where(interior, b - a, 1.0), np.where(where >= 1.0, 1.0, 0.0))
    faces = np.concatenate([np.eye(3), -np.eye(3)])
    return depth, share[:, np.newaxis] * faces[falling] + (1.0 - share[:, np.newaxis]) * faces[rising], where


@dataclass(frozen=True, eq=False)
class SeparatingAxes:
    """Lower bound of the distance of two convex hulls, by projection on directions that are fixed in one link.

    The distance of two hulls is at least the gap between their projections on any direction. This improves on capsules
    at joint housings, which are cylinders with flat ends: the capsules extend beyond the flat ends and overlap, while
    the hulls are separate along the axis of the joint.

    Attributes:
        k: index of the pair of capsules.
        fixed: link in which the directions are fixed.
        moving: link of the other hull.
        directions: (A, 3) unit vectors in the joint frame of `fixed`.
        bounds: (A,) extent of the hull of `fixed` in each direction from the origin of its joint frame, m.
        corners: (V, 4) corners of the other hull in the joint frame of `moving`, and their margins, m.
        sign: 1 if the other hull belongs to the first capsule of the pair, otherwise -1.
    """

    k: int
    fixed: int
    moving: int
    directions: np.ndarray
    bounds: np.ndarray
    corners: np.ndarray
    sign: float

    def distances(self, placed: Placed) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances (A, N) along all directions, m, and the indices of the nearest corners (A, N)."""
        normals = self._normals(placed)
        rotation = placed.rotations[self.moving]
        origin = placed.origins[self.moving]
        local = np.einsum("ijn,ain->anj", rotation, normals).reshape(-1, 3)
        nearest = np.empty(len(local), dtype=int)
        lowest = np.empty(len(local))
        step = max(1, MAX_PRODUCTS // len(self.corners))
        for start in range(0, len(local), step):
            block = slice(start, start + step)
            along = local[block] @ self.corners[:, :3].T
            along -= self.corners[:, 3]
            nearest[block] = along.argmin(axis=1)
            lowest[block] = along[np.arange(len(along)), nearest[block]]
        starts = lowest.reshape(len(normals), -1)
        between = np.einsum("ain,in->an", normals, origin - placed.origins[self.fixed])
        return starts + between - self.bounds[:, np.newaxis], nearest.reshape(len(normals), -1)

    def contact(self, placed: Placed) -> Contact:
        """Return distance (N,), normal (3, N) and point (3, N) for the direction with the largest distance."""
        distances, nearest = self.distances(placed)
        best = distances.argmax(axis=0)
        poses = np.arange(distances.shape[1])
        corner = self.corners[nearest[best, poses], :3]
        point = np.einsum("ijn,nj->in", placed.rotations[self.moving], corner) + placed.origins[self.moving]
        return Contact(distances[best, poses], self.sign * self._normals(placed)[best, :, poses].T, point)

    def only(self, kept: np.ndarray) -> SeparatingAxes:
        """Return a copy with the directions of the indices `kept` only."""
        return replace(self, directions=self.directions[kept], bounds=self.bounds[kept])

    def _normals(self, placed: Placed) -> np.ndarray:
        """Return the directions (A, 3, N) in the base frame."""
        return np.einsum("ijn,aj->ain", placed.rotations[self.fixed], self.directions)


def helpful_axes(placing: Placing, k: int, pair: np.ndarray, *, near: Placed, n_poses: int) -> list[SeparatingAxes]:
    """Return few directions that separate the hulls of a pair in many of the poses in which its capsules overlap.

    Directions are added one after another, each the one that separates the pair in most of the remaining poses.

    Args:
        placing: capsules of the arm.
        k: index of the pair.
        pair: indices of its two capsules, that of the link further along the chain first.
        near: poses in which the capsules overlap.
        n_poses: number of all poses.
    """
    both = list(_all_around(placing, k, int(pair[0]), int(pair[1])))
    clear = np.concatenate([axes.distances(near)[0] > 0.0 for axes in both])
    remaining = np.ones(clear.shape[1], dtype=bool)
    selected: list[int] = []
    while len(selected) < MAX_DIRECTIONS:
        n_cleared = np.sum(clear & remaining, axis=1)
        best = int(n_cleared.argmax())
        if n_cleared[best] <= MIN_CLEARED_FRACTION * n_poses:
            break
        selected.append(best)
        remaining &= ~clear[best]
    count = len(both[0].directions)
    kept = ([i for i in selected if i < count], [i - count for i in selected if i >= count])
    return [axes.only(np.array(indices)) for axes, indices in zip(both, kept, strict=True) if indices]


def _all_around(placing: Placing, k: int, body: int, other: int) -> Iterator[SeparatingAxes]:
    """Yield the joint axes and evenly distributed directions, fixed in the link of either capsule."""
    bodies = placing.bodies
    hulls = {}
    for c in (body, other):
        corners = few_corners(bodies.hulls[c])
        hulls[c] = np.column_stack([placing.in_joint_frame(int(bodies.link[c]), corners[:, :3]), corners[:, 3]])
    for first, second, sign in ((other, body, 1.0), (body, other, -1.0)):
        fixed = int(bodies.link[first])
        directions = np.concatenate([_joint_axes(placing, fixed), _sphere(N_TRIED_DIRECTIONS)])
        bounds = (hulls[first][:, :3] @ directions.T + hulls[first][:, 3:]).max(axis=0)
        yield SeparatingAxes(k, fixed, int(bodies.link[second]), directions, bounds, hulls[second], sign)


def few_corners(corners: np.ndarray) -> np.ndarray:
    """Return at most `MAX_CORNERS` of the corners (V, 4) of a hull, with margins so large that they cover all others.

    The corners that are furthest along evenly distributed directions are kept. The distance of another corner p from
    their hull is at most its distance to the point where the segment from p to an inner point crosses the surface.
    """
    if len(corners) <= MAX_CORNERS:
        return corners
    points = corners[:, :3]
    kept = points[np.unique((points @ _sphere(MAX_CORNERS).T).argmax(axis=0))]
    centre = kept.mean(axis=0)
    try:
        faces = ConvexHull(kept).equations
    except QhullError:  # the corners are in a plane
        return corners
    outside = points @ faces[:, :3].T + faces[:, 3]
    depth = -(faces[:, :3] @ centre + faces[:, 3])
    beyond = np.maximum(outside / np.maximum(outside + depth, MIN_DISTANCE), 0.0).max(axis=1)
    margin = corners[:, 3].max() + (beyond * np.linalg.norm(points - centre, axis=1)).max()
    return np.column_stack([kept, np.full(len(kept), margin)])


def _joint_axes(placing: Placing, link: int) -> np.ndarray:
    """Return unit vectors (A, 3), of either sign, along the axes of all joints of a link, in its joint frame."""
    chain = placing.robot.chain
    axes = [np.array([0.0, 0.0, 1.0])] if link >= 0 else []
    axes += list(chain.transforms[chain.parents == link, :3, 2])
    return np.array([sign * axis for axis in axes for sign in (1.0, -1.0)])


def _sphere(count: int) -> np.ndarray:
    """Return unit vectors (count, 3) in all directions, from a Fibonacci lattice."""
    z = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    angle = np.arange(count) * np.pi * (3.0 - np.sqrt(5.0))
    across = np.sqrt(1.0 - z * z)
    return np.column_stack([across * np.cos(angle), across * np.sin(angle), z])
