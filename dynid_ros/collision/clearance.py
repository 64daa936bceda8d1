"""Distances between links, to obstacles and to planes, with their required clearance and their gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.collision.capsules import Bodies, Placed, Placing, line_ends
from dynid_ros.collision.distances import Contact, SeparatingAxes, helpful_axes, segment_box, segment_segment
from dynid_ros.collision.obstacles import FIXED_LINK, Obstacle
from dynid_ros.errors import CollisionError
from dynid_ros.model.arrays import cross, dot
from dynid_ros.model.chain import Chain

AnyChecks = TypeVar("AnyChecks", bound="Checks")
MIN_SHARE_OF_POSES = 0.9
"""Fraction of the poses in which links two joints apart must keep their clearance, or else it is lowered."""
DISTANCE_TOLERANCE_M = 1e-6
"""Largest change of a distance, m, that rounding causes."""
LINE_CLEARANCE_FRACTION = 1 / 3
"""Largest clearance of two lines, as a fraction of the distance between them along the arm."""
USUAL_DISTANCE_SLACK_M = 0.002
"""Distance by which a lowered clearance is less than the distance that two links usually keep. Planned motions need it
for their margin of about 1 mm, because they are not checked at every instant. Links whose distance changes less are not
checked.
"""
MIN_PARALLEL_COSINE = 1 - 1e-6
"""Smallest cosine of the angle between axes that count as parallel."""
MAX_AXIS_JOINTS = 3
"""Largest number of joints between two links for which separating axes are searched."""
MIN_OVERLAP_FRACTION = 0.02
"""Fraction of poses in which two capsules must overlap for a search of separating axes."""
MIN_MOTION_M = 1e-9
"""Largest displacement of a fixed point over all poses, m."""
N_PROBE_POSES = 16
"""Number of poses in which points must coincide to count as one."""


@dataclass(frozen=True, eq=False)
class Checks(ABC):
    """K distances between links, or between links and fixed objects.

    Attributes:
        bodies: capsules of the arm.
        body: (K,) index of the first capsule; in a pair, the one further along the chain.
        clearance: (K,) smallest allowed distance, m.
    """

    bodies: Bodies
    body: np.ndarray
    clearance: np.ndarray

    @abstractmethod
    def contact(self, placed: Placed) -> Contact:
        """Return the contacts in N poses: distances between surfaces (K, N), normals and points (K, 3, N)."""

    @abstractmethod
    def other(self, k: int) -> str:
        """Return the name of the second object of check k."""

    def only(self: AnyChecks, kept: np.ndarray) -> AnyChecks:
        """Return the checks of a mask (K,)."""
        arrays = {name: value[kept] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays)

    @property
    def names(self) -> tuple[str, ...]:
        """Names (K,) of the two objects of each check."""
        return tuple(f"'{self.bodies.names[body]}' and {self.other(k)}" for k, body in enumerate(self.body))

    def violation(self, k: int, distance: float, time: float) -> str:
        """Return a sentence about a distance that is too small at a time, s."""
        name = self.bodies.names[self.body[k]]
        clearance = f"clearance is {self.clearance[k]:g} m"
        if distance < 0:
            return f"'{name}' would overlap with {self.other(k)} by {-distance:.3f} m at {time:.3f} s; {clearance}"
        return f"'{name}' would come within {distance:.3f} m of {self.other(k)} at {time:.3f} s; {clearance}"

    @property
    def link(self) -> np.ndarray:
        """Link (K,) of the chain that carries the first object."""
        return self.bodies.link[self.body]

    @property
    def other_link(self) -> np.ndarray:
        """Link (K,) of the chain that carries the second object; FIXED_LINK for a fixed object."""
        return np.full(len(self.body), FIXED_LINK)

    def wrench(self, contact: Contact, weights: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return forces and moments about the base's origin (m, 3, N) on each of m links with all links beyond it.

        Args:
            contact: distances, normals and nearest points.
            weights: (K, N) forces along the normals on the first objects; the second objects get the opposite forces.
            moved: (m, K) number of objects of a check on the link or beyond it, counted 1 for the first object and −1
                for the second.
        """
        shape = (len(moved), 3, weights.shape[1])
        push = contact.normal * weights[:, np.newaxis]
        moment = cross(contact.point, push)
        force, moment = ((moved @ vector.reshape(len(weights), -1)).reshape(shape) for vector in (push, moment))
        return force, moment

    def room(self, contact: Contact) -> np.ndarray:
        """Return the distances minus the clearances (K, N)."""
        return contact.distance - self.clearance[:, np.newaxis]


