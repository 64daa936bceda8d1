"""Simulate recordings of small arms whose links differ from their URDF in a known way."""

import numpy as np
import planar_arm

from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording import Recording

FRICTION = JointFriction(offset=True, smoothing=0.05)
COULOMB = 1.0
VISCOUS = 0.5
OFFSET = 0.2
FIRST_MOMENT_FACTOR = 2.5
INERTIA_FACTOR = 1.5


def build_planar() -> tuple[RobotModel, np.ndarray]:
    """Return the planar arm and true link parameters (30,) that differ in links 2 and 3."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    truth = robot.parameters.reshape(3, 10).copy()
    truth[1, 1:4] *= FIRST_MOMENT_FACTOR
    truth[2, 4:] *= INERTIA_FACTOR
    return robot, truth.ravel()


def record(
    robot: RobotModel,
    truth: np.ndarray,
    seed: int = 0,
    noise_seed: int = 0,
    noise: float = 0.05,
    ripple: float = 0.0,
    still: tuple[int, ...] = (),
) -> Recording:
    """Simulate 10 s at 100 Hz of sum-of-sines motion with friction, noise and an unmodeled ripple.

    Args:
        robot: kinematics.
        truth: (10 n,) link parameters.
        seed: seed of the motion.
        noise_seed: seed of the noise.
        noise: standard deviation of torque noise in N m.
        ripple: amplitude in N m of a torque ripple over the joint angle.
        still: indices of joints that do not move.
    """
    n = robot.n_joints
    time = np.arange(0, 10, 0.01)
    rng = np.random.default_rng(seed)
    motion = np.zeros((3, len(time), n))
    for harmonic in range(1, 6):
        w = 2 * np.pi * 0.1 * harmonic
        amplitude = rng.uniform(-1, 1, n) / harmonic**0.7
        phase = rng.uniform(0, 2 * np.pi, n)
        angle = w * time[:, None] + phase
        motion += amplitude * np.stack([np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)])
    motion[:, :, list(still)] = 0.0
    q, qd, qdd = motion
    torque = robot.inverse_dynamics(q, qd, qdd, truth)
    torque += FrictionModel(FRICTION).regressor(qd, qdd) @ np.tile([COULOMB, VISCOUS, OFFSET], n)
    torque += np.random.default_rng(noise_seed + 100 * seed).normal(0, noise, q.shape) + ripple * np.sin(5 * q)
    return Recording(robot.joint_names, time, q, qd, torque, source=f"run_{seed}")
