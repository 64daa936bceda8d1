"""Model arms in Pinocchio, and provide the URDFs of real robots that come with it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid_ros.model import RobotModel

EXAMPLES = "share/example-robot-data/robots"
REGRESSOR_ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
"""Indices of parameters in Pinocchio, which orders inertias as Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""


def example_urdf(path: str) -> Path:
    """Return a URDF of example-robot-data; skip the calling test or module if it is not installed."""
    prefixes = [Path(folder) / "cmeel.prefix" for folder in sys.path]
    prefixes += [Path(folder) for folder in Path("/opt/ros").glob("*")]
    for prefix in prefixes:
        if (prefix / EXAMPLES / path).exists():
            return prefix / EXAMPLES / path
    pytest.skip(f"example-robot-data is not installed: {path}", allow_module_level=True)


class PinocchioArm:
    """Chain of `joint_names` in Pinocchio with other joints locked at zero or at `posture`."""

    def __init__(
        self, urdf: str, joint_names: tuple[str, ...], gravity: np.ndarray, posture: Mapping[str, float] | None = None
    ):
        self.pinocchio = pytest.importorskip("pinocchio")
        model = self.pinocchio.buildModelFromXML(urdf)
        others = [model.getJointId(name) for name in model.names[1:] if name not in joint_names]
        held = self.pinocchio.neutral(model)
        for name, position in (posture or {}).items():
            joint = model.joints[model.getJointId(name)]
            held[joint.idx_q : joint.idx_q + joint.nq] = _coordinates(joint, position)
        self.model = self.pinocchio.buildReducedModel(model, others, held)
        self.model.gravity.linear = np.array(gravity)
        self.data = self.model.createData()
        self.positions = self.model.nq == self.model.nv  # whether q are coordinates, without continuous joints
        assert tuple(self.model.names[1:]) == joint_names

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Return the coordinates of all joints at positions q (n,)."""
        if self.positions:
            return np.asarray(q, float)
        return np.concatenate(
            [_coordinates(joint, position) for joint, position in zip(self.model.joints[1:], q, strict=True)]
        )

    def poses(self, q: np.ndarray) -> np.ndarray:
        self.pinocchio.forwardKinematics(self.model, self.data, self.configuration(q))
        return np.array([pose.homogeneous for pose in self.data.oMi[1:]])

    def inverse_dynamics(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return self.pinocchio.rnea(self.model, self.data, self.configuration(q), qd, qdd).copy()

    def gravity_torque(self, q: np.ndarray) -> np.ndarray:
        return self.pinocchio.computeGeneralizedGravity(self.model, self.data, self.configuration(q)).copy()

    def torque_regressor(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the regressor (n, 10 n) with columns in the order of RobotModel."""
        matrix = self.pinocchio.computeJointTorqueRegressor(self.model, self.data, self.configuration(q), qd, qdd)
        n = self.model.nv
        return matrix.reshape(n, n, 10)[:, :, REGRESSOR_ORDER].reshape(n, 10 * n)

    def parameters(self) -> np.ndarray:
        """Return the parameters (10 n,) in the order of RobotModel."""
        bodies = list(self.model.inertias)[1:]
        return np.concatenate([body.toDynamicParameters()[REGRESSOR_ORDER] for body in bodies])


class MimickingArm:
    """Tree in Pinocchio with joints that mimic others."""

    def __init__(self, tree: RobotModel, folder: Path, urdf: str | None = None):
        pinocchio = pytest.importorskip("pinocchio")
        (folder / "tree.urdf").write_text(urdf or tree.urdf or "")
        try:
            self.model = pinocchio.buildModelFromUrdf(str(folder / "tree.urdf"), mimic=True)
        except TypeError:
            pytest.skip(f"Pinocchio {pinocchio.__version__} knows no joints that mimic others")
        self.model.gravity.linear = tree.gravity
        self.data = self.model.createData()
        self._rnea = pinocchio.rnea
        self.rows = [self.model.joints[self.model.getJointId(name)].idx_v for name in tree.joint_names]
        assert sorted(self.rows) == list(range(self.model.nv))

    def inverse_dynamics(self, *motion: np.ndarray) -> np.ndarray:
        """Return the torques (n,) of q, qd and qdd, each (n,)."""
        placed = np.zeros((3, self.model.nv))
        placed[:, self.rows] = motion
        return self._rnea(self.model, self.data, *placed)[self.rows]


def _coordinates(joint: Any, position: float) -> list[float]:
    """Return the coordinates of a joint: cosine and sine if it is continuous."""
    return [position] if joint.nq == 1 else [float(np.cos(position)), float(np.sin(position))]