@dataclass(frozen=True, eq=False)
class PairChecks(Checks):
    """Distances between capsules, or between the hulls of their links.

    Attributes:
        second: (K,) index of the second capsule.
        axes: directions along which hulls may be further apart than the capsules; the larger distance counts.
    """

    second: np.ndarray
    axes: tuple[SeparatingAxes, ...] = ()

    @property
    def other_link(self) -> np.ndarray:  # noqa: D102
        return self.bodies.link[self.second]

    def other(self, k: int) -> str:  # noqa: D102
        return f"'{self.bodies.names[self.second[k]]}'"

    def contact(self, placed: Placed) -> Contact:  # noqa: D102
        n = len(self.bodies.link)
        a = self.body
        b = self.second
        points = placed.points
        segments = segment_segment(points[a], points[a + n], points[b], points[b + n])
        distance = segments.distance - (self.bodies.radius[a] + self.bodies.radius[b])[:, np.newaxis]
        for axis in self.axes:
            along = axis.contact(placed)
            further = along.distance > distance[axis.k]
            np.copyto(distance[axis.k], along.distance, where=further)
            np.copyto(segments.normal[axis.k], along.normal, where=further)
            np.copyto(segments.point[axis.k], along.point, where=further)
        return segments._replace(distance=distance)

    def only(self, kept: np.ndarray) -> PairChecks:  # noqa: D102
        number = np.cumsum(kept) - 1
        axes = tuple(replace(axis, k=int(number[axis.k])) for axis in self.axes if kept[axis.k])
        return replace(super().only(kept), axes=axes)


