"""One joint swinging as a sine, from rest to rest, while the others hold."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.limits import MotionLimits, check_limits
from dynid_ros.trajectories.trajectory import Trajectory, minimum_jerk

POINTS_PER_CYCLE = 50
ROOM = 0.99
"""Part of the limits used: what lies between the points is not looked at one by one."""


def swing(frequency: float, cycles: int, time: ArrayLike) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Value, and its first three derivatives, each (M,), at times (M,) of a sine of unit amplitude.

    It swells over its first cycle, as a minimum-jerk move does, swings for `cycles` and dies away over its last; so
    value, velocity and acceleration start and end at zero.
    """
    time = np.asarray(time, dtype=float)
    rate = 2 * np.pi * frequency
    period = 1.0 / frequency
    end = (cycles + 2) * period
    inward = time <= end / 2
    own = np.where(inward, time, end - time)
    (swell,), (rise,), (bend,) = (values.T for values in minimum_jerk([0.0], [1.0], period, own))
    rise = np.where(inward, rise, -rise)
    s = np.clip(own / period, 0.0, 1.0)
    snap = np.where(own < period, (60.0 - 360.0 * s + 360.0 * s**2) / period**3, 0.0) * np.where(inward, 1.0, -1.0)
    sin, cos = np.sin(rate * time), np.cos(rate * time)
    return (
        swell * sin,
        rise * sin + swell * rate * cos,
        bend * sin + 2 * rise * rate * cos - swell * rate**2 * sin,
        snap * sin + 3 * bend * rate * cos - 3 * rise * rate**2 * sin - swell * rate**3 * cos,
    )


def widest_swing(limits: MotionLimits, joint: str, centre: float, frequency: float, cycles: int) -> float:
    """Largest amplitude (rad or m) about `centre` that the limits of `joint` allow; negative where it is outside.

    Raises:
        TrajectoryError: no such joint, or a frequency or number of cycles that is not positive.
    """
    i = _index(limits, joint, frequency, cycles)
    _, speed, acceleration, jerk = (np.abs(v).max() for v in swing(frequency, cycles, _times(frequency, cycles)))
    room = min(limits.upper[i] - centre, centre - limits.lower[i])
    bounds = (limits.velocity[i] / speed, limits.acceleration[i] / acceleration, limits.jerk[i] / jerk)
    return float(min(room, *(ROOM * bound for bound in bounds)))


def sinusoid(
    limits: MotionLimits,
    joint: str,
    pose: ArrayLike,
    frequency: float,
    *,
    amplitude: float | None = None,
    cycles: int = 3,
) -> Trajectory:
    """Motion in which `joint` swings about `pose` (n,), and the others hold.

    Args:
        limits: what the joints may do.
        joint: its name.
        pose: (n,) rad or m, where the motion starts and ends.
        frequency: Hz.
        amplitude: rad or m; None: as large as the limits allow.
        cycles: at full amplitude; one more swells before, and one dies away after them.

    Raises:
        TrajectoryError: no such joint, a number that makes no sense, or a motion that passes the limits; names joint,
            time, value and bound.
    """
    i = _index(limits, joint, frequency, cycles)
    pose = np.asarray(pose, dtype=float)
    if pose.shape != (len(limits.joint_names),) or not np.isfinite(pose).all():
        raise TrajectoryError(f"a pose needs {len(limits.joint_names)} finite positions, got {pose.tolist()}")
    if amplitude is None:
        amplitude = widest_swing(limits, joint, float(pose[i]), frequency, cycles)
    if not (np.isfinite(amplitude) and amplitude > 0):
        raise TrajectoryError(
            f"the amplitude of joint '{joint}' about {pose[i]:.4g} is {amplitude:.4g}; it must be positive, so its "
            "centre inside its limits"
        )
    time = _times(frequency, cycles)
    fields = np.zeros((3, len(time), len(pose)))
    fields[:, :, i] = amplitude * np.array(swing(frequency, cycles, time)[:3])
    fields[0] += pose
    fields[:, [0, -1]] = np.array([pose, 0 * pose, 0 * pose])[:, np.newaxis]  # but for rounding they are
    motion = Trajectory(limits.joint_names, time, *fields)
    check_limits(motion, limits)
    return motion


def _index(limits: MotionLimits, joint: str, frequency: float, cycles: int) -> int:
    if joint not in limits.joint_names:
        raise TrajectoryError(f"no joint '{joint}'; there are {', '.join(limits.joint_names)}")
    if not (np.isfinite(frequency) and frequency > 0):
        raise TrajectoryError(f"the frequency of joint '{joint}' is {frequency:g} Hz; it must be positive")
    if not cycles >= 1:
        raise TrajectoryError(f"the cycles of joint '{joint}' are {cycles}; they must be at least 1")
    return limits.joint_names.index(joint)


def _times(frequency: float, cycles: int) -> NDArray:
    return np.linspace(0.0, (cycles + 2) / frequency, POINTS_PER_CYCLE * (cycles + 2) + 1)
