"""The arm as a stick figure, seen from the side on which it moves most."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dynid_ros.model import RobotModel


@dataclass(frozen=True)
class SideView:
    """A vertical plane through the base.

    Attributes:
        robot: the arm.
        axes: (2, 3) unit vectors to the right and up, in the base frame.

    """

    robot: RobotModel
    axes: NDArray

    @classmethod
    def of(cls, robot: RobotModel, position: NDArray) -> "SideView":
        """The plane that shows most of the motion (T, n); the arm starts to the right."""
        gravity = robot.gravity if np.any(robot.gravity) else np.array([0.0, 0.0, -1.0])
        up = -gravity / np.linalg.norm(gravity)
        points = _points(robot, position)
        flat = (points - points @ up[:, None] * up).reshape(-1, 3)
        right = np.linalg.svd(flat, full_matrices=False)[2][0]
        right -= right @ up * up
        right /= np.linalg.norm(right) or 1.0
        return cls(robot, np.stack([right if points[0, -1] @ right >= 0 else -right, up]))

    def sticks(self, position: NDArray) -> NDArray:
        """(T, n + 1, 2) the base and the links' origins in the picture, m."""
        return _points(self.robot, position) @ self.axes.T


def draw_stick(axes: Axes, stick: NDArray, color: str, alpha: float = 1.0, width: float = 3.0) -> None:
    """One pose (n + 1, 2), with a dot at each joint."""
    axes.plot(
        *stick.T,
        color=color,
        alpha=alpha,
        linewidth=width,
        solid_capstyle="round",
        solid_joinstyle="round",
        marker="o",
        markersize=1.5 * width,
        markeredgewidth=0,
    )


def _points(robot: RobotModel, position: NDArray) -> NDArray:
    origins = robot.forward_kinematics(position)[:, :, :3, 3]
    return np.concatenate([np.zeros((len(origins), 1, 3)), origins], axis=1)
