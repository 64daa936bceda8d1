"""Turns of gravity in the base frame, as a tilt of the base causes them.

Two angles turn a direction; a turn about gravity itself turns the base about the vertical and has no effect. Torques
are linear in gravity, so a small turn about an axis a changes them by the torques of a gravity a × g.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.robot import RobotModel


def turn_axes(gravity: ArrayLike) -> NDArray:
    """Return two unit axes (2, 3) across gravity (3,) and each other, the first near an axis of the base frame."""
    down = np.asarray(gravity, dtype=float) / np.linalg.norm(gravity)
    first = np.eye(3)[np.argmin(np.abs(down))]
    first = first - (first @ down) * down
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(first, down)])


def turned(gravity: ArrayLike, turn: ArrayLike) -> NDArray:
    """Return gravity (3,) turned by a rotation vector (3,), rad."""
    g = np.asarray(gravity, dtype=float)
    vector = np.asarray(turn, dtype=float)
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return g
    axis = vector / angle
    return g * np.cos(angle) + np.cross(axis, g) * np.sin(angle) + axis * (axis @ g) * (1 - np.cos(angle))


def angle_between(one: ArrayLike, other: ArrayLike) -> float:
    """Return the angle between two vectors (3,), rad, exact for small angles, too."""
    a = np.asarray(one, dtype=float)
    b = np.asarray(other, dtype=float)
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


def mount_rotation(robot: RobotModel, frame: str, where: str) -> NDArray:
    """Return the rotation (3, 3) to the base frame from the frame of a sensor that the URDF fixes to the base.

    Args:
        robot: the arm.
        frame: name of the link; empty for the base frame.
        where: beginning of error messages.

    Raises:
        ModelError: the URDF has no such link, or a joint moves it.
    """
    frame = frame.lstrip("/")
    if frame in ("", robot.base):
        return np.eye(3)
    fixed: dict[str, NDArray] = {}
    if robot.urdf is not None:
        root = robot.base
        above = robot.tree.parent_joint
        while root in above and above[root].type == "fixed":
            root = above[root].parent
        fixed = robot.tree.fixed_to(root)
    if frame not in fixed:
        raise ModelError(
            f"{where}: its frame '{frame}' is no link that is fixed to '{robot.base}' in the URDF; expected "
            f"{', '.join(fixed) or robot.base}: add the sensor's link with its mounting"
        )
    return fixed[robot.base][:3, :3].T @ fixed[frame][:3, :3]
