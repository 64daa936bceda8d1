"""The position servo of the simulated arm: gains that fit its inertia; it may feed inertia and gravity forward."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from dynid_ros.model import JointLimits
from dynid_ros.simulation.physics import mass_matrix

BANDWIDTH = 60.0
"""Natural frequency (rad/s) of a joint alone. Stiffer servos wear down the soft stiction of MuJoCo during a dwell."""
POSES = 100


@dataclass(frozen=True)
class ServoGains:
    """Torque per position error, stiffness (n,) N m/rad, and per velocity error, damping (n,) N m s/rad."""

    stiffness: np.ndarray
    damping: np.ndarray

    @classmethod
    def of(cls, model: mujoco.MjModel, limits: JointLimits) -> ServoGains:
        """Gains that fit the inertia of each joint, so that no mode of the arm oscillates in any of many poses.

        With stiffness D w² and damping 2 z w D, D diagonal, an eigenvalue e of M(q)^-1 D gives a mode of frequency
        w sqrt(e) and damping ratio z sqrt(e): z makes the slowest mode critical, w keeps the quickest within a step.
        """
        prismatic = model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        reach = np.where(prismatic, 1.0, np.pi)
        lower = np.where(np.isfinite(limits.lower), limits.lower, -reach)
        upper = np.where(np.isfinite(limits.upper), limits.upper, reach)
        matrices = _mass_matrices(model, lower + np.random.default_rng(0).random((POSES, model.nv)) * (upper - lower))
        inertia = np.mean(np.diagonal(matrices, axis1=1, axis2=2), axis=0)
        modes = np.linalg.eigvals(np.linalg.inv(matrices) * inertia).real
        frequency = min(BANDWIDTH, 1.0 / (model.opt.timestep * np.sqrt(modes.max())))
        return cls(inertia * frequency**2, 2.0 * frequency * inertia / np.sqrt(modes.min()))


class PositionServo:
    """Torque towards a desired motion, from a model of the arm alone: a servo knows nothing of a load.

    Args:
        arm: without a load.
        limits: of its joints.
        model: feed inertia and gravity forward; False: a servo that is stiff and knows nothing, and sags.

    Attributes:
        gains: stiffness and damping.

    """

    def __init__(self, arm: mujoco.MjModel, limits: JointLimits, *, model: bool = True) -> None:
        self.gains = ServoGains.of(arm, limits)
        self._arm = arm
        self._model = model
        self._data = mujoco.MjData(arm)
        self._effort = limits.effort
        self._rotors = arm.dof_armature.copy()
        self._half_step = 0.5 * arm.opt.timestep

    def drive(
        self, desired: np.ndarray, position: np.ndarray, velocity: np.ndarray, added: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """Torque (n,) but for the damping on the velocity, which the caller leaves to MuJoCo's stable integration.

        Args:
            desired: (3, n) position, velocity and acceleration.
            position: (n,) where the arm is.
            velocity: (n,) likewise.
            added: (n,) torque that is commanded besides.

        """
        damping = self.gains.damping
        desired_position, desired_velocity, acceleration = desired
        drive = self._inverse_dynamics(position, velocity, acceleration) if self._model else np.zeros_like(velocity)
        # Damping acts on the velocity that carries the position through the step: that of its middle.
        drive += damping * (desired_velocity + self._half_step * acceleration)
        drive += self.gains.stiffness * (desired_position - position) + added
        braking = damping * velocity
        return np.clip(drive - braking, -self._effort, self._effort) + braking

    def _inverse_dynamics(self, position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        data = self._data
        data.qpos[:], data.qvel[:], data.qacc[:] = position, velocity, acceleration
        mujoco.mj_kinematics(self._arm, data)
        mujoco.mj_comPos(self._arm, data)
        mujoco.mj_comVel(self._arm, data)
        torque = np.empty_like(velocity)
        mujoco.mj_rne(self._arm, data, 1, torque)
        return torque + self._rotors * acceleration


def _mass_matrices(model: mujoco.MjModel, poses: np.ndarray) -> np.ndarray:
    data = mujoco.MjData(model)
    matrices = []
    for pose in poses:
        data.qpos[:] = pose
        mujoco.mj_step1(model, data)
        matrices.append(mass_matrix(model, data))
    return np.array(matrices)
