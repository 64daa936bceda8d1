"""The arm let go without and with gravity compensation: how far its joints drift, and how that looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.files import write_atomically
from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import LIGHT, draw_stick, plot_area, png, svg
from dynid_ros.report.formats import brief, distance, joint_units

PICTURE_WIDTH = 340
PICTURE_HEIGHT = 300
TITLE_HEIGHT = 56
PICTURE_MARGIN_M = 0.12
N_GHOSTS = 14
"""Poses between start and end, evenly spaced along the path."""


@dataclass(frozen=True)
class DropTest:
    """The simulated arm after it was let go.

    Attributes:
        time: (T,) s.
        without: (T, n) positions in effort mode with zero torque, rad or m.
        compensated: (T, n) positions with gravity compensation, from the same pose.
    """

    time: NDArray
    without: NDArray
    compensated: NDArray

    @classmethod
    def from_tracks(cls, without: tuple[NDArray, NDArray], compensated: tuple[NDArray, NDArray]) -> DropTest:
        """Bring two tracks, time (T,) and positions (T, n), to the time stamps of the first."""
        time, position = without
        columns = [np.interp(time, compensated[0], column) for column in compensated[1].T]
        return cls(time, position, np.stack(columns, axis=1))

    @property
    def duration(self) -> float:
        """Duration, s."""
        return float(self.time[-1] - self.time[0])

    @property
    def drift_without(self) -> NDArray:
        """(n,) largest distance of each joint from its start without compensation, rad or m."""
        return largest_drift(self.without)

    @property
    def drift_compensated(self) -> NDArray:
        """(n,) largest distance of each joint from its start with compensation, rad or m."""
        return largest_drift(self.compensated)


def largest_drift(position: NDArray) -> NDArray:
    """Return the largest distance (n,) of positions (T, n) from the first."""
    return np.abs(position - position[0]).max(axis=0)


@dataclass(frozen=True)
class SideView:
    """A vertical plane through the base, to draw the arm as a stick figure.

    Attributes:
        axes: (2, 3) unit vectors to the right and up, in the base frame.
    """

    robot: RobotModel
    axes: NDArray

    @classmethod
    def from_motion(cls, robot: RobotModel, position: NDArray) -> SideView:
        """Return the plane that shows most of the motion (T, n); the arm starts to the right."""
        gravity = robot.gravity if np.any(robot.gravity) else np.array([0.0, 0.0, -1.0])
        up = -gravity / np.linalg.norm(gravity)
        points = _stick_points(robot, position)
        level = (points - points @ up[:, None] * up).reshape(-1, 3)
        right = np.linalg.svd(level, full_matrices=False)[2][0]
        right -= right @ up * up
        right /= np.linalg.norm(right) or 1.0
        return cls(robot, np.stack([right if points[0, -1] @ right >= 0 else -right, up]))

    def sticks(self, position: NDArray) -> NDArray:
        """Return base and origins of the links (T, n + 1, 2) in the plane, m, for positions (T, n)."""
        return _stick_points(self.robot, position) @ self.axes.T


def _stick_points(robot: RobotModel, position: NDArray) -> NDArray:
    origins = robot.forward_kinematics(position)[:, :, :3, 3]
    return np.concatenate([np.zeros((len(origins), 1, 3)), origins], axis=1)


def prepare_axes(axes: Axes, sticks: NDArray) -> None:
    """Scale empty axes to stick figures (..., 2) and draw the ground."""
    points = sticks.reshape(-1, 2)
    margin = PICTURE_MARGIN_M * (np.ptp(points, axis=0).max() or 1.0)
    low = points.min(axis=0) - margin
    high = points.max(axis=0) + margin
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.axhline(0, color=LIGHT["line"], linewidth=1.5, zorder=0)


class DropPicture:
    """Side views of both cases at one scale: start in grey, poses on the way in faint colour, end in full colour."""

    def __init__(self, robot: RobotModel, test: DropTest):
        view = SideView.from_motion(robot, np.concatenate([test.without, test.compensated]))
        self._cases = {
            "without": (view.sticks(test.without), LIGHT["uncompensated"]),
            "with": (view.sticks(test.compensated), LIGHT["identified"]),
        }
        self._all = np.concatenate([sticks for sticks, _ in self._cases.values()])
        self._later = f"{brief(test.duration)} s later"

    def svg(self, case: str) -> str:
        """Draw one case, "without" or "with", as SVG."""
        label = f"Side view of the arm {case} compensation, when it is let go and {self._later}"
        draw = lambda figure: self._draw(plot_area(figure, 0, 0, 0, 0), case)  # noqa: E731
        return svg(label, PICTURE_WIDTH, PICTURE_HEIGHT, draw)

    def png(self, captions: Mapping[str, str]) -> bytes:
        """Draw both cases side by side, each with its caption, as PNG."""

        def draw(figure: Figure) -> None:
            row = 20 / (PICTURE_HEIGHT + TITLE_HEIGHT)
            for number, (case, caption) in enumerate(captions.items()):
                left = number * PICTURE_WIDTH
                self._draw(plot_area(figure, left, 0, PICTURE_WIDTH - left, TITLE_HEIGHT), case)
                middle = (number + 0.5) / 2
                figure.text(middle, 1 - 1.1 * row, f"{case.capitalize()} gravity compensation", size=13, ha="center")
                figure.text(middle, 1 - 2.1 * row, caption, color=LIGHT["muted"], ha="center")
            key = f"grey: let go, colour: {self._later}"
            figure.text(0.5, 0.5 * row, key, size=10, color=LIGHT["muted"], ha="center")

        return png(2 * PICTURE_WIDTH, PICTURE_HEIGHT + TITLE_HEIGHT, draw)

    def _draw(self, axes: Axes, case: str) -> None:
        sticks, color = self._cases[case]
        prepare_axes(axes, self._all)
        for ghost in _evenly_along_path(sticks):
            draw_stick(axes, sticks[ghost], color, alpha=0.13, width=2)
        draw_stick(axes, sticks[0], LIGHT["measured"], alpha=0.55, width=6)
        draw_stick(axes, sticks[-1], color, width=3)


def write_drop_picture(path: str | Path, robot: RobotModel, test: DropTest) -> Path:
    """Write both cases side by side as PNG on white, for pages that cannot hold the report."""
    unit = joint_units(robot)[int(np.argmax(test.drift_without))]
    drifts = {"without": test.drift_without, "with": test.drift_compensated}
    captions = {case: f"largest drift of a joint: {distance(drift.max(), unit)}" for case, drift in drifts.items()}
    return write_atomically(path, DropPicture(robot, test).png(captions))


def _evenly_along_path(sticks: NDArray) -> NDArray:
    """Return samples at even spacing along the path of the last joint."""
    path = np.cumsum(np.linalg.norm(np.diff(sticks[:, -1], axis=0, prepend=sticks[:1, -1]), axis=1))
    return np.unique(np.searchsorted(path, np.linspace(0, path[-1], N_GHOSTS + 2)[1:-1]))
