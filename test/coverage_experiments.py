"""Simulate experiments on confidence intervals of link identification by MuJoCo, with realistic drives and sensors.

Each draw has another motion, friction, noise and gain error.
"""

from dataclasses import dataclass, replace

import numpy as np
from clean_recordings import arm
from scipy.signal import lfilter

from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, SimulatedArm

RATES = (100, 125, 200, 250)
HARMONICS = 5
PERIODS = (1.0, 4.0)
SPEED = 2.0
"""Highest speed of a joint in rad/s."""
NOISE = (0.01, 0.02)
"""Range of the noise of torque sensors as a fraction of a joint's largest torque."""
ENCODER = 1e-5
MIN_STAMP_STEP = 1e-6
"""Smallest step of noisy stamps in s."""
MIN_SHARE = 1e-9
"""Largest rounding error of a regressor's entries."""
ENCODER_STEP = 2 * np.pi / 2**19


@dataclass(frozen=True)
class Conditions:
    """Common conditions of experiments.

    Attributes:
        arm: one of `clean_recordings.ARMS`.
        duration: duration in s, one to four periods of the motion.
        correlation: correlation time (1/e) of the torque noise in s; 0 is white noise.
        mismatch: scale of the friction that Coulomb, viscous and offset terms do not describe.
        gain_error: standard deviation of the relative error of each torque sensor's gain.
        rotors: inertias of the rotors relative to those of the links at zero.
        rate: sampling rate in Hz; None: one of RATES.
        noise: noise of the torque sensors relative to NOISE.
    """

    arm: str = "ur10"
    duration: float = 25.0
    correlation: float = 0.05
    mismatch: float = 1.0
    gain_error: float = 0.01
    rotors: float = 0.0
    rate: float | None = None
    noise: float = 1.0

    @property
    def friction(self) -> JointFriction:
        """Return the fitted friction terms."""
        return JointFriction(offset=True, rotor_inertia=self.rotors > 0, smoothing=0.02)


@dataclass(frozen=True)
class Experiment:
    """Recording with true values.

    Attributes:
        robot: configured model.
        recording: recording of one run.
        links: (10 n,) link parameters.
        rotors: (n,) rotor inertias in kg m².
        motion: (3, N, n) position with its two derivatives.
        torque: (N, n) torque of the links in N m.
        noise: (n,) standard deviation of torque noise in N m.
    """

    robot: RobotModel
    recording: Recording
    links: np.ndarray
    rotors: np.ndarray
    motion: np.ndarray
    torque: np.ndarray
    noise: np.ndarray

    def truth(self, base: BaseParameters) -> np.ndarray:
        """Return true base parameters (k,), NaN for those with friction terms, which have no true value."""
        true_rotors = dict(zip([f"rotor_inertia {name}" for name in self.robot.joint_names], self.rotors, strict=True))
        coefficients = [true_rotors.get(name, np.nan) for name in base.names[len(self.links) :]]
        values = np.concatenate([self.links, coefficients])
        unknown = np.isnan(values)
        mixed = np.any(base.combinations[:, unknown] != 0, axis=1)
        return np.where(mixed, np.nan, base.project(np.nan_to_num(values)))


