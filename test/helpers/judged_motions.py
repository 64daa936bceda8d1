"""Provide arms and motions for judging whether a motion excites the parameters."""

from functools import cache

import numpy as np
import planar_arm
from pinocchio_arm import example_urdf

from dynid_ros.model import RobotModel

RATE_HZ = 50.0


def make_motion(robot, still=(), seed=0, duration=20.0, width=0.5):
    """Return q, qd and qdd (N, n) of joints on five harmonics of 0.1 Hz about the middle of their ranges."""
    rng = np.random.default_rng(seed)
    time = np.arange(0, duration, 1 / RATE_HZ)[:, None, None]
    rate = 2 * np.pi * 0.1 * np.arange(1, 6)
    amplitude = width * rng.uniform(0.1, 0.4, (robot.n_joints, 5))
    amplitude[list(still)] = 0.0
    phase = rate * time + rng.uniform(0, 2 * np.pi, amplitude.shape)
    middle = (np.clip(robot.limits.lower, -2, 2) + np.clip(robot.limits.upper, -2, 2)) / 2
    terms = amplitude * np.sin(phase), amplitude * rate * np.cos(phase), -amplitude * rate**2 * np.sin(phase)
    q, qd, qdd = (term.sum(axis=-1) for term in terms)
    return q + middle, qd, qdd


@cache
def load_ur10():
    return RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"), tip="wrist_3_link")


@cache
def load_planar():
    return RobotModel.from_urdf(planar_arm.urdf())
