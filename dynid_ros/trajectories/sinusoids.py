"""Sinusoidal motion of one joint, from rest to rest, while the other joints hold."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.trajectories.limits import MotionLimits, check_limits
from dynid_ros.trajectories.trajectory import Trajectory, minimum_jerk

POINTS_PER_CYCLE = 50
USED_LIMIT_FRACTION = 0.99
"""Fraction of the limits that is used, because values between the points are not checked one by one."""


def swing(frequency: float, cycles: int, time: ArrayLike) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return a sine of unit amplitude and its first three derivatives, each (M,), at times (M,).

    The amplitude grows over the first cycle like a minimum-jerk move, stays at one for `cycles`, and vanishes over the
    last cycle. Value, velocity and acceleration therefore start and end at zero.
    """
    time = np.asarray(time, dtype=float)
    rate = 2 * np.pi * frequency
    period = 1.0 / frequency
    end = (cycles + 2) * period
    is_first_half = time <= end / 2
    from_nearer_end = np.where(is_first_half, time, end - time)
    # Amplitude and its derivatives; odd derivatives change their sign in the second half.
    (amplitude,), (slope,), (curvature,) = (values.T for values in minimum_jerk([0.0], [1.0], period, from_nearer_end))
    sign = np.where(is_first_half, 1.0, -1.0)
    slope = sign * slope
    s = np.clip(from_nearer_end / period, 0.0, 1.0)
    third = np.where(from_nearer_end < period, (60.0 - 360.0 * s + 360.0 * s**2) / period**3, 0.0) * sign
    sin = np.sin(rate * time)
    cos = np.cos(rate * time)
    return (
        amplitude * sin,
        slope * sin + amplitude * rate * cos,
        curvature * sin + 2 * slope * rate * cos - amplitude * rate**2 * sin,
        third * sin + 3 * curvature * rate * cos - 3 * slope * rate**2 * sin - amplitude * rate**3 * cos,
    )


def widest_swing(limits: MotionLimits, joint: int, centre: float, frequency: float, cycles: int) -> float:
    """Return the largest amplitude about `centre` that the limits of a joint allow, rad or m.

    The amplitude is negative if the centre is outside the position limits.
    """
    _, speed, acceleration, jerk = (np.abs(v).max() for v in swing(frequency, cycles, _times(frequency, cycles)))
    by_position = min(limits.upper[joint] - centre, centre - limits.lower[joint])
    bounds = (limits.velocity[joint] / speed, limits.acceleration[joint] / acceleration, limits.jerk[joint] / jerk)
    return float(min(by_position, *(USED_LIMIT_FRACTION * bound for bound in bounds)))


def sinusoid(
    limits: MotionLimits, joint: int, pose: NDArray, frequency: float, *, amplitude: float, cycles: int
) -> Trajectory:
    """Plan a swing of one joint about a pose; the other joints hold.

    Args:
        limits: limits of the joints.
        joint: index of the joint.
        pose: (n,) start and end of the motion, rad or m.
        frequency: frequency of the sine, Hz.
        amplitude: amplitude, rad or m.
        cycles: number of cycles at full amplitude, between one cycle of growth and one of decay.

    Raises:
        TrajectoryError: the motion violates the limits; names joint, time, value and bound.
    """
    time = _times(frequency, cycles)
    fields = np.zeros((3, len(time), len(pose)))
    fields[:, :, joint] = amplitude * np.array(swing(frequency, cycles, time)[:3])
    fields[0] += pose
    fields[:, [0, -1]] = np.array([pose, 0 * pose, 0 * pose])[:, np.newaxis]  # removes rounding errors
    motion = Trajectory(limits.joint_names, time, *fields)
    check_limits(motion, limits)
    return motion


def _times(frequency: float, cycles: int) -> NDArray:
    return np.linspace(0.0, (cycles + 2) / frequency, POINTS_PER_CYCLE * (cycles + 2) + 1)
