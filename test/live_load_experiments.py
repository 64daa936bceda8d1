"""Simulate experiments on confidence intervals of an online load estimate, with presliding and sensor errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from clean_recordings import EXAMPLES, arm as clean_arm, fix_other_joints
from coverage_experiments import coloured_noise, fourier_motion, record, torque_scale
from load_experiments import SIZE
from online_experiment import moves
from pinocchio_arm import example_urdf

from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, SimulatedArm
from dynid_ros.simulation.descriptions import misjudged_urdf

JUDGED = {
    "tiago_pro": ("tiago_pro_description/robots/tiago_pro.urdf", "arm_left_tool_link", "torso_lift_link"),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "left_rubber_hand", "torso_link"),
}
"""Arms for the evaluation of coverage, not used for development."""
LOAD = (0.15, 0.45)
"""Mass of the load relative to the arm's, at most 3 kg."""
HEAVIEST = 3.0
REACH = 0.1
UNLOADED = 24.0
RATE = 100.0
GAIN_ERROR, NOISE = 0.01, (0.005, 0.02)
"""Relative gain errors; range of sample noise relative to the largest torque."""
PRESLIDING = (2e-4, 3e-3)
"""Range of presliding distances in rad."""
MISJUDGED = 0.2


@dataclass(frozen=True)
class LiveExperiment:
    """Recordings of an arm alone and with a load, with an inexact URDF.

    Attributes:
        robot: inexact model of the user.
        unloaded: recording of the arm alone.
        loaded: recording for the online estimate.
        load: (10,) true parameters about the tip's frame.
    """

    robot: RobotModel
    unloaded: Recording
    loaded: Recording
    load: np.ndarray


@cache
def arm(name: str) -> RobotModel:
    """Return one of JUDGED or of `clean_recordings` with joints outside the chain fixed."""
    if name not in JUDGED:
        return clean_arm(name)
    path, tip, base = JUDGED[name]
    return fix_other_joints(RobotModel.from_urdf(example_urdf(path), tip=tip, base=base), tip, base)


