"""Poses and torques that a simulated arm takes."""

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.simulation.per_joint import per_joint


def checked_pose(robot: RobotModel, position: ArrayLike, *, clip: bool = False) -> np.ndarray:
    """Positions (n,) within the limits; `clip`: what is beyond them is put to the nearest.

    Raises:
        DynidError: the wrong number of positions, or one that is not finite or beyond its limits.

    """
    limits, names = robot.limits, robot.joint_names
    pose = per_joint("the pose", position, len(names))
    if clip:
        return np.clip(pose, limits.lower, limits.upper)
    for joint in np.flatnonzero((pose < limits.lower) | (pose > limits.upper)):
        raise DynidError(
            f"the pose has joint '{names[joint]}' at {pose[joint]:.6g}; its limits are "
            f"{limits.lower[joint]:.6g} to {limits.upper[joint]:.6g}"
        )
    return pose


def checked_effort(robot: RobotModel, effort: ArrayLike) -> np.ndarray:
    """Torques (n,), N m.

    Raises:
        DynidError: the wrong number of torques, or one that is not finite.

    """
    torques = np.asarray(effort, dtype=float)
    names = robot.joint_names
    if torques.shape != (len(names),):
        raise DynidError(f"the effort command has {torques.size} values; expected {len(names)}: {', '.join(names)}")
    for joint in np.flatnonzero(~np.isfinite(torques)):
        raise DynidError(f"the effort command for joint '{names[joint]}' is {torques[joint]}; expected a number")
    return torques