@dataclass(frozen=True, eq=False)
class ObstacleChecks(Checks):
    """Distances of capsules `body` from one obstacle."""

    obstacle: Obstacle

    def other(self, k: int) -> str:  # noqa: ARG002, D102
        return f"obstacle '{self.obstacle.name}'"

    def contact(self, placed: Placed) -> Contact:  # noqa: D102
        rotation = self.obstacle.rotation
        centre = self.obstacle.centre[:, np.newaxis]
        n = len(self.bodies.link)
        p0, p1 = (rotation.T @ (placed.points[self.body + end] - centre) for end in (0, n))
        box = segment_box(p0, p1, self.obstacle.half)
        distance = box.distance - self.bodies.radius[self.body][:, np.newaxis]
        return Contact(distance, rotation @ box.normal, rotation @ box.point + centre)


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane that bounds the space of the arm.

    Attributes:
        normal: (3,) unit vector to the allowed side, in the base frame.
        bound: position of the plane along the normal, m.
        sign: 1 if positions in `violation` count along the normal, −1 if against it.
        name: name of the plane in messages.
        violation: sentence about a violation, with the fields {name}, {at} (position, m) and {time}.
    """

    normal: np.ndarray
    bound: float
    sign: float
    name: str
    violation: str


@dataclass(frozen=True, eq=False)
class PlaneChecks(Checks):
    """Distances of the ends of capsules from a plane; the smaller one of both ends is the distance of a capsule.

    Attributes:
        end: (K,) 0 for the start of the segment, 1 for its end.
        plane: the plane.
    """

    end: np.ndarray
    plane: Plane

    def other(self, k: int) -> str:  # noqa: ARG002, D102
        return self.plane.name

    def contact(self, placed: Placed) -> Contact:  # noqa: D102
        normal = self.plane.normal
        points = placed.points[self.body + self.end * len(self.bodies.link)]
        distance = normal[0] * points[:, 0] + normal[1] * points[:, 1] + normal[2] * points[:, 2]
        distance -= (self.bodies.radius[self.body] + self.plane.bound)[:, np.newaxis]
        return Contact(distance, np.broadcast_to(normal[:, np.newaxis], points.shape), points)

    def wrench(self, contact: Contact, weights: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: D102
        normal = self.plane.normal[:, np.newaxis]
        lever = moved @ (contact.point * weights[:, np.newaxis]).reshape(len(weights), -1)
        lever = lever.reshape(len(moved), 3, -1)
        return (moved @ weights)[:, np.newaxis] * normal, cross(lever, normal)

    def violation(self, k: int, distance: float, time: float) -> str:  # noqa: D102
        at = self.plane.sign * (distance + self.plane.bound)
        return self.plane.violation.format(name=self.bodies.names[self.body[k]], at=at, time=time)


def capsule_pairs(placing: Placing, clearance: float, placed: Placed) -> PairChecks:
    """Return the checks of pairs of capsules on links with at least two joints between them.

    Pairs of links that may touch (`Bodies.allowed`) are excluded. Pairs of capsules that overlap in every pose of
    `placed` are excluded too, because they would forbid all poses; they cover the parts of two links next to a common
    joint. Other capsules of the same two links are checked. If capsules of links at most three joints apart often
    overlap, their hulls are also compared along separating axes.

    Capsules of links two joints apart are often closer than the clearance by design. Their clearance is lowered to 2 mm
    less than the distance that they keep in 90 % of the poses, or to zero if they touch in more than 10 %. It therefore
    increases with `clearance` up to a limit of the pair, and a larger `clearance` never allows a pose that a smaller
    one forbids. Such capsules are not checked if their distance changes by less than 2 mm between all poses.

    Sections of a telescope overlap by design. Their capsules are not checked if they overlap in more than 10 % of the
    poses: the limits of the joints keep the sections apart.

    Args:
        placing: capsules of the arm.
        clearance: smallest allowed distance, m.
        placed: capsules in poses within the limits.
    """
    bodies = placing.bodies
    between = placing.robot.chain.between
    all_pairs = np.array(list(combinations(range(len(bodies.link)), 2)), dtype=int).reshape(-1, 2)[:, ::-1]
    pairs = all_pairs[between(*bodies.link[all_pairs.T]) > 1]
    if bodies.allowed:
        pairs = pairs[[{bodies.names[a], bodies.names[b]} not in bodies.allowed for a, b in pairs.tolist()]]
    checks = PairChecks(bodies, pairs[:, 0], np.zeros(len(pairs)), pairs[:, 1])
    distance = checks.contact(placed).distance
    apart = between(*bodies.link[pairs.T])
    axes: list[SeparatingAxes] = []
    for k in np.flatnonzero((apart <= MAX_AXIS_JOINTS) & (np.mean(distance < 0, axis=1) > MIN_OVERLAP_FRACTION)):
        axes += helpful_axes(placing, int(k), pairs[k], near=placed.only(distance[k] < 0), n_poses=distance.shape[1])
    checks = replace(checks, axes=tuple(axes))
    distance = checks.contact(placed).distance
    is_constant = (apart == 2) & (np.ptp(distance, axis=1) < USUAL_DISTANCE_SLACK_M)
    often_overlap = np.mean(distance < 0, axis=1) > 1.0 - MIN_SHARE_OF_POSES
    is_nested = often_overlap & (joints_apart(placing.robot.chain, placed, *bodies.link[pairs.T]) == 0)
    kept = np.any(distance > 1e-9, axis=1) & ~is_constant & ~is_nested
    bound = _usual_distance(distance[kept], [tuple(names) for names in np.array(bodies.names)[pairs[kept]]])
    clearances = np.where(apart[kept] == 2, np.minimum(clearance, bound), clearance)
    return replace(checks.only(kept), clearance=clearances)


def joints_apart(chain: Chain, placed: Placed, link: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the number (K,) of joints between links and others, without parallel prismatic joints of a telescope."""
    joints = chain.joints_between(link, other)
    slides = joints & chain.slides
    axes = placed.rotations[:-1, :, 2, 0]
    is_askew = np.abs(axes @ axes.T) < MIN_PARALLEL_COSINE
    are_parallel = np.einsum("ki,ij,kj->k", slides, is_askew.astype(int), slides) == 0
    return np.sum(joints, axis=1) - np.where(are_parallel, np.sum(slides, axis=1), 0)


