"""Simulate recordings of the demo arm under a position servo with offset sampling times and stalls."""

from dataclasses import replace
from functools import cache

import numpy as np

from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import demo_arm_urdf

PERIOD_S = 0.004
STALL_RANGE_S = 0.16, 0.25
"""Shortest and longest stall in s."""


@cache
def robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf())


def make_motion(time, seed, speed):
    """Return position and its two derivatives (3, N, 6): five harmonics of a tenth of the speed in Hz."""
    rng = np.random.default_rng(seed)
    harmonics = np.arange(1, 6)
    rate = 2 * np.pi * 0.1 * speed * harmonics
    amplitude = rng.normal(size=(5, 6)) / harmonics[:, None]
    angle = np.multiply.outer(time, rate)[:, :, None] + rng.uniform(0, 2 * np.pi, (5, 6))
    orders = [np.sum(amplitude * np.sin(angle + d * np.pi / 2) * rate[:, None] ** d, axis=1) for d in (0, 1, 2)]
    return np.array(orders) * speed / np.abs(orders[1]).max(axis=0)


def simulate_recording(seed=0, speed=1.0, early=0.0, push=0.0, coulomb=0.0):
    """Simulate a recording of 20 s at 250 Hz.

    Args:
        seed: seed of motion and noise.
        speed: largest speed of each joint in rad/s.
        early: age of the positions relative to the torques in s.
        push: apparent negative viscous friction as a fraction of the largest torque of each joint.
        coulomb: Coulomb friction as such a fraction.
    """
    rng = np.random.default_rng([seed, 1])
    time = np.arange(0, 20, PERIOD_S)
    q, qd, _ = make_motion(time, seed, speed)
    torque = robot().inverse_dynamics(*make_motion(time + early, seed, speed))
    size = np.abs(torque).max(axis=0)
    torque = torque + size * (coulomb * np.tanh(qd / 0.005) - push * qd / speed)
    return Recording(
        robot().joint_names,
        time,
        q + rng.normal(0, 1e-5, q.shape),
        qd + rng.normal(0, 0.003, q.shape),
        torque + 0.002 * size * rng.normal(size=q.shape),
        source="servo",
    )


def add_stalls(recording, kind, seed=3):
    """Return the recording of a computer that stalls every 6 s.

    Args:
        recording: recording without stalls.
        kind: "lost": samples are missing; "repeated": the last samples are written again; "paused": the arm
            pauses, too.
        seed: seed of times and durations.
    """
    rng = np.random.default_rng(seed)
    begin = np.arange(2.0, recording.time[-1] - 2, 6.0)
    begin = begin + rng.uniform(0, 1, len(begin))
    end = begin + rng.uniform(*STALL_RANGE_S, len(begin))
    if kind == "paused":
        return replace(recording, time=recording.time + (recording.time[:, None] >= begin) @ (end - begin))
    is_stalled = np.any((recording.time[:, None] >= begin) & (recording.time[:, None] < end), axis=1)
    if kind == "lost":
        return recording.slice(~is_stalled)
    rows = np.maximum.accumulate(np.where(is_stalled, 0, np.arange(len(is_stalled))))
    return replace(
        recording, position=recording.position[rows], velocity=recording.velocity[rows], torque=recording.torque[rows]
    )
