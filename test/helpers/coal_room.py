"""What Pinocchio and Coal say of an arm among boxes: its own shapes against each other and against what is around."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from helpers.random_workspaces import RandomWorkspace
from pinocchio_arm import PinocchioArm

FAR = 20.0
"""Side of the boxes that stand for a floor and for the sides of a box, m."""
PROBES = 300
"""Poses within the limits that say what cannot be avoided."""
LINKS = "links"
TOUCHING = 1e-6
"""Hulls nearer than this may touch, m."""
DEEP = 1e-4
"""Of meshes that meet Coal may say that their distance is zero; they count as so deep in each other, m."""


class CoalRoom:
    """The collision shapes of a URDF against each other and against the surroundings.

    Looked at are pairs of links that are not neighbours in the chain, and all that moves against all that stands
    around. Left out are links that touch in every one of many poses, as a hand does the link before it, and what the
    first moving link is too near to in all of them, as the table that it stands on.

    Attributes:
        things: (P,) what each pair is about: LINKS, or the name of what stands around.
        asked: (P,) distance to keep, m: the clearance from obstacles, and between links more than two joints apart.
    """

    def __init__(self, case: RandomWorkspace, package_directories: Sequence[str | Path] = ()) -> None:
        self._pin, self._coal = pytest.importorskip("pinocchio"), pytest.importorskip("coal")
        pin, robot = self._pin, case.robot
        self.arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
        full = pin.buildModelFromXML(robot.urdf)
        geometry = pin.buildGeomFromUrdfString(
            full, robot.urdf, pin.COLLISION, package_dirs=[str(folder) for folder in package_directories]
        )
        others = [full.getJointId(name) for name in full.names[1:] if name not in robot.joint_names]
        _, self._geometry = pin.buildReducedModel(full, geometry, others, pin.neutral(full))
        bodies = self._geometry.geometryObjects
        self._joints = [body.parentJoint for body in bodies]
        pairs = [(a, b) for a, b in combinations(range(len(bodies)), 2) if abs(self._joints[a] - self._joints[b]) > 1]
        apart = [abs(self._joints[a] - self._joints[b]) for a, b in pairs]
        self.things = [LINKS] * len(pairs)
        asked = [case.clearance if joints > 2 else 0.0 for joints in apart]
        for name, clearance, number in self._surroundings(case):
            moving = [k for k, joint in enumerate(self._joints) if joint > 0]
            pairs += [(k, number) for k in moving]
            self.things += [name] * len(moving)
            asked += [clearance] * len(moving)
        for pair in pairs:
            self._geometry.addCollisionPair(pin.CollisionPair(*pair))
        self._all_asked = self.asked = np.array(asked)
        self._hulls = self._geometry.copy()
        for body in self._hulls.geometryObjects:
            if isinstance(body.geometry, self._coal.BVHModelBase):
                body.geometry.buildConvexHull(True, "Qt")
                body.geometry = body.geometry.convex
        self._data, self._hull_data = self._geometry.createData(), self._hulls.createData()
        lower, upper = np.maximum(robot.limits.lower, -np.pi), np.minimum(robot.limits.upper, np.pi)
        probes = self._all(np.random.default_rng(0).uniform(lower, upper, (PROBES, robot.n_joints)))
        links = np.array([thing == LINKS for thing in self.things])
        first = np.array([min(self._joints[a], 2) == 1 for a, _ in pairs])
        touching, near = np.all(probes <= 0, axis=0), np.all(probes < self.asked, axis=0)
        self._kept = ~np.where(links, touching, near & first)
        self.asked = np.where(links & near, 0.0, self.asked)[self._kept]
        self.things = [thing for thing, kept in zip(self.things, self._kept, strict=True) if kept]

    def distances(self, positions: np.ndarray) -> np.ndarray:
        """(N, P) distance of each pair at positions (N, n), m; zero or less where they touch."""
        return self._all(positions)[:, self._kept]

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Torques (N, n) of a motion (N, n) each."""
        return np.array([self.arm.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])

    def too_near(self, positions: np.ndarray) -> dict[str, np.ndarray]:
        """For each thing (N,) by how much links are nearer to it than asked, m; zero or less where they are not."""
        lack = self.asked - self.distances(positions)
        things = np.array(self.things)
        return {thing: lack[:, things == thing].max(axis=1) for thing in dict.fromkeys(self.things)}

    def _all(self, positions: np.ndarray) -> np.ndarray:
        """Distances (N, P): those of the convex hulls, which are quick, and of the shapes where hulls are too near."""
        pin, model, data = self._pin, self.arm.model, self.arm.data
        found = np.empty((len(positions), len(self._geometry.collisionPairs)))
        for position, row in zip(positions, found, strict=True):
            pin.computeDistances(model, data, self._hulls, self._hull_data, self.arm.configuration(position))
            row[:] = [result.min_distance for result in self._hull_data.distanceResults]
            near = np.flatnonzero(row < np.maximum(self._all_asked, TOUCHING))
            if len(near):
                pin.updateGeometryPlacements(model, data, self._geometry, self._data)
            for k in near:
                distance = pin.computeDistance(self._geometry, self._data, int(k)).min_distance
                row[k] = distance if distance > 0.0 else min(distance, -DEEP)
        return found

    def _surroundings(self, case: RandomWorkspace) -> list[tuple[str, float, int]]:
        """Name, clearance and number of all that stands around, added as boxes."""
        found = []
        for obstacle in case.obstacles:
            pose = np.array(obstacle.pose)
            lower, upper = np.array(obstacle.lower), np.array(obstacle.upper)
            place = self._pin.SE3(pose[:3, :3], pose[:3, :3] @ ((lower + upper) / 2) + pose[:3, 3])
            found.append(
                (f"obstacle '{obstacle.name}'", case.clearance, self._add(obstacle.name, upper - lower, place))
            )
        sides = []
        if np.isfinite(case.floor_height):
            sides.append(("the floor", 2, -1, case.floor_height))
        if case.box is not None:
            for side, corner, sign in (("lower", case.box[0], -1), ("upper", case.box[1], 1)):
                sides += [(f"the {side} {'xyz'[k]} side of the box", k, sign, corner[k]) for k in range(3)]
        for name, axis, sign, at in sides:
            place = self._pin.SE3(np.eye(3), (at + sign * FAR / 2) * np.eye(3)[axis])
            found.append((name, 0.0, self._add(name, np.full(3, FAR), place)))
        return found

    def _add(self, name: str, size: np.ndarray, place) -> int:
        shape = self._pin.GeometryObject(name, 0, 0, place, self._coal.Box(*size))
        return self._geometry.addGeometryObject(shape)
