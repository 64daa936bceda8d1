"""Checks of a motion before any of it is sent."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.limits import MotionLimits, per_joint
from dynid_ros.trajectories.trajectory import Trajectory

CHECK_STEP = 0.005
"""The motion between two samples is looked at this often, s, and at least at `CHECKS_BETWEEN` points."""
CHECKS_BETWEEN = 4
ROUNDING = 1e-6
"""Excess, as a part of a limit, that is taken for rounding."""


def check_limits(trajectory: Trajectory, limits: MotionLimits) -> None:
    """Every value finite, and position, velocity and acceleration within limits at the samples and between them.

    A jump in position or velocity between two samples shows as the velocity or acceleration that it would take.

    Raises:
        TrajectoryError: names joint, time, value and bound of the worst violation of its kind.

    """
    if trajectory.joint_names != limits.joint_names:
        raise TrajectoryError(f"the motion is of joints {trajectory.joint_names}, the limits of {limits.joint_names}")
    for field in ("position", "velocity", "acceleration"):
        values = getattr(trajectory, field)
        if not np.all(np.isfinite(values)):
            k, i = np.argwhere(~np.isfinite(values))[0]
            raise TrajectoryError(
                f"{field} of joint '{limits.joint_names[i]}' is {values[k, i]} at {trajectory.time[k]:.3f} s"
            )
    time = check_times(trajectory)
    position, velocity, acceleration = trajectory.at(time)
    for what, values, bound, sign, per in (
        ("position", position, limits.upper, 1, ""),
        ("position", position, limits.lower, -1, ""),
        ("speed", np.abs(velocity), limits.velocity, 1, "/s"),
        ("acceleration", np.abs(acceleration), limits.acceleration, 1, "/s²"),
    ):
        excess = sign * (values - bound) - ROUNDING * np.abs(bound)
        k, i = np.unravel_index(np.argmax(excess), excess.shape)
        if excess[k, i] > 0:
            unit = limits.units[i] + per
            raise TrajectoryError(
                f"joint '{limits.joint_names[i]}' would reach {what} {values[k, i]:.4g} {unit} at {time[k]:.3f} s; "
                f"its limit is {bound[i]:.4g} {unit}"
            )


def check_times(trajectory: Trajectory) -> NDArray:
    """Times at the samples and closely between them."""
    intervals = np.diff(trajectory.time)
    counts = np.maximum(np.ceil(intervals / CHECK_STEP).astype(int), CHECKS_BETWEEN)
    starts = np.repeat(trajectory.time[:-1], counts)
    fractions = np.concatenate([np.arange(count) / count for count in counts])
    return np.append(starts + fractions * np.repeat(intervals, counts), trajectory.duration)


def check_start(trajectory: Trajectory, measured: ArrayLike, tolerance: ArrayLike = 0.01) -> None:
    """The motion starts at rest, where the arm is: `measured` (n,) within `tolerance` (rad or m).

    Raises:
        TrajectoryError: names the joint and both positions.

    """
    distance = np.abs(trajectory.position[0] - np.asarray(measured, dtype=float))
    tolerance = per_joint(tolerance, trajectory.joint_names, "start tolerance")
    for i, name in enumerate(trajectory.joint_names):
        if not distance[i] <= tolerance[i]:
            raise TrajectoryError(
                f"the motion starts at {trajectory.position[0, i]:.4g} of joint '{name}', which is at "
                f"{np.asarray(measured)[i]:.4g}; allowed is a difference of {tolerance[i]:g}"
            )
        if trajectory.velocity[0, i] != 0.0:
            raise TrajectoryError(
                f"the motion starts with velocity {trajectory.velocity[0, i]:.4g} of joint '{name}', not at rest"
            )