def _usual_distance(distance: np.ndarray, links: Sequence[tuple[str, ...]]) -> np.ndarray:
    """Return for each pair of capsules (K,) a clearance, at least zero, that its two links keep in most of N poses.

    Args:
        distance: (K, N) distances, m.
        links: (K,) names of the two links of each pair; several pairs of capsules may belong to the same links.
    """
    nearest = {names: distance[[other == names for other in links]].min(axis=0) for names in set(links)}
    usual = {
        names: np.quantile(values, 1.0 - MIN_SHARE_OF_POSES, method="lower") - USUAL_DISTANCE_SLACK_M
        for names, values in nearest.items()
    }
    return np.array([max(usual[names], 0.0) for names in links], dtype=float)


def line_pairs(placing: Placing, clearance: float, placed: Placed) -> PairChecks:
    """Return the checks of pairs of lines from link to link, as in `Bodies.lines`; no checks for clearance zero.

    Lines whose distance along the arm is less than three times the clearance, as in a wrist, are close by design. Their
    clearance is a third of this distance, so a larger clearance never allows a pose that a smaller one forbids.
    """
    bodies = placing.bodies
    points = placed.points
    chain = placing.robot.chain
    n = len(bodies.link)
    lengths = np.linalg.norm(points[n:] - points[:n], axis=1).min(axis=-1)
    # Mask (L, L) of the lines on the path from the base to the end of each line. The lines between two lines are those
    # on one of their paths only.
    ends = line_ends(chain)
    moves = np.pad(chain.moves, ((0, len(chain.tip_links)), (0, 1)))
    path = np.array([[moves[end, link] for _, end in ends] for link, _ in ends]) | np.eye(len(ends), dtype=bool)
    line_lengths = lengths[: len(ends)]
    starts = path @ line_lengths - line_lengths

    def along(a: int, b: int) -> float:
        fork = line_lengths @ (path[a] & path[b])
        return float(max(starts[a] - fork, 0.0) + max(starts[b] - fork, 0.0))

    moving = np.flatnonzero(lengths > 1e-9).tolist() if clearance > 0 else []
    distances = {(b, a): along(a, b) for a, b in combinations(moving, 2) if along(a, b) > DISTANCE_TOLERANCE_M}
    pairs = np.array(list(distances), dtype=int).reshape(-1, 2)
    bound = LINE_CLEARANCE_FRACTION * np.array(list(distances.values()), dtype=float)
    return PairChecks(bodies, pairs[:, 0], np.minimum(clearance, bound), pairs[:, 1])