def gravity_estimate(links: LinkResult, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return gravity (M, n) by the base parameters in poses (M, n), its standard errors and degrees of freedom.

    The degrees of freedom are the fewest of the parameters involved.
    """
    estimate = links.base_parameters
    regressor = links.robot.gravity_regressor(poses)
    columns = np.asarray(links.base.columns)
    inertial = columns < regressor.shape[2]
    shares = np.zeros((*regressor.shape[:2], len(columns)))
    shares[:, :, inertial] = regressor[:, :, columns[inertial]]
    error = np.sqrt(np.einsum("mjk,kl,mjl->mj", shares, estimate.covariance, shares))
    dof = np.where(np.abs(shares) > MIN_SHARE, estimate.dof, np.inf).min(axis=2)
    return shares @ estimate.values, error, dof


def draw(conditions: Conditions, rng: np.random.Generator, gravity: np.ndarray | None = None) -> Experiment:
    """Return an experiment with gravity (3,) if given; the robot model has gravity along -z."""
    configured = arm(conditions.arm)
    robot = configured if gravity is None else configured.with_gravity(gravity)
    n = robot.n_joints
    rate = conditions.rate or float(rng.choice(RATES))
    time = np.arange(0.0, conditions.duration, 1 / rate)
    motion = fourier_motion(robot, time, rng.uniform(*PERIODS) / conditions.duration, rng)
    q, qd, qdd = motion
    rotors = conditions.rotors * rng.uniform(0.5, 1.5, n) * link_inertia(robot)
    truth = SimulatedArm(robot, drives=Drives(0.0, 0.0, rotors)).truth
    links = truth.drive_torque(q, qd, qdd)
    scale = torque_scale(links)
    torque = links + friction(q, qd, links, scale, conditions.mismatch, rng)
    torque *= 1 + conditions.gain_error * rng.standard_normal(n)
    torque += scale * rng.uniform(-0.05, 0.05, n)
    noise = conditions.noise * scale * rng.uniform(*NOISE, n)
    torque += noise * coloured_noise(q.shape, conditions.correlation * rate, rng)
    recording = record(robot, time, q, torque, conditions.arm, rng)
    return Experiment(configured, recording, truth.parameters, rotors, motion, links, noise)


def link_inertia(robot: RobotModel) -> np.ndarray:
    """Return the inertia (n,) of the links about each joint at zero, in kg m²."""
    rest = np.zeros((robot.n_joints, robot.n_joints))
    truth = SimulatedArm(robot, drives=Drives(0.0, 0.0)).truth
    return np.diag(truth.drive_torque(rest, rest, np.eye(robot.n_joints)) - truth.gravity_torque(rest))


def torque_scale(torque: np.ndarray) -> np.ndarray:
    """Return the largest torque (n,) of each joint, at least 5 % of the arm's largest."""
    scale = np.abs(torque).max(axis=0)
    return np.maximum(scale, 0.05 * scale.max())


def record(
    robot: RobotModel, time: np.ndarray, position: np.ndarray, torque: np.ndarray, source: str, rng: np.random.Generator
) -> Recording:
    """Return a recording with encoder noise and without velocities."""
    measured = np.round((position + rng.normal(0, ENCODER, position.shape)) / ENCODER_STEP) * ENCODER_STEP
    return Recording(robot.joint_names, time, measured, np.full_like(measured, np.nan), torque, source=source)


def fourier_motion(robot: RobotModel, time: np.ndarray, base: float, rng: np.random.Generator) -> np.ndarray:
    """Return position with two derivatives (3, N, n): random harmonics of `base` in Hz within the limits."""
    n = robot.n_joints
    number = np.arange(1, HARMONICS + 1)
    rate = 2 * np.pi * base * number
    amplitude = rng.normal(size=(HARMONICS, n)) / np.sqrt(number)[:, None]
    angle = np.multiply.outer(time, rate)[:, :, None] + rng.uniform(0, 2 * np.pi, (HARMONICS, n))
    motion = np.array(
        [np.sum(amplitude * np.sin(angle + d * np.pi / 2) * rate[:, None] ** d, axis=1) for d in range(3)]
    )
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.minimum(robot.limits.upper, np.pi)
    reach = rng.uniform(0.6, 0.95, n) * (upper - lower) / np.ptp(motion[0], axis=0)
    speed = 0.9 * np.minimum(robot.limits.velocity, SPEED) / np.abs(motion[1]).max(axis=0)
    motion *= np.minimum(reach, speed)
    room = upper - lower - np.ptp(motion[0], axis=0)
    motion[0] += lower - motion[0].min(axis=0) + room * rng.uniform(0.0, 1.0, n)
    return motion


def friction(
    q: np.ndarray, qd: np.ndarray, load: np.ndarray, size: np.ndarray, mismatch: float, rng: np.random.Generator
) -> np.ndarray:
    """Return friction torques (N, n) of gears for torques of the links (N, n) of up to `scale` (n,).

    `mismatch` scales terms beyond Coulomb and viscous friction: a Stribeck term, a ripple over the position, asymmetry,
    dependence on the load, and viscous friction that grows less than the speed.
    """
    n = len(size)
    coulomb = size * rng.uniform(0.05, 0.2, n)
    viscous = size * rng.uniform(0.02, 0.1, n)
    direction = np.tanh(qd / rng.uniform(0.005, 0.02, n))
    stribeck = rng.uniform(0.0, 0.3, n) * np.exp(-((qd / rng.uniform(0.03, 0.15, n)) ** 2))
    ripple = rng.uniform(0.0, 0.1, n) * np.sin(rng.integers(1, 9, n) * q + rng.uniform(0, 2 * np.pi, n))
    asymmetry = rng.uniform(-0.1, 0.1, n) * direction
    loaded = mismatch * rng.uniform(0.0, 0.04, n) * np.abs(load)
    thinning = (np.abs(qd) / SPEED + 1e-9) ** (-0.3 * mismatch * rng.uniform(0.0, 1.0, n))
    return (coulomb * (1 + mismatch * (stribeck + ripple + asymmetry)) + loaded) * direction + viscous * thinning * qd


def coloured_noise(shape: tuple[int, int], correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Return noise (N, n) of unit variance with this correlation time (1/e) in samples."""
    keep = np.exp(-1 / correlation) if correlation > 0 else 0.0
    white = rng.standard_normal(shape)
    white[1:] *= np.sqrt(1 - keep**2)
    return lfilter([1.0], [1.0, -keep], white, axis=0)


def add_stamp_noise(recording: Recording, kind: str, jitter: float, loss: float, rng: np.random.Generator) -> Recording:
    """Return the recording with noisy stamps and without lost samples; no sample overtakes another.

    Args:
        recording: samples with exact stamps.
        kind: "delay": exponential delays; "normal": normal noise; "bursts": half of the losses in rows of 2 to 11.
        jitter: standard deviation of the noise in s.
        loss: fraction of lost samples.
        rng: random generator.
    """
    n = recording.n_samples
    lost = rng.random(n) < (loss / 2 if kind == "bursts" else loss)
    if kind == "bursts":
        for first in np.flatnonzero(rng.random(n) < loss / 2 / 6.5):
            lost[first : first + rng.integers(2, 12)] = True
    selected = recording.slice(~lost)
    noise = rng.exponential(size=selected.n_samples) if kind == "delay" else rng.standard_normal(selected.n_samples)
    stamps = np.maximum.accumulate(selected.time + jitter * noise) + MIN_STAMP_STEP * np.arange(selected.n_samples)
    return replace(selected, time=stamps - stamps[0])
