"""Provide arms with torques by Pinocchio and by explicit friction, on analytic motion."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.identification.equations import EquationBlock, Equations
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import from_center_of_mass, inertial_parameters, pseudo_inertia, transformed
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording

KINDS = 10
PLAIN = JointFriction(offset=True, smoothing=0.02)
"""Friction model of `Drive`."""


@dataclass(frozen=True)
class Drive:
    """Friction and rotor of every joint, in SI units; `backward` is the factor of Coulomb friction for qd < 0."""

    coulomb: float = 1.0
    viscous: float = 0.5
    offset: float = 0.2
    rotor: float = 0.0
    stribeck: float = 0.0
    stribeck_velocity: float = 0.3
    backward: float = 1.0
    smoothing: float = 0.02

    def torque(self, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        direction = np.tanh(qd / self.smoothing)
        coulomb = self.coulomb * np.where(qd < 0, self.backward, 1.0)
        stribeck = self.stribeck * np.exp(-((qd / self.stribeck_velocity) ** 2))
        return (coulomb + stribeck) * direction + self.viscous * qd + self.offset + self.rotor * qdd


class Fourier:
    """Sum of harmonics with analytic derivatives.

    Args:
        n: number of joints.
        seed: seed of amplitudes and phases.
        base: lowest frequency in Hz.
        harmonics: number of harmonics.
        size: amplitude of the lowest frequency in rad or m.
        still: joints that do not move.
    """

    def __init__(self, n: int, seed: int = 0, base: float = 0.1, harmonics: int = 5, size: float = 1.0, still=()):
        rng = np.random.default_rng(seed)
        self.frequency = 2 * np.pi * base * np.arange(1, harmonics + 1)
        self.amplitude = size * rng.uniform(0.4, 1.0, (harmonics, n)) / np.arange(1, harmonics + 1)[:, None] ** 0.7
        self.phase = rng.uniform(0, 2 * np.pi, (harmonics, n))
        self.middle = rng.uniform(-0.5, 0.5, n)
        self.amplitude[:, list(still)] = 0.0

    def __call__(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle = self.frequency[:, None] * np.asarray(time)[:, None, None] + self.phase
        rate = self.frequency[:, None]
        q = self.middle + np.sum(self.amplitude * np.sin(angle), axis=1)
        qd = np.sum(self.amplitude * rate * np.cos(angle), axis=1)
        return q, qd, -np.sum(self.amplitude * rate**2 * np.sin(angle), axis=1)


@cache
def chain() -> RobotModel:
    """Return three joints with random axes and placements, the second one prismatic."""
    robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(5), 3, prismatic_share=0.4), tip=TIP)
    assert robot.joint_types == ["revolute", "prismatic", "revolute"]
    return robot


@cache
def ur10() -> RobotModel:
    return RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"), tip="wrist_3_link")


def with_links(robot: RobotModel, links: np.ndarray) -> RobotModel:
    """Return the arm with other link parameters (10 n,)."""
    return RobotModel(robot.chain, links, robot.gravity, robot.urdf)


def distort(robot: RobotModel, size: float = 0.3, seed: int = 1) -> RobotModel:
    """Return the arm with consistent links, stretched by up to `size` in each direction and proportionally heavier."""
    rng = np.random.default_rng(seed)
    matrices = pseudo_inertia(robot.parameters.reshape(-1, 10))
    stretch = np.array([np.diag(rng.uniform(1 - size, 1 + size, 4)) for _ in matrices])
    return with_links(robot, inertial_parameters(stretch @ matrices @ stretch).ravel())


def rigid_torque(robot: RobotModel, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Return the torque (N, n) by Pinocchio."""
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    return np.array([arm.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])


def record(
    robot: RobotModel,
    motion: Fourier,
    drive: Drive = Drive(),
    *,
    duration: float = 20.0,
    rate: float = 100.0,
    noise: float = 0.05,
    position_noise: float = 0.0,
    seed: int = 0,
    time: np.ndarray | None = None,
) -> Recording:
    """Simulate a recording with the links of the URDF and white noise in N m and rad."""
    time = np.arange(0, duration, 1 / rate) if time is None else time
    rng = np.random.default_rng(seed)
    q, qd, qdd = motion(time)
    torque = rigid_torque(robot, q, qd, qdd) + drive.torque(qd, qdd)
    torque += noise * rng.normal(size=q.shape)
    q = q + position_noise * rng.normal(size=q.shape)
    return Recording(robot.joint_names, time, q, np.full_like(q, np.nan), torque, source=f"run_{seed}")


