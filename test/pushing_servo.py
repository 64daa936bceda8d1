"""Recordings of the demo arm under a position servo, whose effort is sampled at one end of the period, with stalls."""

from dataclasses import replace
from functools import cache

import numpy as np

from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import demo_arm_urdf

PERIOD = 0.004
STALLS = 0.16, 0.25
"""Bounds of the length of a stall, s."""


@cache
def robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf())


def motion(time, seed, speed):
    """Position with its two derivatives (3, N, 6): five harmonics of a tenth of the speed, Hz."""
    rng = np.random.default_rng(seed)
    harmonics = np.arange(1, 6)
    rate = 2 * np.pi * 0.1 * speed * harmonics
    amplitude = rng.normal(size=(5, 6)) / harmonics[:, None]
    angle = np.multiply.outer(time, rate)[:, :, None] + rng.uniform(0, 2 * np.pi, (5, 6))
    orders = [np.sum(amplitude * np.sin(angle + d * np.pi / 2) * rate[:, None] ** d, axis=1) for d in (0, 1, 2)]
    return np.array(orders) * speed / np.abs(orders[1]).max(axis=0)


def recording(seed=0, speed=1.0, early=0.0, push=0.0, coulomb=0.0):
    """20 s at 250 Hz.

    Args:
        seed: of motion and noise.
        speed: highest of each joint, rad/s.
        early: positions are as much older than the torques beside them, s.
        push: what looks like negative viscous friction, as a part of each joint's largest torque.
        coulomb: friction, as a part of it too.
    """
    rng = np.random.default_rng([seed, 1])
    time = np.arange(0, 20, PERIOD)
    q, qd, _ = motion(time, seed, speed)
    torque = robot().inverse_dynamics(*motion(time + early, seed, speed))
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


def stalled(it, how, seed=3):
    """The recording of a machine that stalls every 6 s, its torques not filtered.

    Args:
        it: the recording of a machine that does not.
        how: "lost": the samples are missing; "repeated": the last before are written again; "paused": the arm too
            stands still, and goes on as it went.
        seed: of when and for how long.
    """
    rng = np.random.default_rng(seed)
    begin = np.arange(2.0, it.time[-1] - 2, 6.0)
    begin = begin + rng.uniform(0, 1, len(begin))
    end = begin + rng.uniform(*STALLS, len(begin))
    if how == "paused":
        return replace(it, time=it.time + (it.time[:, None] >= begin) @ (end - begin))
    within = np.any((it.time[:, None] >= begin) & (it.time[:, None] < end), axis=1)
    if how == "lost":
        return it.slice(~within)
    rows = np.maximum.accumulate(np.where(within, 0, np.arange(len(within))))
    return replace(it, position=it.position[rows], velocity=it.velocity[rows], torque=it.torque[rows])
