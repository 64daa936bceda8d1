"""Simulate an arm that moves, rests and carries loads in MuJoCo, and a model with inexact friction."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.simulation.mujoco_model import compile_arm, put_load

NOISE = 0.005  # standard deviation of a sample relative to the effort limits
COULOMB, VISCOUS = 0.05, 0.025  # relative to the effort limits, at the highest speed
MISMATCH = 0.15
ENCODER = 2e-5
SMOOTHING = 0.02  # real friction is continuous


PRESLIDING = (2e-4, 3e-3)  # range of presliding distances in rad
STANDING = (2.0, 12.0)  # s


class Motion(NamedTuple):
    """Time (N,), and positions, velocities and accelerations (N, n)."""

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


def moves(
    robot: RobotModel,
    duration: float,
    rate: float,
    rng: np.random.Generator,
    speed: float = 0.35,
    rests: tuple[float, float] = (0.3, 4.0),
) -> Motion:
    """Return minimum-jerk moves between random poses, with rests of random duration after every second one."""
    limits = robot.limits
    n = robot.n_joints
    lower = np.maximum(limits.lower, -2.5)
    upper = np.minimum(limits.upper, 2.5)
    parts = []
    length = 0
    size = int(duration * rate)
    pose = (lower + upper) / 2
    while length < size:
        end = (lower + upper) / 2 + 0.4 * (upper - lower) * rng.uniform(-1, 1, n)
        change = end - pose
        span = 1.875 * np.max(np.abs(change) / np.minimum(limits.velocity, 3.0)) / speed
        s = (np.arange(max(int(span * rate), 1)) / max(int(span * rate), 1))[:, None]
        parts.append(
            (
                pose + change * (10 * s**3 - 15 * s**4 + 6 * s**5),
                change * (30 * s**2 - 60 * s**3 + 30 * s**4) / span,
                change * (60 * s - 180 * s**2 + 120 * s**3) / span**2,
            )
        )
        if rng.random() < 0.5:
            still = np.zeros((int(rng.uniform(*rests) * rate), n))
            parts.append((end + still, still, still))
        length = sum(len(part[0]) for part in parts)
        pose = end
    q, qd, qdd = (np.concatenate(arrays)[:size] for arrays in zip(*parts, strict=True))
    return Motion(np.arange(size) / rate, q, qd, qdd)


def block(mass: float, center: tuple[float, float, float] = (0.03, -0.02, 0.1)) -> np.ndarray:
    """Return the parameters (10,) of a block of 10 x 8 x 12 cm."""
    a = 0.1
    b = 0.08
    c = 0.12
    inertia = mass / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    return from_center_of_mass(mass, np.array(center), inertia)


def mujoco_torque(robot: RobotModel, motion: Motion, loads: list[tuple[float, np.ndarray | None]]) -> np.ndarray:
    """Return torques (N, n) without friction; `loads` are pairs of a time and the load carried from then on."""
    model = compile_arm(robot, 0.001)
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    data = mujoco.MjData(model)
    torque = np.empty_like(motion.q)
    waiting = list(loads)
    for k, time in enumerate(motion.time):
        while waiting and waiting[0][0] <= time:
            put_load(model, waiting.pop(0)[1])
        data.qpos[:] = motion.q[k]
        data.qvel[:] = motion.qd[k]
        data.qacc[:] = motion.qdd[k]
        mujoco.mj_inverse(model, data)
        torque[k] = data.qfrc_inverse
    return torque


def identified_model(robot: RobotModel) -> LinkModel:
    """Return the identified model of the arm."""
    effort = robot.limits.effort
    speed = robot.limits.velocity
    coefficients = np.column_stack([COULOMB * effort, VISCOUS * effort / speed]).ravel()
    return LinkModel(robot, robot.parameters, FrictionModel(JointFriction()), coefficients, LinkSignals(10.0, 10.0, ""))


def measure(
    robot: RobotModel, motion: Motion, torque: np.ndarray, rng: np.random.Generator, mismatch: float = MISMATCH
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and torques (N, n) with noise, and friction that differs from the model."""
    coefficients = identified_model(robot).coefficients * rng.uniform(1 - mismatch, 1 + mismatch, 2 * robot.n_joints)
    friction = FrictionModel(JointFriction(smoothing=SMOOTHING)).regressor(motion.qd, motion.qdd) @ coefficients
    shape = torque.shape
    return (
        motion.q + ENCODER * rng.normal(size=shape),
        torque + friction + NOISE * robot.limits.effort * rng.normal(size=shape),
    )


def measure_presliding(
    robot: RobotModel, motion: Motion, torque: np.ndarray, rng: np.random.Generator, mismatch: float = MISMATCH
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and torques like `measure`, with presliding friction.

    In motion, friction changes its direction over a short distance (Dahl's law). At standstill, friction compensates
    changes of the load up to stiction, so that the drive torque is constant.
    """
    n = robot.n_joints
    coulomb, viscous = (
        (identified_model(robot).coefficients * rng.uniform(1 - mismatch, 1 + mismatch, 2 * n)).reshape(n, 2).T
    )
    distance = np.exp(rng.uniform(*np.log(PRESLIDING), n))
    friction = np.empty_like(torque)
    friction[0] = coulomb * rng.uniform(-1, 1, n)
    step = np.diff(motion.q, axis=0)
    kept = np.exp(-np.abs(step) / distance)
    side = coulomb * np.sign(step)
    taken = np.where(step == 0.0, -np.diff(torque, axis=0), 0.0)
    for k in range(len(step)):
        state = np.clip(friction[k] + taken[k], -coulomb, coulomb)
        friction[k + 1] = side[k] + (state - side[k]) * kept[k]
    noise = NOISE * robot.limits.effort * rng.normal(size=torque.shape)
    return motion.q + ENCODER * rng.normal(size=torque.shape), torque + friction + viscous * motion.qd + noise


def standstills(motion: Motion, shortest: float = 1.0) -> list[tuple[float, float]]:
    """Return start and end in s of intervals in which no joint moves."""
    still = np.concatenate([[False], ~np.diff(motion.q, axis=0).any(axis=1), [False]])
    ends = np.flatnonzero(np.diff(still.astype(int)))
    pairs = motion.time[np.minimum(ends, len(motion.time) - 1)].reshape(-1, 2)
    return [(float(a), float(b)) for a, b in pairs if b - a > shortest]
