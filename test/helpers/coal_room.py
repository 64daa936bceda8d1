"""Compute the distances of an arm's collision shapes, from each other and from its surroundings, by Coal."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from helpers.random_workspaces import RandomWorkspace
from pinocchio_arm import PinocchioArm

PLANE_SIZE_M = 20.0
"""Side in m of the boxes that represent the floor and the walls of a box."""
N_PROBES = 300
"""Number of random poses that decide which pairs always touch."""
LINKS = "links"
CONTACT_DISTANCE_M = 1e-6
"""Distance in m below which convex hulls may touch."""
MESH_PENETRATION_M = 1e-4
"""Penetration in m of colliding meshes, for which Coal may return a distance of zero."""


class CoalRoom:
    """Collision shapes of a URDF and its surroundings.

    The pairs are links that are not neighbors in the chain, and each moving link with each obstacle. Left out are
    links that touch in every random pose, such as a hand and its wrist, and obstacles that are too near to the first
    moving link in every pose, such as the table that carries the arm.

    Attributes:
        things: (P,) subject of each pair: LINKS or the name of an obstacle.
        min_distances: (P,) distance to keep in m: the clearance from obstacles and between links that are more than
            two joints apart.
    """

    def __init__(self, case: RandomWorkspace, package_directories: Sequence[str | Path] = ()) -> None:
        self._pin = pytest.importorskip("pinocchio")
        self._coal = pytest.importorskip("coal")
        pin = self._pin
        robot = case.robot
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
        min_distances = [case.clearance if joints > 2 else 0.0 for joints in apart]
        for name, clearance, number in self._surroundings(case):
            moving = [k for k, joint in enumerate(self._joints) if joint > 0]
            pairs += [(k, number) for k in moving]
            self.things += [name] * len(moving)
            min_distances += [clearance] * len(moving)
        for pair in pairs:
            self._geometry.addCollisionPair(pin.CollisionPair(*pair))
        self._all_min_distances = self.min_distances = np.array(min_distances)
        self._hulls = self._geometry.copy()
        for body in self._hulls.geometryObjects:
            if isinstance(body.geometry, self._coal.BVHModelBase):
                body.geometry.buildConvexHull(True, "Qt")
                body.geometry = body.geometry.convex
        self._data, self._hull_data = self._geometry.createData(), self._hulls.createData()
        lower = np.maximum(robot.limits.lower, -np.pi)
        upper = np.minimum(robot.limits.upper, np.pi)
        probes = self._compute_distances(np.random.default_rng(0).uniform(lower, upper, (N_PROBES, robot.n_joints)))
        links = np.array([thing == LINKS for thing in self.things])
        first = np.array([min(self._joints[a], 2) == 1 for a, _ in pairs])
        touching = np.all(probes <= 0, axis=0)
        near = np.all(probes < self.min_distances, axis=0)
        self._kept = ~np.where(links, touching, near & first)
        self.min_distances = np.where(links & near, 0.0, self.min_distances)[self._kept]
        self.things = [thing for thing, kept in zip(self.things, self._kept, strict=True) if kept]

    def distances(self, positions: np.ndarray) -> np.ndarray:
        """Return the distances (N, P) of the pairs in m at positions (N, n), at most zero in contact."""
        return self._compute_distances(positions)[:, self._kept]

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the torques (N, n) of a motion (N, n)."""
        return np.array([self.arm.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])

    def too_near(self, positions: np.ndarray) -> dict[str, np.ndarray]:
        """Return the missing distance (N,) in m to each obstacle and among links, at most zero if none is missing."""
        lack = self.min_distances - self.distances(positions)
        things = np.array(self.things)
        return {thing: lack[:, things == thing].max(axis=1) for thing in dict.fromkeys(self.things)}

    def _compute_distances(self, positions: np.ndarray) -> np.ndarray:
        """Return the distances (N, P) of convex hulls, which are quick, and of the shapes if hulls are too near."""
        pin = self._pin
        model = self.arm.model
        data = self.arm.data
        distances = np.empty((len(positions), len(self._geometry.collisionPairs)))
        for position, row in zip(positions, distances, strict=True):
            pin.computeDistances(model, data, self._hulls, self._hull_data, self.arm.configuration(position))
            row[:] = [result.min_distance for result in self._hull_data.distanceResults]
            near = np.flatnonzero(row < np.maximum(self._all_min_distances, CONTACT_DISTANCE_M))
            if len(near):
                pin.updateGeometryPlacements(model, data, self._geometry, self._data)
            for k in near:
                distance = pin.computeDistance(self._geometry, self._data, int(k)).min_distance
                row[k] = distance if distance > 0.0 else min(distance, -MESH_PENETRATION_M)
        return distances

    def _surroundings(self, case: RandomWorkspace) -> list[tuple[str, float, int]]:
        """Add obstacles, floor and walls as boxes; return name, clearance and number of each."""
        boxes = []
        for obstacle in case.obstacles:
            pose = np.array(obstacle.pose)
            lower = np.array(obstacle.lower)
            upper = np.array(obstacle.upper)
            place = self._pin.SE3(pose[:3, :3], pose[:3, :3] @ ((lower + upper) / 2) + pose[:3, 3])
            boxes.append(
                (f"obstacle '{obstacle.name}'", case.clearance, self._add(obstacle.name, upper - lower, place))
            )
        sides = []
        if np.isfinite(case.floor_height):
            sides.append(("the floor", 2, -1, case.floor_height))
        if case.box is not None:
            for side, corner, sign in (("lower", case.box[0], -1), ("upper", case.box[1], 1)):
                sides += [(f"the {side} {'xyz'[k]} side of the box", k, sign, corner[k]) for k in range(3)]
        for name, axis, sign, height in sides:
            place = self._pin.SE3(np.eye(3), (height + sign * PLANE_SIZE_M / 2) * np.eye(3)[axis])
            boxes.append((name, 0.0, self._add(name, np.full(3, PLANE_SIZE_M), place)))
        return boxes

    def _add(self, name: str, size: np.ndarray, place) -> int:
        shape = self._pin.GeometryObject(name, 0, 0, place, self._coal.Box(*size))
        return self._geometry.addGeometryObject(shape)
