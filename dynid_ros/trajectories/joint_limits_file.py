"""Reading joint limits from a `joint_limits.yaml` of MoveIt's Setup Assistant."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.files import MEGABYTE, read_yaml
from dynid_ros.model import RobotModel

MAX_FILE_BYTES = MEGABYTE
LIMIT_KEYS = {
    "min_position": "has_position_limits",
    "max_position": "has_position_limits",
    "max_velocity": "has_velocity_limits",
    "max_acceleration": "has_acceleration_limits",
    "max_deceleration": "has_deceleration_limits",
    "max_jerk": "has_jerk_limits",
    "max_effort": "has_effort_limits",
}
"""Key of each limit, and the key that can disable it."""
IGNORED_KEYS = {"angle_wraparound"}
POSITIVE_KEYS = ("max_velocity", "max_acceleration", "max_jerk", "max_effort")
LIMIT_ARGUMENTS = {
    "min_position": "position_lower",
    "max_position": "position_upper",
    "max_velocity": "velocity_limits",
    "max_acceleration": "acceleration_limits",
    "max_jerk": "jerk_limits",
    "max_effort": "torque_limits",
}
"""Key of each limit, and the corresponding argument of `MotionLimits.of`."""


def read_joint_limits(path: str | Path, robot: RobotModel) -> dict[str, NDArray]:
    """Return limits (n,) by argument of `MotionLimits.of`; NaN: the file has no such limit.

    As in MoveIt, a limit applies if it has a value and `has_…_limits` is not false. A deceleration limit (Pilz) below
    the acceleration limit replaces it. The default scaling factors are ignored, because they only slow down MoveIt's
    own motions.

    Args:
        path: path of the file.
        robot: the arm; joints of its URDF that do not belong to the arm are skipped.

    Raises:
        TrajectoryError: the file cannot be read, names unknown joints, or an entry is not valid.
    """
    where = f"joint limits '{path}'"
    try:
        document = read_yaml(path, MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        raise TrajectoryError(f"{where}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    joints = document.get("joint_limits") if isinstance(document, dict) else None
    if not isinstance(joints, dict):
        raise TrajectoryError(
            f"{where}: expected a mapping joint_limits of joints, as in MoveIt's joint_limits.yaml; give that file"
        )
    described = {*robot.joint_names, *([] if robot.urdf is None else robot.tree.joints)}
    unknown = [str(name) for name in joints if name not in described]
    if unknown:
        raise TrajectoryError(
            f"{where}: joint(s) {', '.join(unknown)} are not in the robot's description; its arm has "
            f"{', '.join(robot.joint_names)}; correct the names or remove them"
        )
    limits = {argument: np.full(robot.n_joints, np.nan) for argument in LIMIT_ARGUMENTS.values()}
    for index, name in enumerate(robot.joint_names):
        values = _limits_of_joint(joints.get(name, {}), f"{where}, joint '{name}'")
        for key, argument in LIMIT_ARGUMENTS.items():
            limits[argument][index] = values.get(key, np.nan)
        if "max_deceleration" in values:
            acceleration = limits["acceleration_limits"]
            acceleration[index] = np.fmin(acceleration[index], abs(values["max_deceleration"]))
    return limits


def _limits_of_joint(entry: Any, where: str) -> dict[str, float]:
    """Return the limits of one joint that apply, by their keys in the file."""
    if not isinstance(entry, Mapping):
        raise TrajectoryError(f"{where}: is {entry!r}; expected a mapping, as of max_acceleration: 2.0")
    valid_keys = {*LIMIT_KEYS, *LIMIT_KEYS.values(), *IGNORED_KEYS}
    for key in entry:
        if key not in valid_keys:
            raise TrajectoryError(f"{where}: has '{key}'; expected {', '.join(sorted(valid_keys))}")
    for switch in dict.fromkeys(LIMIT_KEYS.values()):
        if not isinstance(entry.get(switch, True), bool):
            raise TrajectoryError(f"{where}: {switch} is {entry[switch]!r}; expected true or false")
        keys = [key for key, owner in LIMIT_KEYS.items() if owner == switch]
        if entry.get(switch, False) and not any(key in entry for key in keys):
            raise TrajectoryError(f"{where}: {switch} is true, but {' and '.join(keys)} are missing; give them")
    return {
        key: _parse_number(key, entry[key], where)
        for key, switch in LIMIT_KEYS.items()
        if key in entry and entry.get(switch, True)
    }


def _parse_number(key: str, value: Any, where: str) -> float:
    expected = "a number above 0" if key in POSITIVE_KEYS else "a number"
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value)
    if not is_number or (key in POSITIVE_KEYS and value <= 0):
        raise TrajectoryError(f"{where}: {key} is {value!r}; expected {expected}")
    return float(value)
