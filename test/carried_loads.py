"""Define an asymmetric load, and arms that carry one in Pinocchio."""

import numpy as np
import pytest

MASS = 3.2
CENTER = np.array([0.03, -0.05, 0.12])
INERTIA = np.array([[0.020, 0.003, -0.002], [0.003, 0.030, 0.001], [-0.002, 0.001, 0.025]])
"""Inertia about the center of mass in axes of the tip link, kg m²."""


def parameters(mass: float = MASS, center: np.ndarray = CENTER, inertia: np.ndarray = INERTIA) -> np.ndarray:
    """Return the parameters (10,) about the frame of the tip link, by the parallel axis theorem."""
    x, y, z = center
    steiner = mass * np.array(
        [[y * y + z * z, -x * y, -x * z], [-x * y, x * x + z * z, -y * z], [-x * z, -y * z, x * x + y * y]]
    )
    return np.array([mass, *(mass * center), *(inertia + steiner)[np.triu_indices(3)]])


def parent_joint(frame) -> int:
    """Return the parent joint of a frame in either version of Pinocchio."""
    return frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent


class LoadedArm:
    """Chain of a URDF in Pinocchio with the load fixed to link `tip`."""

    def __init__(self, urdf: str, tip: str, gravity: np.ndarray):
        self.pinocchio = pytest.importorskip("pinocchio")
        self.model = self.pinocchio.buildModelFromXML(urdf)
        self.model.gravity.linear = np.array(gravity)
        self.load = self.pinocchio.Inertia(MASS, CENTER, INERTIA)
        self.frame = self.model.getFrameId(tip)
        frame = self.model.frames[self.frame]
        self.model.appendBodyToJoint(parent_joint(frame), self.load, frame.placement)
        self.data = self.model.createData()

    def inverse_dynamics(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return self.pinocchio.rnea(self.model, self.data, q, qd, qdd).copy()

    def gravity_torque(self, q: np.ndarray) -> np.ndarray:
        return self.pinocchio.computeGeneralizedGravity(self.model, self.data, q).copy()

    def wrench(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return force and torque (6,) of the load on the tip link, in its frame."""
        pin = self.pinocchio
        model = self.model
        data = self.data
        pin.forwardKinematics(model, data, q, qd, qdd)
        pin.updateFramePlacements(model, data)
        velocity = pin.getFrameVelocity(model, data, self.frame, pin.LOCAL)
        acceleration = pin.getFrameAcceleration(model, data, self.frame, pin.LOCAL)
        acceleration.linear -= data.oMf[self.frame].rotation.T @ model.gravity.linear
        on_load = self.load * acceleration + self.load.vxiv(velocity)
        return -np.concatenate([on_load.linear, on_load.angular])
