"""Checks of a motion before any of it is sent."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.trajectories.limits import MotionLimits, per_joint
from dynid_ros.trajectories.trajectory import Trajectory

CHECK_STEP = 0.005
"""The motion between two samples is looked at this often, s, and at least at `CHECKS_BETWEEN` points."""
CHECKS_BETWEEN = 4
ROUNDING = 1e-6
"""Excess, as a part of a limit, that is taken for rounding."""
JERK_ROUNDING = 1e-4
"""The same for jerk, a third derivative of what is written in a file."""


def check_limits(trajectory: Trajectory, limits: MotionLimits) -> None:
    """Every value finite, and position, velocity, acceleration and jerk within limits at the samples and between them.

    A jump in position or velocity between two samples shows as the velocity or acceleration that it would take.

    Raises:
        TrajectoryError: names joint, time, value and bound of the worst violation of its kind.

    """
    if trajectory.joint_names != limits.joint_names:
        raise TrajectoryError(f"the motion is of joints {trajectory.joint_names}, the limits of {limits.joint_names}")
    for quantity in ("position", "velocity", "acceleration"):
        values = getattr(trajectory, quantity)
        if not np.all(np.isfinite(values)):
            k, i = np.argwhere(~np.isfinite(values))[0]
            raise TrajectoryError(
                f"{quantity} of joint '{limits.joint_names[i]}' is {values[k, i]} at {trajectory.time[k]:.3f} s"
            )
    time = check_times(trajectory)
    position, velocity, acceleration = trajectory.at(time)
    _check_bound("position", time, position, limits.upper, limits)
    _check_bound("position", time, position, limits.lower, limits, sign=-1)
    _check_bound("speed", time, np.abs(velocity), limits.velocity, limits, per="/s")
    _check_bound("acceleration", time, np.abs(acceleration), limits.acceleration, limits, per="/s²")
    if np.isfinite(limits.jerk).any():
        time, jerk = trajectory.jerk_peaks()
        _check_bound("jerk", time, np.abs(jerk), limits.jerk, limits, per="/s³", rounding=JERK_ROUNDING)


def check_torque(trajectory: Trajectory, limits: MotionLimits, robot: RobotModel, margin: float = 0.0) -> None:
    """The torque of the motion by the robot's own parameters stays within (1 − `margin`) of the limits.

    Friction and rotors are not in it, nor what the description gets wrong: the margin is for them.

    Raises:
        TrajectoryError: names joint, time, torque and bound; or the joints whose torque is not known because the
            robot's description has no mass there; or a margin outside 0 … 1.

    """
    if not 0 <= margin < 1:
        raise TrajectoryError(f"the torque margin is {margin:g}; it must be 0 or more and below 1")
    unknown = unknown_torques(limits, robot)
    if unknown:
        raise TrajectoryError(
            f"the torque of joints {', '.join(unknown)} cannot be checked: the robot's description has no mass there; "
            "give masses, or infinite torque_limits for them"
        )
    time = check_times(trajectory)
    torque = robot.inverse_dynamics(*trajectory.at(time))
    bound = (1 - margin) * limits.torque
    for i, name in enumerate(limits.joint_names):
        k = int(np.argmax(np.abs(torque[:, i])))
        if not abs(torque[k, i]) <= bound[i]:
            unit = "N m" if limits.units[i] == "rad" else "N"
            raise TrajectoryError(
                f"joint '{name}' would need {torque[k, i]:.4g} {unit} at {time[k]:.3f} s; allowed are {bound[i]:.4g} "
                f"{unit}, its limit of {limits.torque[i]:.4g} {unit} less a margin of {100 * margin:g} %"
            )


def unknown_torques(limits: MotionLimits, robot: RobotModel) -> list[str]:
    """Joints with a torque limit for which the robot's description has no mass from there to the tip."""
    mass = robot.parameters[::PARAMETERS_PER_LINK]
    carried = np.cumsum(mass[::-1])[::-1]
    return [
        name
        for name, moved, limit in zip(limits.joint_names, carried, limits.torque, strict=True)
        if np.isfinite(limit) and not moved > 0
    ]


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


def _check_bound(
    what: str,
    time: NDArray,
    values: NDArray,
    bound: NDArray,
    limits: MotionLimits,
    *,
    sign: int = 1,
    per: str = "",
    rounding: float = ROUNDING,
) -> None:
    """Raise where `values` (M, n) at times (M,) or (M, n) pass `bound` (n,) most."""
    with np.errstate(invalid="ignore"):
        excess = np.where(np.isfinite(bound), sign * (values - bound) - rounding * np.abs(bound), -np.inf)
    k, i = np.unravel_index(np.argmax(excess), excess.shape)
    if excess[k, i] > 0:
        unit = limits.units[i] + per
        raise TrajectoryError(
            f"joint '{limits.joint_names[i]}' would reach {what} {values[k, i]:.4g} {unit} at "
            f"{np.broadcast_to(time.T, excess.T.shape).T[k, i]:.3f} s; its limit is {bound[i]:.4g} {unit}"
        )
