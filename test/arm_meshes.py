"""Provide real arms with their meshes, and find colliding links with coal."""

from functools import cache

import numpy as np
import pytest
from pinocchio_arm import example_urdf

from dynid_ros.collision import Bodies
from dynid_ros.model import RobotModel

ARMS = {
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "tool0"),
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand_tcp"),
}


@cache
def arm(name: str) -> tuple[RobotModel, Bodies]:
    """Return the arm and the capsules of its meshes."""
    urdf, tip = ARMS[name]
    path = example_urdf(urdf)
    robot = RobotModel.from_urdf(path, tip=tip)
    return robot, Bodies.of(robot, [path.parents[3]])


def poses(robot: RobotModel, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(robot.limits.lower, robot.limits.upper, (count, robot.n_joints))


class CoalArm:
    """Meshes of an arm, with all joints outside the chain at zero.

    Attributes:
        links: (P, 2) link of the chain (-1: base) that each pair of geometries is on.
    """

    def __init__(self, name: str) -> None:
        self._pin = pytest.importorskip("pinocchio")
        pytest.importorskip("coal")
        urdf, _ = ARMS[name]
        path = str(example_urdf(urdf))
        self._robot, _ = arm(name)
        self._model = self._pin.buildModelFromUrdf(path)
        directories = [str(example_urdf(urdf).parents[4])]
        self._geometry = self._pin.buildGeomFromUrdf(self._model, path, self._pin.COLLISION, package_dirs=directories)
        numbers = {self._model.getJointId(joint): i for i, joint in enumerate(self._robot.joint_names)}
        links = []
        for shape in self._geometry.geometryObjects:
            joint = shape.parentJoint
            while joint and joint not in numbers:
                joint = self._model.parents[joint]
            links.append(numbers.get(joint, -1))
        pairs = [(i, j) for i in range(len(links)) for j in range(len(links)) if links[i] - links[j] > 1]
        for i, j in pairs:
            self._geometry.addCollisionPair(self._pin.CollisionPair(i, j))
        self.links = np.array([(links[i], links[j]) for i, j in pairs])
        self._data, self._geometry_data = self._model.createData(), self._geometry.createData()

    def colliding(self, positions: np.ndarray) -> np.ndarray:
        """Return a mask (N, P) of the pairs of geometries that touch at positions (N, n)."""
        found = []
        for position in positions:
            q = self._pin.neutral(self._model)
            for name, value in zip(self._robot.joint_names, position, strict=True):
                q[self._model.joints[self._model.getJointId(name)].idx_q] = value
            self._pin.computeCollisions(self._model, self._data, self._geometry, self._geometry_data, q, False)
            found.append([result.isCollision() for result in self._geometry_data.collisionResults])
        return np.array(found)
