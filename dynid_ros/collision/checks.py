"""What must keep apart: pairs of links, links and obstacles, links and planes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from dynid_ros.collision.bodies import Bodies
from dynid_ros.collision.distances import Contact, segment_box, segment_segment
from dynid_ros.collision.obstacles import Obstacle
from dynid_ros.collision.placed import Placed
from dynid_ros.collision.placements import BASE
from dynid_ros.collision.separating_axis import SeparatingAxes
from dynid_ros.model.arrays import cross


@dataclass(frozen=True, eq=False)
class Checks(ABC):
    """K distances of links from each other or from what stands still.

    Attributes:
        bodies: the capsules.
        body: (K,) the capsule that moves further.
        clearance: (K,) least distance, m.

    """

    bodies: Bodies
    body: np.ndarray
    clearance: np.ndarray

    @abstractmethod
    def contact(self, placed: Placed) -> Contact:
        """Distances between surfaces."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """(K,) what each is between."""

    @abstractmethod
    def told(self, k: int, distance: float, time: float) -> str:
        """What is wrong with a distance at a time."""

    @abstractmethod
    def only(self, kept: np.ndarray) -> Checks:
        """Those of a mask (K,)."""

    @property
    def link(self) -> np.ndarray:
        """(K,) link of the chain that is pushed."""
        return self.bodies.link[self.body]

    @property
    def other_link(self) -> np.ndarray:
        """(K,) link of the chain that is pushed the other way; BASE if it stands still."""
        return np.full(len(self.body), BASE)

    def wrench(self, contact: Contact, weights: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forces and moments about the base's origin (n, 3, N), summed over what each of n joints moves.

        Args:
            contact: where things are nearest.
            weights: (K, N) forces along the normals.
            moved: (n, K) 1 for a check whose first part the joint moves, less 1 if it moves the other part.

        """
        shape = (len(moved), 3, weights.shape[1])
        push = contact.normal * weights[:, np.newaxis]
        moment = cross(contact.point, push)
        force, moment = ((moved @ each.reshape(len(weights), -1)).reshape(shape) for each in (push, moment))
        return force, moment

    def room(self, contact: Contact) -> np.ndarray:
        """(K, N) distances less clearances."""
        return contact.distance - self.clearance[:, np.newaxis]


@dataclass(frozen=True, eq=False)
class PairChecks(Checks):
    """Capsules `body` from capsules `other` (K,), or what they cover where `axes` show that it is further apart."""

    other: np.ndarray
    axes: tuple[SeparatingAxes, ...] = ()

    @property
    def other_link(self) -> np.ndarray:  # noqa: D102
        return self.bodies.link[self.other]

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        names = self.bodies.names
        return tuple(f"'{names[a]}' and '{names[b]}'" for a, b in zip(self.body, self.other, strict=True))

    def contact(self, placed: Placed) -> Contact:  # noqa: D102
        n = len(self.bodies.link)
        a, b, points = self.body, self.other, placed.points
        found = segment_segment(points[a], points[a + n], points[b], points[b + n])
        distance = found.distance - (self.bodies.radius[a] + self.bodies.radius[b])[:, np.newaxis]
        for axis in self.axes:
            along = axis.contact(placed)
            further = along.distance > distance[axis.k]
            np.copyto(distance[axis.k], along.distance, where=further)
            np.copyto(found.normal[axis.k], along.normal, where=further)
            np.copyto(found.point[axis.k], along.point, where=further)
        return found._replace(distance=distance)

    def told(self, k: int, distance: float, time: float) -> str:  # noqa: D102
        return _near(self.bodies.names[self.body[k]], f"'{self.bodies.names[self.other[k]]}'", distance, time) + (
            f"; clearance is {self.clearance[k]:g} m"
        )

    def only(self, kept: np.ndarray) -> PairChecks:  # noqa: D102
        number = np.cumsum(kept) - 1
        axes = tuple(replace(axis, k=int(number[axis.k])) for axis in self.axes if kept[axis.k])
        return PairChecks(self.bodies, self.body[kept], self.clearance[kept], self.other[kept], axes)


@dataclass(frozen=True, eq=False)
class ObstacleChecks(Checks):
    """Capsules `body` from one obstacle."""

    obstacle: Obstacle

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(f"'{self.bodies.names[a]}' and obstacle '{self.obstacle.name}'" for a in self.body)

    def contact(self, placed: Placed) -> Contact:  # noqa: D102
        turn, centre = self.obstacle.rotation, self.obstacle.centre[:, np.newaxis]
        n = len(self.bodies.link)
        p0, p1 = (turn.T @ (placed.points[self.body + end] - centre) for end in (0, n))
        found = segment_box(p0, p1, self.obstacle.half)
        distance = found.distance - self.bodies.radius[self.body][:, np.newaxis]
        return Contact(distance, turn @ found.normal, turn @ found.point + centre)

    def told(self, k: int, distance: float, time: float) -> str:  # noqa: D102
        return _near(self.bodies.names[self.body[k]], f"obstacle '{self.obstacle.name}'", distance, time) + (
            f"; clearance is {self.clearance[k]:g} m"
        )

    def only(self, kept: np.ndarray) -> ObstacleChecks:  # noqa: D102
        return ObstacleChecks(self.bodies, self.body[kept], self.clearance[kept], self.obstacle)


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane that the arm stays on one side of.

    Attributes:
        normal: (3,) to the allowed side, in the base frame.
        bound: where the plane is along the normal, m.
        sign: of the normal along the axis that `told` gives places on.
        name: what to call it.
        told: how to tell a violation, with {name}, {at} (the place, m) and {time}.

    """

    normal: np.ndarray
    bound: float
    sign: float
    name: str
    told: str


@dataclass(frozen=True, eq=False)
class PlaneChecks(Checks):
    """Ends `end` (K,), 0 or 1, of capsules from a plane; with both ends the whole capsule is on a side."""

    end: np.ndarray
    plane: Plane

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(f"'{self.bodies.names[a]}' and {self.plane.name}" for a in self.body)

    def contact(self, placed: Placed) -> Contact:  # noqa: D102
        normal = self.plane.normal
        chosen = placed.points[self.body + self.end * len(self.bodies.link)]
        distance = normal[0] * chosen[:, 0] + normal[1] * chosen[:, 1] + normal[2] * chosen[:, 2]
        distance -= (self.bodies.radius[self.body] + self.plane.bound)[:, np.newaxis]
        return Contact(distance, np.broadcast_to(normal[:, np.newaxis], chosen.shape), chosen)

    def wrench(self, contact: Contact, weights: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # noqa: D102
        normal = self.plane.normal[:, np.newaxis]
        lever = moved @ (contact.point * weights[:, np.newaxis]).reshape(len(weights), -1)
        lever = lever.reshape(len(moved), 3, -1)
        return (moved @ weights)[:, np.newaxis] * normal, cross(lever, normal)

    def told(self, k: int, distance: float, time: float) -> str:  # noqa: D102
        at = self.plane.sign * (distance + self.plane.bound)
        return self.plane.told.format(name=self.bodies.names[self.body[k]], at=at, time=time)

    def only(self, kept: np.ndarray) -> PlaneChecks:  # noqa: D102
        return PlaneChecks(self.bodies, self.body[kept], self.clearance[kept], self.end[kept], self.plane)


def _near(name: str, other: str, distance: float, time: float) -> str:
    if distance < 0:
        return f"'{name}' would overlap with {other} by {-distance:.3f} m at {time:.3f} s"
    return f"'{name}' would come within {distance:.3f} m of {other} at {time:.3f} s"
