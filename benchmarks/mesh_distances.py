"""Torques and link distances of robots by Pinocchio and Coal, computed from the original meshes."""

import site
from pathlib import Path

import numpy as np

from benchmarks.base_columns import load_robot
from benchmarks.figaroh import ROBOTS

LOCKED = {"panda": ("panda_finger_joint1", "panda_finger_joint2")}


class MeshDistances:
    """The UR10 or Panda of package example-robot-data.

    Distances are computed between links that are not neighbours in the chain. Pairs that touch in every one of many
    random poses, such as the hand and the link before it, are left out.

    Attributes:
        share: folder of the package, for its meshes.
    """

    def __init__(self, name: str) -> None:
        import pinocchio  # noqa: PLC0415  # a reference tool

        self._pinocchio = pinocchio
        prefix = next(
            path for folder in site.getsitepackages() if (path := Path(folder) / "cmeel.prefix/share").exists()
        )
        self.share = prefix / "example-robot-data"
        path = self.share / "robots" / ROBOTS[name][0]
        model = pinocchio.buildModelFromUrdf(str(path))
        geometry = pinocchio.buildGeomFromUrdf(model, str(path), pinocchio.GeometryType.COLLISION, None, [str(prefix)])
        locked = [model.getJointId(joint) for joint in LOCKED.get(name, ())]
        self.model, self.geometry = pinocchio.buildReducedModel(model, geometry, locked, pinocchio.neutral(model))
        joints = [body.parentJoint for body in self.geometry.geometryObjects]
        for a in range(len(joints)):
            for b in range(a):
                if abs(joints[a] - joints[b]) > 1:
                    self.geometry.addCollisionPair(pinocchio.CollisionPair(b, a))
        self._data, self._geometry_data = self.model.createData(), self.geometry.createData()
        robot = load_robot(name)
        assert tuple(self.model.names)[1:] == robot.joint_names
        poses = np.random.default_rng(0).uniform(robot.limits.lower, robot.limits.upper, (200, robot.n_joints))
        self._kept = np.max([self._all(pose) for pose in poses], axis=0) > 0

    def torques(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the torques (N, n)."""
        rnea = self._pinocchio.rnea
        return np.array([rnea(self.model, self._data, *sample).copy() for sample in zip(q, qd, qdd, strict=True)])

    def distances(self, q: np.ndarray) -> np.ndarray:
        """Return the smallest distance (N,) between two links that are not neighbours, m."""
        return np.array([self._all(pose)[self._kept].min() for pose in q])

    def _all(self, pose: np.ndarray) -> np.ndarray:
        self._pinocchio.computeDistances(self.model, self._data, self.geometry, self._geometry_data, pose)
        return np.array([result.min_distance for result in self._geometry_data.distanceResults])