class Distances:
    """Distances of K checks in N poses.

    The distance of two overlapping objects is negative. Its magnitude is the length by which the radii of the capsules
    would have to shrink, not the distance by which the links would have to move apart. It decreases again after the
    axes of two capsules cross.

    Attributes:
        room: (N, K) distance minus the clearance, m; negative if the objects are too close.
    """

    def __init__(self, checks: Sequence[Checks], chain: Chain, placed: Placed) -> None:
        self._checks = checks
        self._chain = chain
        self._axes = placed.rotations[:-1, :, 2]
        self._origins = placed.origins[:-1]
        self._contacts = [check.contact(placed) for check in checks]
        rooms = [check.room(contact) for check, contact in zip(checks, self._contacts, strict=True)]
        self.room = np.concatenate([np.empty((0, placed.points.shape[-1])), *rooms]).T

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names (K,) of the two objects of each check."""
        return tuple(name for check in self._checks for name in check.names)

    def gradient(self, weights: ArrayLike) -> np.ndarray:
        """Return the gradient (N, n) of the sum over checks of weights (N, K) times room with respect to the positions.

        By the principle of virtual work, a weight is a force that pushes two objects apart, and the derivative with
        respect to a joint position is the torque of the wrench on all links that the joint moves.

        Raises:
            CollisionError: the weights are not of the shape of `room`.
        """
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.room.shape:
            raise CollisionError(f"weights have shape {weights.shape}; expected that of room, {self.room.shape}")
        chain = self._chain
        force, moment = np.zeros((2, chain.n_links, 3, len(weights)))
        moves = np.pad(chain.moves, ((0, 0), (0, 1))).astype(float)
        first = 0
        for check, contact in zip(self._checks, self._contacts, strict=True):
            count = len(check.body)
            if count:
                moved = moves[:, check.link] - moves[:, check.other_link]
                added_force, added_moment = check.wrench(contact, weights.T[first : first + count], moved)
                force += added_force
                moment += added_moment
            first += count
        turning = dot(self._axes, moment) - dot(self._axes, cross(self._origins, force))
        return chain.of_joints(np.where(chain.slides[:, np.newaxis], dot(self._axes, force), turning)).T


def floor_checks(bodies: Bodies, up: np.ndarray, height: float, points: np.ndarray) -> list[Checks]:
    """Return checks of moving capsule ends above a floor.

    Args:
        bodies: capsules of the arm.
        up: (3,) unit vector upwards, in the base frame.
        height: height of the floor along `up`, m.
        points: (2 C, 3, N) ends of the capsules in some poses, m.
    """
    violation = f"'{{name}}' would be at height {{at:.3f}} m at {{time:.3f}} s, below floor_height {height:g} m"
    return _plane(bodies, points, Plane(up, height, 1.0, "the floor", violation))


def box_checks(bodies: Bodies, lower: np.ndarray, upper: np.ndarray, points: np.ndarray) -> list[Checks]:
    """Return checks of moving capsule ends inside a box with corners (3,) in the base frame; see `floor_checks`."""
    checks: list[Checks] = []
    for axis, letter in enumerate("xyz"):
        for side, corner, sign in (("lower", lower, 1.0), ("upper", upper, -1.0)):
            violation = f"'{{name}}' would reach {letter} = {{at:.3f}} m at {{time:.3f}} s, beyond {side} side "
            name = f"the {side} {letter} side of the box"
            plane = Plane(
                sign * np.eye(3)[axis], sign * corner[axis], sign, name, f"{violation}{corner[axis]:g} m of the box"
            )
            checks += _plane(bodies, points, plane)
    return checks


def obstacle_checks(bodies: Bodies, obstacles: Sequence[Obstacle], clearance: float) -> list[Checks]:
    """Return checks of moving capsules against obstacles."""
    moving = np.flatnonzero(bodies.link != FIXED_LINK)
    return [ObstacleChecks(bodies, moving, np.full(len(moving), clearance), obstacle) for obstacle in obstacles]


def _plane(bodies: Bodies, points: np.ndarray, plane: Plane) -> list[Checks]:
    if np.isneginf(plane.bound):
        return []
    ends = _distinct(bodies, points)
    n = len(bodies.link)
    return [PlaneChecks(bodies, ends % n, np.zeros(len(ends)), ends // n, plane)]


def _distinct(bodies: Bodies, points: np.ndarray) -> np.ndarray:
    """Return the indices of the moving ends among 2 C ends, one of each set of coinciding ends with equal radius."""
    n = len(bodies.link)
    order = np.argsort(np.tile(np.arange(n), 2) * 2 + (np.arange(2 * n) < n))[::-1]
    keys = np.column_stack([np.tile(bodies.radius, 2), points[:, :, :N_PROBE_POSES].reshape(2 * n, -1)])[order]
    _, first = np.unique(np.round(keys, 9), axis=0, return_index=True)
    kept = np.sort(order[first])
    moving = np.ptp(points, axis=2).max(axis=1) > MIN_MOTION_M
    return kept[moving[kept] & (np.tile(bodies.link, 2)[kept] != FIXED_LINK)]
