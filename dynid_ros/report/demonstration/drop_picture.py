"""The arm let go without and with gravity compensation, as stick figures."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.files import write_atomically
from dynid_ros.model import RobotModel
from dynid_ros.report.demonstration.demonstration import Demonstration
from dynid_ros.report.drawing import plot_area, png, svg
from dynid_ros.report.formats import brief, distance
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.side_view import SideView, draw_stick
from dynid_ros.report.units import joint_units

WIDTH, HEIGHT = 340, 300
TITLE = 56
GHOSTS = 14
"""Poses on the way, evenly spaced along the path."""


class DropPicture:
    """Side views of both cases at one scale: start in grey, the way in faint ghosts, the end in colour."""

    def __init__(self, robot: RobotModel, demonstration: Demonstration):
        without, compensated = demonstration.position_without, demonstration.position_with
        view = SideView.of(robot, np.concatenate([without, compensated]))
        self._cases = {
            "without": (view.sticks(without), LIGHT["uncompensated"]),
            "with": (view.sticks(compensated), LIGHT["identified"]),
        }
        self._later = f"{brief(demonstration.duration)} s later"
        points = np.concatenate([sticks.reshape(-1, 2) for sticks, _ in self._cases.values()])
        margin = 0.12 * (np.ptp(points, axis=0).max() or 1.0)
        self._low, self._high = points.min(axis=0) - margin, points.max(axis=0) + margin

    def svg(self, case: str) -> str:
        """One case, "without" or "with"."""
        label = f"Side view of the arm {case} compensation, when let go and {self._later}"
        return svg(label, WIDTH, HEIGHT, lambda figure: self._draw(plot_area(figure, 0, 0, 0, 0), case))

    def png(self, captions: dict[str, str]) -> bytes:
        """Both cases side by side, each with its caption."""

        def draw(figure: Figure) -> None:
            row = 20 / (HEIGHT + TITLE)
            for number, (case, caption) in enumerate(captions.items()):
                self._draw(plot_area(figure, number * WIDTH, 0, (1 - number) * WIDTH, TITLE), case)
                middle = (number + 0.5) / 2
                figure.text(middle, 1 - 1.1 * row, f"{case.capitalize()} gravity compensation", size=13, ha="center")
                figure.text(middle, 1 - 2.1 * row, caption, color=LIGHT["muted"], ha="center")
            key = f"grey: let go, colour: {self._later}"
            figure.text(0.5, 0.5 * row, key, size=10, color=LIGHT["muted"], ha="center")

        return png(2 * WIDTH, HEIGHT + TITLE, draw)

    def _draw(self, axes: Axes, case: str) -> None:
        sticks, color = self._cases[case]
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(self._low[0], self._high[0])
        axes.set_ylim(self._low[1], self._high[1])
        axes.axhline(0, color=LIGHT["line"], linewidth=1.5, zorder=0)
        for ghost in _along_the_way(sticks):
            draw_stick(axes, sticks[ghost], color, alpha=0.13, width=2)
        draw_stick(axes, sticks[0], LIGHT["measured"], alpha=0.55, width=6)
        draw_stick(axes, sticks[-1], color, width=3)


def write_drop_picture(path: str | Path, robot: RobotModel, demonstration: Demonstration) -> Path:
    """Both cases side by side as a PNG on white, for pages that cannot hold the report."""
    unit = joint_units(robot)[int(np.argmax(demonstration.drift_without))]
    captions = {
        "without": f"largest drift of a joint: {distance(demonstration.drift_without.max(), unit)}",
        "with": f"largest drift of a joint: {distance(demonstration.drift_with.max(), unit)}",
    }
    return write_atomically(path, DropPicture(robot, demonstration).png(captions))


def _along_the_way(sticks: NDArray) -> NDArray:
    """Samples at even spacing along the path of the last joint."""
    path = np.cumsum(np.linalg.norm(np.diff(sticks[:, -1], axis=0, prepend=sticks[:1, -1]), axis=1))
    return np.unique(np.searchsorted(path, np.linspace(0, path[-1], GHOSTS + 2)[1:-1]))
