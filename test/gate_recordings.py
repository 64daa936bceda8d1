"""Simulate valid recordings for the sanity gate with realistic arms, friction, motions, sensors and delays.

The dynamics are those of the package, which other tests compare with Pinocchio and MuJoCo; a fraction of the recordings
uses MuJoCo's (`clean_recordings`).
"""

import itertools

import numpy as np
from clean_recordings import Case, clean_case, fourier_motion, perturb_links
from drive_friction import friction_torque
from gate_arms import CHAINS, SPLITS, gate_arm
from mujoco import FatalError
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording

MOTIONS = ("fourier", "turns", "stops", "slow", "fast")
"""Random Fourier motion; joints turned one by one with dwells; moves of all joints between poses with stops; Fourier
motion at a tenth to a quarter of the speed, and at two to three times. On request only: "small", 5 to 15 s of a Fourier
motion at a tenth to four tenths of the amplitude."""
MUJOCO = 0.15
"""Fraction of Fourier motions with MuJoCo's dynamics."""
ANGLES = 12
"""Poses of a turned joint in each direction."""


def sound_case(
    rng: np.random.Generator,
    split: str,
    motion: str | None = None,
    name: str | None = None,
    law: str | None = None,
    friction: float | None = None,
) -> Case:
    """Simulate a recording without faults, of one side of the split.

    Args:
        rng: random generator.
        split: a key of SPLITS.
        motion: one of MOTIONS, or "small".
        name: name of the arm.
        law: friction law.
        friction: Coulomb friction relative to the largest torque of each joint; None: 1 to 15 %.
    """
    side = SPLITS[split]
    motion = motion or str(rng.choice(MOTIONS, p=(0.3, 0.2, 0.2, 0.2, 0.1)))
    while True:
        chain = str(side.chains + rng.integers(1000))
        chosen = name or (chain if rng.random() < CHAINS else str(rng.choice(side.arms)))
        if motion == "fourier" and law is None and friction is None and rng.random() < MUJOCO:
            try:
                return clean_case(rng, chosen, find=gate_arm)
            except (ModelError, FatalError, ValueError, AttributeError):  # no URDF, or a link without mass
                continue
        robot = gate_arm(chosen)
        if np.any(robot.parameters[::10] <= 0.0) and chosen.isdigit():
            continue
        law_drawn = law or str(rng.choice(side.laws))
        return _recorded(chosen, robot, motion, law_drawn, friction, rng)


