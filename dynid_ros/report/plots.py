"""A measured signal over time, what a model makes of it, and the error below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg, thinned

# Plots with a named row for each joint or parameter.


ROW_WIDTH = 340
ROW = 22
LONGEST_NAME = 20


def rows_height(count: int) -> int:
    """Height of a figure with that many rows."""
    return ROW * count + 50


def row_axes(figure: Figure, names: Sequence[tuple[str, ...]], right: float = 12) -> Axes:
    """Axes with a row for each name, the first on top, at y = 0, the next at 1.

    Args:
        figure: filled by the axes.
        names: joint, and what of the joint if it has several rows.
        right: margin, in page units.

    """
    labels = [" ".join([_shortened(joint), *what]) for joint, *what in names]
    axes = plot_area(figure, left=10 + 6.2 * max(map(len, labels)), bottom=40, right=right, top=4)
    axes.set_yticks(np.arange(len(labels)), labels=labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    return axes


def error_plot(names: Sequence[str], error: NDArray, label: str) -> str:
    """Errors (N, rows) as points about a line at zero, thinned if many; `label` names them and their unit.

    Points are spread within their row, the same way each time, so that they do not hide each other.
    """
    some = thinned(len(error))
    spread = 0.3 * np.sin(2.4 * np.arange(len(some)))

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, [(name,) for name in names])
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        for row in range(len(names)):
            axes.plot(
                error[some, row],
                row + spread,
                linestyle="none",
                marker="o",
                markersize=2.6,
                markeredgewidth=0,
                color=LIGHT["identified"],
                alpha=0.55,
            )
        axes.set_xlabel(label)

    return svg(label, ROW_WIDTH, rows_height(len(names)), draw)


def interval_bars(axes: Axes, value: NDArray, half: NDArray) -> None:
    """Values (rows,) as points with bars of half widths (rows,); none in a row of NaN."""
    axes.errorbar(
        value,
        np.arange(len(value)),
        xerr=half,
        linestyle="none",
        marker="o",
        markersize=4,
        color=LIGHT["identified"],
        elinewidth=1.6,
        capsize=3,
        capthick=1.2,
    )


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


# The arm as a stick figure, seen from the side on which it moves most.


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
    def of(cls, robot: RobotModel, position: NDArray) -> SideView:
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


HEIGHT, ERRORS = 250, 62
LONGEST = 360
"""Samples in a plot over time: more of them would be narrower than what they show."""


def middle(rows: slice) -> slice:
    """The middle of a stretch of rows, no longer than can be shown."""
    spare = max(rows.stop - rows.start - LONGEST, 0) // 2
    return slice(rows.start + spare, min(rows.start + spare + LONGEST, rows.stop))


def prediction_plot(
    label: str,
    quantity: str,
    across: NDArray,
    measured: NDArray,
    predicted: NDArray,
    *,
    urdf: NDArray | None = None,
    rests: bool = False,
) -> str:
    """SVG of two signals.

    Args:
        label: of the picture.
        quantity: with its unit, as in "torque (N m)".
        across: (N,) s, or numbers of dwells.
        measured: (N,).
        predicted: (N,) by what was identified.
        urdf: (N,) by the URDF, to compare with.
        rests: the signals are those of dwells, each by itself: points, not lines.

    """
    large: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.0} if rests else {}
    small = large | {"markersize": 2.5}

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + ERRORS)
        below = plot_area(figure, left=52, bottom=40, top=HEIGHT - 40 - ERRORS)
        below.axhline(0, color=LIGHT["measured"], linewidth=0.8)
        if urdf is not None:
            above.plot(across, urdf, color=LIGHT["urdf"], linewidth=1.6, **small)
            below.plot(across, measured - urdf, color=LIGHT["urdf"], linewidth=1.4, **small)
        above.plot(across, measured, color=LIGHT["measured"], linewidth=2.0, **large)
        above.plot(across, predicted, color=LIGHT["identified"], linewidth=1.1, **small)
        below.plot(across, measured - predicted, color=LIGHT["identified"], linewidth=1.0, **small)
        label_axes(above, "", quantity)
        above.tick_params(axis="x", length=0, labelbottom=False)
        label_axes(below, "rest" if rests else "time (s)", "error")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            if rests:
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            else:
                axes.margins(x=0)

    return svg(label, WIDTH, HEIGHT, draw)
