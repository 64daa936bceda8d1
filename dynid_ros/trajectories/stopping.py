"""Bringing a running motion to rest."""

import numpy as np
from numpy.typing import NDArray

from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.trajectory import Trajectory

SHORTEST = 0.2
DURATIONS = np.geomspace(SHORTEST, 10.0, 41)
"""Durations that are tried, s."""
RATE = 100.0


def stop(trajectory: Trajectory, time: float, limits: MotionLimits) -> Trajectory:
    """From the state of `trajectory` at `time` (s) to rest, in the shortest time that the acceleration limits allow.

    The arm stays on the path of the motion, which has been checked, and slows down along it: the path's own time runs
    at a rate that falls smoothly from 1 to 0. Position, velocity and acceleration are continuous.
    """
    for duration in DURATIONS:
        stopping = _slowed(trajectory, time, duration)
        if np.all(np.abs(stopping.acceleration) <= limits.acceleration):
            break
    return stopping


def _slowed(trajectory: Trajectory, start: float, duration: float) -> Trajectory:
    time: NDArray = np.linspace(0.0, duration, int(np.ceil(duration * RATE)) + 1)
    s = time / duration
    own_time = start + duration * (s - s**3 + s**4 / 2)
    rate = (1 - 3 * s**2 + 2 * s**3)[:, np.newaxis]
    slowing = (-6 * s * (1 - s) / duration)[:, np.newaxis]
    position, velocity, acceleration = trajectory.at(own_time)
    return Trajectory(
        trajectory.joint_names, time, position, velocity * rate, acceleration * rate**2 + velocity * slowing
    )
