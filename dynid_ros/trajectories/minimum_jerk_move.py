"""Rest-to-rest moves of minimum jerk: q(t) = q0 + Δ(10 s³ − 15 s⁴ + 6 s⁵), s = t/T (Flash & Hogan 1985)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.trajectory import Trajectory, check_duration

PEAK_VELOCITY = 15 / 8
"""Largest velocity, in Δ/T (at the middle)."""
PEAK_ACCELERATION = 10 / np.sqrt(3)
"""Largest acceleration, in Δ/T² (at s = (3 ∓ √3)/6)."""
PEAK_JERK = 60.0
"""Largest jerk, in Δ/T³ (at both ends)."""


def minimum_jerk(
    start: ArrayLike, goal: ArrayLike, duration: float, time: ArrayLike
) -> tuple[NDArray, NDArray, NDArray]:
    """Position, velocity and acceleration, each (M, n), at times (M,) of the move from `start` (n,) to `goal` (n,)."""
    start, goal = np.asarray(start, dtype=float), np.asarray(goal, dtype=float)
    s = np.clip(np.asarray(time, dtype=float) / duration, 0.0, 1.0)[..., np.newaxis]
    delta = goal - start
    position = start + delta * s**3 * (10 - 15 * s + 6 * s**2)
    velocity = delta / duration * 30 * s**2 * (1 - s) ** 2
    acceleration = delta / duration**2 * 60 * s * (1 - s) * (1 - 2 * s)
    return position, velocity, acceleration


def shortest_duration(
    displacement: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike = np.inf
) -> float:
    """Shortest time (s) for displacements (n,) within velocity, acceleration and jerk limits (n,)."""
    distance = np.abs(np.asarray(displacement, dtype=float))
    by_velocity = PEAK_VELOCITY * distance / np.asarray(velocity, dtype=float)
    by_acceleration = np.sqrt(PEAK_ACCELERATION * distance / np.asarray(acceleration, dtype=float))
    by_jerk = np.cbrt(PEAK_JERK * distance / np.asarray(jerk, dtype=float))
    return float(np.max([by_velocity, by_acceleration, by_jerk]))


def move(joint_names: Sequence[str], start: ArrayLike, goal: ArrayLike, duration: float) -> Trajectory:
    """The move as a trajectory; with `goal` equal to `start` it is a rest.

    Args:
        joint_names: n names.
        start: (n,) rad or m.
        goal: (n,) likewise.
        duration: s.

    Raises:
        TrajectoryError: the duration is not positive, or more than a working day.

    """
    if not duration > 0:
        raise TrajectoryError(f"a move needs a positive duration, got {duration:g} s")
    check_duration(duration)
    return Trajectory(tuple(joint_names), [0.0, duration], *minimum_jerk(start, goal, duration, [0.0, duration]))  # type: ignore[arg-type]
