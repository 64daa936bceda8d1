"""Simulate short static experiments on torque sensors of the demo arm: torques by MuJoCo, a few dwells per joint."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks import torque_sensors as benchmark
from dynid_ros.identification.static_samples import Samples
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import demo_arm_urdf

STEPS = 6
MASS, CENTER, GRAVITY = benchmark.MASS, benchmark.CENTER, benchmark.ASLANT
"""Reference mass, its center, and a gravity that also loads joint 1."""
UPRIGHT = (0.0, 0.0, -9.80665)


@dataclass(frozen=True)
class Truth:
    """True sensor errors of one arm: reading = torque / gain + offset + Coulomb friction / gain + noise."""

    gain: np.ndarray
    offset: np.ndarray
    coulomb: np.ndarray
    noise: np.ndarray
    position_gain: np.ndarray
    position_offset: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, robot: RobotModel, positions: bool = False) -> "Truth":
        """Draw gain errors of ±10 %, offsets of ±5 % of the range, and noise of a dwell's mean of 0.07 % of it."""
        n = robot.n_joints
        range_ = robot.limits.effort
        return cls(
            1 / (1 + rng.choice([-0.1, 0.1], n)),
            rng.choice([-0.05, 0.05], n) * range_,
            0.02 * range_,
            0.0007 * range_,
            1 + positions * rng.uniform(-0.01, 0.01, n),
            positions * rng.uniform(-0.05, 0.05, n),
        )


def sound(truth: Truth) -> Truth:
    """Return the arm with ideal sensors."""
    ones = np.ones_like(truth.gain)
    zeros = np.zeros_like(truth.gain)
    return replace(truth, gain=ones, offset=zeros, position_gain=ones, position_offset=zeros)


@cache
def aslant_robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf(), gravity=GRAVITY)


_statics = cache(benchmark.statics)


def experiment(
    truth: Truth,
    rng: np.random.Generator,
    *,
    holds: int = 2,
    loaded: bool = True,
    gravity: tuple[float, ...] = GRAVITY,
    joints: tuple[int, ...] | None = None,
) -> tuple[Samples, np.ndarray]:
    """Return samples and a mask of those with the mass."""
    _, q, direction, plain, carrying = _statics(holds, STEPS, tuple(gravity), joints)
    torque = np.vstack([plain, carrying]) if loaded else plain
    times = 2 if loaded else 1
    q = np.tile(q, (times, 1))
    direction = np.tile(direction, (times, 1))
    readings = (torque + truth.coulomb * direction) / truth.gain + truth.offset
    part = np.repeat(np.arange(times), len(plain))
    readings += rng.normal(0.0, 1.0, q.shape) * truth.noise
    samples = benchmark.dwells((q - truth.position_offset) / truth.position_gain, readings, direction)
    return replace(samples, part=part), part == 1


def recording(
    truth: Truth, rng: np.random.Generator, *, loaded: bool = False, gravity: tuple[float, ...] = GRAVITY
) -> Recording:
    """Return the experiment as a recording at 100 Hz with short moves and rests of half a second.

    Torques during moves are those of the next rest, because they are not used.
    """
    _, q, direction, plain, carrying = _statics(1, STEPS, tuple(gravity))
    torque = ((carrying if loaded else plain) + truth.coulomb * direction) / truth.gain + truth.offset
    move = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0, 1, 20))[:, None]
    path = []
    readings = []
    last = q[0]
    for pose, side, reading in zip(q, direction, torque, strict=True):
        before = pose - 0.05 * side
        path += [last + move * (before - last), before + move * (pose - before), np.tile(pose, (50, 1))]
        readings.append(np.tile(reading, (90, 1)))
        last = pose
    position = (np.vstack(path) - truth.position_offset) / truth.position_gain
    noise = rng.normal(0, 1, position.shape) * truth.noise * np.sqrt(30)
    return Recording(
        tuple(f"joint_{j}" for j in range(1, 7)),
        0.01 * np.arange(len(position)),
        position,
        np.full_like(position, np.nan),
        np.vstack(readings) + noise,
        source="static bench",
    )


@cache
def upright_robot():
    return RobotModel.from_urdf(demo_arm_urdf())