def direction_of(q: np.ndarray, distance: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return Dahl friction (N, n) relative to Coulomb friction, which is constant at standstill.

    Args:
        q: (N, n) positions.
        distance: (n,) presliding distance (1/e).
        start: (n,) friction at the first sample.
    """
    direction = np.empty_like(q)
    direction[0] = start
    step = np.diff(q, axis=0)
    decay = np.exp(-np.abs(step) / distance)
    sign = np.sign(step)
    for k in range(len(step)):
        direction[k + 1] = sign[k] + (direction[k] - sign[k]) * decay[k]
    return direction


def friction(
    q: np.ndarray, qd: np.ndarray, load_torque: np.ndarray, scale: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return friction torques (N, n) with Dahl's presliding and terms that Coulomb and viscous friction lack.

    These are a Stribeck term, a ripple over the position, asymmetry, friction that grows with the torque `load_torque`
    (N, n), and viscous friction that grows less than the speed.
    """
    n = len(scale)
    coulomb = scale * rng.uniform(0.02, 0.06, n)
    viscous = scale * rng.uniform(0.01, 0.04, n)
    direction = direction_of(q, np.exp(rng.uniform(*np.log(PRESLIDING), n)), rng.uniform(-1, 1, n))
    stribeck = rng.uniform(0.0, 0.3, n) * np.exp(-((qd / rng.uniform(0.03, 0.15, n)) ** 2))
    ripple = rng.uniform(0.0, 0.1, n) * np.sin(rng.integers(1, 9, n) * q + rng.uniform(0, 2 * np.pi, n))
    asymmetry = rng.uniform(-0.1, 0.1, n) * direction
    by_torque = rng.uniform(0.0, 0.02, n) * np.abs(load_torque)
    thinning = (np.abs(qd) / 2.0 + 1e-9) ** (-0.3 * rng.uniform(0.0, 1.0, n))
    return (coulomb * (1 + stribeck + ripple + asymmetry) + by_torque) * direction + viscous * thinning * qd


def draw_live(name: str, duration: float, seed: int, rate: float = RATE) -> LiveExperiment:
    """Draw an experiment; odd seeds repeat a periodic motion, even ones move from pose to pose and dwell."""
    rng = np.random.default_rng([17, seed])
    robot = arm(name)
    n = robot.n_joints
    simulated = SimulatedArm(robot, drives=Drives(0.0, 0.0))
    load = block(min(robot.parameters[::10].sum(), HEAVIEST / LOAD[1]) * rng.uniform(*LOAD), rng)
    gains = 1 + GAIN_ERROR * rng.standard_normal(n)
    friction_seed = rng.integers(2**31)
    noise = rng.uniform(*NOISE, n)
    offset = rng.uniform(-0.03, 0.03, n)
    recordings = []
    scale = None
    for source, length, body in (("unloaded", UNLOADED, None), ("loaded", duration, load)):
        time = np.arange(0.0, length, 1 / rate)
        if body is None:
            simulated.detach_load()
            motion = fourier_motion(robot, time, 2 / UNLOADED, rng)
        else:
            simulated.attach_load(body)
            if seed % 2:
                motion = fourier_motion(robot, time, 1 / rng.uniform(5.0, 10.0), rng)
            else:
                motion = np.array(moves(robot, length, rate, rng, rng.uniform(0.4, 0.8))[1:])
        torque = simulated.truth.drive_torque(*motion)
        if scale is None:
            scale = torque_scale(torque)
        # equal friction in both recordings apart from its dependence on the load
        torque = torque + friction(*motion[:2], torque, scale, np.random.default_rng(friction_seed))
        torque = gains * torque + scale * (offset + noise * coloured_noise(torque.shape, 0.0, rng))
        recordings.append(record(robot, time, motion[0], torque, source, rng))
    inexact = RobotModel.from_urdf(misjudged_urdf(robot, MISJUDGED, rng), tip=robot.tip, base=_base(name))
    return LiveExperiment(inexact, *recordings, load)


LONGEST_BURST_S = 0.02
LONGEST_OUTAGE_S = 0.3
"""Duration of one long gap in each recording with losses."""
STAMP_JITTER = 0.1
"""Standard deviation of the stamps relative to the period."""


def lose_samples(recording: Recording, loss: float, seed: int) -> Recording:
    """Remove samples, half of them singly and half in bursts, and once for longer; add jitter to the stamps."""
    if not loss:
        return recording
    rng = np.random.default_rng([29, seed])
    count = len(recording.time)
    step = float(np.median(np.diff(recording.time)))
    lost = rng.random(count) < loss / 2
    longest = max(2, round(LONGEST_BURST_S / step))
    for start in np.flatnonzero(rng.random(count) < loss / (2 + longest)):
        lost[start : start + rng.integers(2, longest + 1)] = True
    start = rng.integers(count // 4, count // 2)
    lost[start : start + round(LONGEST_OUTAGE_S / step)] = True
    jittered = recording.time + STAMP_JITTER * step * rng.standard_normal(count)
    selected = np.flatnonzero(~lost)
    selected = selected[np.diff(np.maximum.accumulate(jittered[selected]), prepend=-np.inf) > 0]
    return Recording(
        recording.joint_names,
        jittered[selected],
        recording.position[selected],
        recording.velocity[selected],
        recording.torque[selected],
        source=recording.source,
    )


def _base(name: str) -> str | None:
    return JUDGED[name][2] if name in JUDGED else None


def block(mass: float, rng: np.random.Generator) -> np.ndarray:
    """Return the parameters (10,) of a randomly oriented block about the flange."""
    edges = rng.uniform(*SIZE, 3)
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    inertia = axes @ np.diag(mass / 12 * (np.sum(edges**2) - edges**2)) @ axes.T
    return from_center_of_mass(mass, rng.uniform(-REACH, REACH, 3) + np.array([0.0, 0.0, REACH]), inertia)


__all__ = ["EXAMPLES", "JUDGED", "LiveExperiment", "arm", "block", "direction_of", "draw_live", "lose_samples"]