def _motion(robot: RobotModel, motion: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return times (N,), positions with derivatives (3, N, n), and the highest frequency in Hz."""
    if motion == "fourier":
        return fourier_motion(robot, rng)
    if motion == "small":
        time, (q, qd, qdd), bandwidth = fourier_motion(robot, rng)
        part = rng.uniform(0.1, 0.4)
        short = time < rng.uniform(5.0, 15.0)
        small = np.array([part * q + (1.0 - part) * q.mean(axis=0), part * qd, part * qdd])
        return time[short], small[:, short], bandwidth
    if motion in ("slow", "fast"):
        time, (q, _, _), bandwidth = fourier_motion(robot, rng)
        slower = rng.uniform(4.0, 10.0) if motion == "slow" else 1 / rng.uniform(2.0, 3.0)
        rate = rng.choice((50, 100, 125, 250) if motion == "slow" else (125, 200, 250, 500))
        even = np.arange(0.0, min(40.0, slower * time[-1]), 1 / rate)
        spline = CubicSpline(time, q)
        return even, np.array([spline(even / slower, d) / slower**d for d in (0, 1, 2)]), bandwidth / slower
    return _moves(robot, motion, rng)


def _moves(robot: RobotModel, motion: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Return minimum-jerk moves with dwells, like `_motion`."""
    n = robot.n_joints
    prismatic = robot.chain.prismatic
    reach = np.where(prismatic, 0.4, 2.5)
    middle = np.clip(0.0, robot.limits.lower, robot.limits.upper)
    lower = np.maximum(robot.limits.lower, middle - reach)
    upper = np.minimum(robot.limits.upper, middle + reach)
    start = lower + (upper - lower) * rng.uniform(0.2, 0.8, n)
    poses = [start]
    if motion == "turns":
        for j in rng.permutation(n) if rng.random() < 0.3 else range(n):
            low, high = np.sort(rng.uniform([0.0, 0.6], [0.3, 1.0]))
            angles = lower[j] + (upper[j] - lower[j]) * np.linspace(low, high, ANGLES)
            for angle in [*angles, *angles[::-1], start[j]]:
                pose = poses[-1].copy()
                pose[j] = angle
                poses.append(pose)
        dwell = rng.uniform(0.15, 0.6)
    else:
        poses += [lower + (upper - lower) * rng.uniform(0.05, 0.95, n) for _ in range(rng.integers(8, 20))]
        dwell = rng.uniform(0.2, 1.0)
    speed = np.minimum(robot.limits.velocity, np.where(prismatic, 0.4, 1.5)) * rng.uniform(0.4, 0.8)
    step = 1 / rng.choice((100, 125, 250))
    pieces = []
    for before, after in itertools.pairwise(poses):
        change = after - before
        duration = max(0.3, float(np.max(1.875 * np.abs(change) / speed)))
        if motion == "turns":
            duration = min(duration, 1.5)
        s = np.arange(step, duration, step)[:, None] / duration
        shape = 10 * s**3 - 15 * s**4 + 6 * s**5
        rate = 30 * (s**2 - 2 * s**3 + s**4)
        curve = 60 * s - 180 * s**2 + 120 * s**3
        pieces.append(np.array([before + change * shape, change * rate / duration, change * curve / duration**2]))
        pieces.append(np.array([np.tile(v, (max(1, int(dwell / step)), 1)) for v in (after, 0 * after, 0 * after)]))
    joined = np.concatenate(pieces, axis=1)
    return step * np.arange(joined.shape[1]), joined, 1.0


def _recorded(
    name: str, robot: RobotModel, motion: str, law: str, friction: float | None, rng: np.random.Generator
) -> Case:
    n = robot.n_joints
    time, (q, qd, qdd), bandwidth = _motion(robot, motion, rng)
    rotor = np.array([0.2 * robot.parameters.reshape(-1, 10)[j:, [4, 7, 9]].sum() for j in range(n)])
    rigid = robot.inverse_dynamics(q, qd, qdd)
    largest = np.maximum(np.abs(rigid).max(axis=0), 0.03 * np.abs(rigid).max())
    level = largest * (rng.uniform(0.01, 0.15, n) if friction is None else friction)
    braking = friction_torque(law, time, q, qd, rigid, level, rng)
    torque = rigid + rng.uniform(0.0, 0.5, n) * rotor * qdd * (rng.random() < 0.7) + braking
    torque = torque * (1 + rng.uniform(-0.02, 0.02, n)) + largest * rng.uniform(-0.05, 0.05, n)
    recording = _measured(robot, time, q, qd, torque, largest, rng)
    gravity = robot.gravity_torque(q) * (1 + rng.uniform(-0.1, 0.1, n))
    source = f"{name} {motion} {law}"
    return Case(
        name,
        perturb_links(robot, rng),
        Recording(robot.joint_names, *recording, source=source),
        np.abs(braking).mean(axis=0),
        gravity,
        bandwidth,
        motion=motion,
        rigid=rigid,
    )


def _measured(robot, time, q, qd, torque, largest, rng) -> tuple[np.ndarray, ...]:
    """Return time, position, velocity and torque with noise, quantization, stamp jitter and latencies up to 8 ms."""
    step = time[1]
    late = rng.uniform(0.0, 0.004)
    torque = np.column_stack([np.interp(time - late, time, column) for column in torque.T])
    if rng.random() < 0.4:  # first-order filter of the driver
        corner = rng.uniform(40.0, 150.0)
        keep = np.exp(-2 * np.pi * corner * step)
        torque = lfilter([1 - keep], [1, -keep], torque, axis=0, zi=keep * torque[:1])[0]
    torque = torque + largest * rng.uniform(0.001, 0.01, q.shape[1]) * rng.standard_normal(q.shape)
    if rng.random() < 0.4:
        quantum = largest * rng.uniform(1e-4, 5e-3)
        torque = np.round(torque / quantum) * quantum
    count = 2 * np.pi / 2 ** rng.integers(14, 21)
    position = np.round((q + rng.normal(0, rng.choice([0.0, 1e-6, 2e-5]), q.shape)) / count) * count
    behind = np.column_stack([np.interp(time - rng.uniform(0.0, 0.01), time, column) for column in qd.T])
    velocity = behind + rng.normal(0, 0.003, q.shape) if rng.random() < 0.7 else np.full_like(q, np.nan)
    stamps = time + rng.uniform(0, 0.2 * step * (rng.random() < 0.5), len(time))
    return stamps - stamps[0], position, velocity, torque