@cache
def run(robot, seed=0, drive=Drive(), **arguments):
    motion = Fourier(robot.n_joints, seed, size=0.6, still=arguments.pop("still", ()))
    return record(robot, motion, drive, seed=seed, **arguments)


class DenseEquations(Equations):
    """Random equations of recordings in memory, for comparison with compressed ones.

    Args:
        columns: columns of the rows.
        sizes: number of samples of each recording.
        seed: seed of the random numbers.
        noise: (n,) standard deviation of each joint.
        fast: fraction of fast samples.
    """

    def __init__(self, columns: LinkColumns, sizes=(400,), seed: int = 0, noise=0.1, fast: float = 0.4):
        rng = np.random.default_rng(seed)
        n = len(columns.of_joint)
        total = sum(sizes)
        self.columns = columns
        self.sizes = np.array(sizes)
        self.spans = [(0.0, 10.0)] * len(sizes)
        self.time = np.concatenate([np.linspace(0, 10, size) for size in sizes])
        self.owner = np.repeat(np.arange(len(sizes)), sizes)
        self.speed = rng.random(total)
        self.kind = np.arange(total) * KINDS // total
        self.fast = float(np.quantile(self.speed, 1 - fast)) if fast else np.inf
        self.rows = [rng.normal(size=(total, len(own))) * rng.uniform(0.5, 5, len(own)) for own in columns.of_joint]
        self.solution = rng.normal(size=columns.size)
        self.torque = np.stack(
            [rows @ self.solution[own] for rows, own in zip(self.rows, columns.of_joint, strict=True)], axis=1
        )
        self.torque += np.asarray(noise) * rng.normal(size=(total, n))

    def blocks(self, columns: LinkColumns):
        for part in np.array_split(np.arange(len(self.time)), 7):
            for recording in np.unique(self.owner[part]):
                own = part[self.owner[part] == recording]
                rows = [matrix[own] for matrix in self.rows]
                block = self.time[own], self.speed[own], self.kind[own], rows, self.torque[own]
                yield EquationBlock(int(recording), *block)

    def dense(self, chosen: np.ndarray, samples=slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Return matrix (N, n, k) for chosen columns, and torque (N, n)."""
        matrix = np.zeros((*self.torque.shape, self.columns.size))
        for j, own in enumerate(self.columns.of_joint):
            matrix[:, j, own] = self.rows[j]
        return matrix[samples][..., chosen], self.torque[samples]


def couple_joints(recording: Recording, pair: tuple[int, int], seed: int = 0, sense: float = 1.0) -> Recording:
    """Return a `run` of this seed with a motor shared by two joints, like the wrist of a Stäubli arm.

    Its rotor moves with the sum of both motions, or with sense -1 their difference: 0.4 kg m², 0.3 N m s/rad, 1 N m.
    """
    _, qd, qdd = Fourier(recording.position.shape[1], seed, size=0.6)(recording.time)
    i, j = pair
    extra = np.zeros_like(qd)
    extra[:, [i, j]] = sense * (0.4 * qdd[:, [j, i]] + 0.3 * qd[:, [j, i]])
    extra[:, [i, j]] += np.tanh((qd[:, i] + sense * qd[:, j])[:, None] / 0.02) * [1.0, sense]
    return replace(recording, torque=recording.torque + extra)


MASS = 0.8
LOAD = from_center_of_mass(MASS, np.array([0.02, 0.05, 0.08]), 0.001 * np.eye(3))
"""Parameters of the load in `loaded_torque`."""


def loaded_torque(robot: RobotModel, recording: Recording, body: np.ndarray = LOAD) -> np.ndarray:
    """Return the torques (N, n) that a load at the tip adds to a recording by `run`."""
    motion = Fourier(robot.n_joints, int(recording.source[-1]), size=0.6)(recording.time)
    load = np.zeros_like(robot.parameters)
    load[robot.tip_columns] = transformed(body, robot.tip_offset)
    return robot.inverse_dynamics(*motion, load)
