"""Turns of gravity in the base frame: those that a tilt of the base makes.

Two numbers turn a direction; the third, about gravity itself, turns the base about the vertical, which gravity never
shows. Torques are linear in gravity, so their change by a small turn about an axis a is that of gravity along a × g.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.robot import RobotModel


def turn_axes(gravity: ArrayLike) -> NDArray:
    """(2, 3) unit axes across gravity (3,) and each other, the first near an axis of the base frame."""
    down = np.asarray(gravity, dtype=float) / np.linalg.norm(gravity)
    first = np.eye(3)[np.argmin(np.abs(down))]
    first = first - (first @ down) * down
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(first, down)])


def turned(gravity: ArrayLike, turn: ArrayLike) -> NDArray:
    """Gravity (3,) turned by a rotation vector (3,), rad."""
    g, vector = np.asarray(gravity, dtype=float), np.asarray(turn, dtype=float)
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return g
    axis = vector / angle
    return g * np.cos(angle) + np.cross(axis, g) * np.sin(angle) + axis * (axis @ g) * (1 - np.cos(angle))


def angle_between(one: ArrayLike, other: ArrayLike) -> float:
    """Angle between two vectors (3,), rad; exact for small ones too."""
    a, b = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


def mount_rotation(robot: RobotModel, frame: str, where: str) -> NDArray:
    """(3, 3) to the base frame from that of a sensor `frame`, which the URDF fixes to the base; none is the base's own.

    Raises:
        ModelError: the URDF has no such link, or a joint moves it; `where` begins the message.
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
