"""Values that no arm of this kind can have: wrong units, wild torques, jumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.recording.finding import Finding
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

ABSURD: Final = "absurd value"
TOLERANCE = 0.1
"""How far positions may pass the limits of the URDF, rad or m."""
FAR = np.pi
"""So far beyond them they are something else than rad or m, …"""
WILD_SPEED = 50.0
"""… and if they change so fast, rad/s or m/s, by more than JUMP from one sample to the next."""
JUMP = 0.1
FASTEST, STRETCH = 25.0, 0.1
"""Speed over a stretch of time, s, that no joint of an arm has, rad/s or m/s: positions in degrees, where a joint has
no limits that tell."""
GLITCH = 5
"""Most samples that a glitch of an encoder lasts."""
WILD_TORQUE = 100.0
"""Torque in parts of the arm's weight at its full length: three orders above what arms have."""


def check_values(recording: Recording, robot: RobotModel) -> Iterator[Finding]:
    """Positions outside the limits or in another unit, jumps, torques far above what the arm could weigh."""
    low, high = recording.position.min(axis=0), recording.position.max(axis=0)
    beyond = np.maximum(robot.limits.lower - low, high - robot.limits.upper)
    jumps = _jumps(recording)
    fastest = _fastest(recording)
    largest = WILD_TORQUE * _torque_scale(robot)
    for j, joint in enumerate(recording.joint_names):
        where = f"{recording.source}, joint '{joint}'"
        if jumps[:, j].any():
            first = int(np.argmax(jumps[:, j]))
            yield Finding(
                "error",
                where,
                f"its position jumps {np.sum(jumps[:, j])} times, first from {recording.position[first, j]:.4g} to "
                f"{recording.position[first + 1, j]:.4g} at t = {recording.time[first]:.3f} s",
                "positions must go on continuously, not wrap at a full turn; remove glitches of the encoder",
                ABSURD,
            )
        elif beyond[j] > TOLERANCE:
            yield Finding(
                "error" if beyond[j] > FAR else "warning",
                where,
                f"it goes from {low[j]:.4g} to {high[j]:.4g}, but its limits are {robot.limits.lower[j]:.4g} to "
                f"{robot.limits.upper[j]:.4g}",
                "positions must be in rad (m) and count from the zero of this arm's URDF",
                ABSURD if beyond[j] > FAR else "beyond limits",
            )
        elif fastest[j] > FASTEST:
            yield Finding(
                "error",
                where,
                f"it moves at up to {fastest[j]:.3g} rad/s (m/s), from {low[j]:.4g} to {high[j]:.4g}",
                "positions must be in rad (m), and the time in s",
                ABSURD,
            )
        wild = np.abs(recording.torque[:, j]) > largest[j]
        if wild.any():
            first = int(np.argmax(wild))
            yield Finding(
                "error",
                where,
                f"its torque is {recording.torque[first, j]:.4g} at t = {recording.time[first]:.3f} s "
                f"({np.sum(wild)} samples above {largest[j]:.2g})",
                "torques must be in N m (N); remove these samples if they are glitches of the driver",
                ABSURD,
            )


def _jumps(recording: Recording) -> np.ndarray:
    """(N - 1, n) True before steps that wrap at a full turn, or that are taken back soon after."""
    steps = np.diff(recording.position, axis=0)
    wild = (np.abs(steps) > JUMP) & (np.abs(steps) > WILD_SPEED * np.diff(recording.time)[:, None])
    wrapped = np.abs(np.abs(steps) - 2 * np.pi) < JUMP
    taken_back = np.zeros_like(wild)
    for rows, j in zip(*np.nonzero(wild), strict=True):
        next_steps = steps[rows + 1 : rows + 1 + GLITCH, j]
        taken_back[rows, j] = np.any(np.abs(next_steps + steps[rows, j]) < 0.1 * np.abs(steps[rows, j]))
    return wild & (wrapped | taken_back)


def _fastest(recording: Recording) -> np.ndarray:
    """(n,) highest speed over STRETCH but for a few glitches."""
    steps = max(1, round(STRETCH * (recording.n_samples - 1) / max(recording.duration, STRETCH)))
    if recording.n_samples <= steps:
        return np.zeros(recording.n_joints)
    time = np.maximum(recording.time[steps:] - recording.time[:-steps], STRETCH)
    speed = np.abs(recording.position[steps:] - recording.position[:-steps]) / time[:, None]
    return np.percentile(speed, 99.0, axis=0)


def _torque_scale(robot: RobotModel) -> np.ndarray:
    """(n,) weight of the arm times its length, N m; its weight for prismatic joints, N; infinite without masses."""
    weight = np.sum(robot.parameters[::PARAMETERS_PER_LINK]) * max(np.linalg.norm(robot.gravity), 1.0)
    origins = robot.forward_kinematics(np.zeros((1, robot.n_joints)))[0, :, :3, 3]
    length = 0.1 + np.sum(np.linalg.norm(np.diff(origins, axis=0), axis=1))
    scale = np.where(robot.chain.prismatic, weight, weight * length)
    return np.where(scale > 0, scale, np.inf)
