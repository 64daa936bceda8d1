"""How a motion was found and what it excites: distances, singular values, the course of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from dynid_ros.report.drawing import LIGHT, plot_area, svg, thinned
from dynid_ros.report.motion_use import Approach, MotionUse
from dynid_ros.report.plots import draw_stick

# Where the tip of the arm goes, seen from the side, from the front and from above, with floor, box and obstacles.


PATH_VIEWS_WIDTH, PATH_VIEWS_HEIGHT = 320, 320
STICKS = 5
"""Poses of the arm that are drawn."""
MARGIN = 0.08
NEARBY = 0.3
"""Parts of the arm's room by which the picture grows for obstacles, at most, to each side."""
CORNERS = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T


@dataclass(frozen=True, eq=False)
class PathViews:
    """Points in a frame with axis 3 against gravity, about the base's origin, m.

    Attributes:
        frame: (3, 3) rows are its axes in the base frame.
        tip: (M, 3).
        sticks: (K, J, 3) base, links' origins and tip in some poses.
        boxes: corners (8, 3) of obstacles, by their names.
        walls: corners (8, 3) of the box the links stay in; None: no box, or one without an end.
        floor: height; -inf: none.
        centre: (3,) of what is shown.
        half: half of the width of what is shown.
    """

    frame: NDArray
    tip: NDArray
    sticks: NDArray
    boxes: dict[str, NDArray]
    walls: NDArray | None
    floor: float
    centre: NDArray
    half: float

    @classmethod
    def of(cls, use: MotionUse) -> PathViews:
        """Of a motion."""
        workspace = use.workspace
        frame = _frame(workspace.up)
        position = use.motion[0][thinned(len(use.time))]
        origins = _stick_points(use, position) @ frame.T
        tip = origins[:, -1]
        sticks = origins[np.linspace(0, len(origins) - 1, STICKS).astype(int)]
        boxes = {
            obstacle.name: (obstacle.centre + (CORNERS * obstacle.half) @ obstacle.rotation.T) @ frame.T
            for obstacle in workspace.obstacles
        }
        walls = None
        if workspace.box is not None and np.isfinite(workspace.box).all():
            lower, upper = workspace.box
            walls = np.where(CORNERS < 0, lower, upper) @ frame.T
        lowest, highest = origins.min(axis=(0, 1)), origins.max(axis=(0, 1))
        # Obstacles belong to the picture, but not those far away.
        reach = NEARBY * (highest - lowest).max()
        for corners in boxes.values():
            lowest = np.minimum(lowest, np.maximum(corners.min(axis=0), lowest - reach))
            highest = np.maximum(highest, np.minimum(corners.max(axis=0), highest + reach))
        half = (0.5 + MARGIN) * (highest - lowest).max()
        return cls(frame, tip, sticks, boxes, walls, workspace.floor_height, (lowest + highest) / 2, float(half))

    def pictures(self) -> dict[str, str]:
        """SVG of each view, by what it is seen from."""
        x, y, z = (_axis_name(axis) for axis in self.frame)
        return {
            "from the side": self._view("Path of the tip, from the side", (0, 2), (x, z)),
            "from the front": self._view("Path of the tip, from the front", (1, 2), (y, z)),
            "from above": self._view("Path of the tip, from above", (0, 1), (x, y)),
        }

    def _view(self, title: str, axes_shown: tuple[int, int], names: tuple[str, str]) -> str:
        pair = list(axes_shown)

        def draw(figure: Figure) -> None:
            axes = plot_area(figure, left=52, bottom=42)
            across, upward = self.centre[pair]
            axes.set_xlim(across - self.half, across + self.half)
            axes.set_ylim(upward - self.half, upward + self.half)
            axes.set_aspect("equal", adjustable="box")
            self._draw_surroundings(axes, pair)
            for stick in self.sticks:
                draw_stick(axes, stick[:, pair], LIGHT["measured"], alpha=0.3, width=2.5)
            axes.plot(*self.tip[:, pair].T, color=LIGHT["identified"], linewidth=1.3)
            axes.plot(*self.tip[0, pair], color=LIGHT["truth"], marker="o", markersize=6, markeredgewidth=0)
            axes.set_xlabel(f"{names[0]} (m)")
            axes.set_ylabel(f"{names[1]} (m)")

        return svg(title, PATH_VIEWS_WIDTH, PATH_VIEWS_HEIGHT, draw)

    def _draw_surroundings(self, axes: Axes, pair: list[int]) -> None:
        if 2 in pair and np.isfinite(self.floor):
            bottom = axes.get_ylim()[0]
            axes.axhspan(bottom, max(self.floor, bottom), color=LIGHT["line"], alpha=0.6, linewidth=0)
            axes.axhline(self.floor, color=LIGHT["measured"], linewidth=1.2)
        if self.walls is not None:
            axes.add_patch(Polygon(_outline(self.walls[:, pair]), fill=False, color=LIGHT["wrong"], linestyle="--"))
        for corners in self.boxes.values():
            outline = _outline(corners[:, pair])
            axes.add_patch(Polygon(outline, facecolor=LIGHT["urdf"], edgecolor=LIGHT["wrong"], alpha=0.7))


def _frame(up: NDArray) -> NDArray:
    """Axes (3, 3): the last is `up`, the first the base's x, or its y where that is nearly upright."""
    towards = np.eye(3)[0 if abs(up[0]) < 0.7 else 1]
    across = towards - towards @ up * up
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(up, across), up])


def _axis_name(axis: NDArray) -> str:
    """The base's axis that this one is, or else the largest part of it, in words."""
    k = int(np.argmax(np.abs(axis)))
    name = ("−" if axis[k] < 0 else "") + "xyz"[k]
    return name if abs(axis[k]) > 0.999 else f"about {name}"


def _stick_points(use: MotionUse, position: NDArray) -> NDArray:
    """(M, J, 3) base, origins of the links and the tip, in the base frame."""
    frames = use.robot.forward_kinematics(position)
    offset = use.robot.chain.tip_offset
    tip = frames[:, -1, :3, :3] @ offset[:3, 3] + frames[:, -1, :3, 3]
    base = np.zeros((len(position), 1, 3))
    return np.concatenate([base, frames[:, :, :3, 3], tip[:, np.newaxis]], axis=1)


def _outline(points: NDArray) -> NDArray:
    return points[ConvexHull(points).vertices]


WIDTH, HEIGHT = 680, 260
HALF = 400
FAR = 300.0
"""Distances that are not shown, mm: nobody asks how far away is safe."""
COLORS = ("identified", "uncompensated", "truth", "urdf", "measured")


def distance_plot(time: NDArray, approaches: Sequence[Approach]) -> str:
    """Distance left over time of the nearest things, as many as there are colours; zero is the bound."""
    some = thinned(len(time))

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        axes.axhline(0, color=LIGHT["wrong"], linewidth=1.2, linestyle=(0, (4, 2)))
        for approach, color in zip(approaches, COLORS, strict=False):
            rows = np.union1d(some, [np.argmin(approach.course)])
            axes.plot(time[rows], 1000 * approach.course[rows], color=LIGHT[color], linewidth=1.4)
            axes.plot(approach.time, 1000 * approach.room, color=LIGHT[color], marker="o", markersize=5)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("room left (mm)")
        axes.margins(x=0)
        top = min(axes.get_ylim()[1], FAR)
        axes.set_ylim(1000 * min(0.0, *(approach.room for approach in approaches)) - 0.03 * top, top)

    return svg("Room left between the nearest links and what they must not touch", WIDTH, HEIGHT, draw)


def spectrum_plot(singular_values: NDArray) -> str:
    """Singular values, largest first, those of zero left out."""
    values = np.asarray(singular_values)
    order = np.arange(1, len(values) + 1)
    shown = values > 1e-12 * values.max(initial=0.0)

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        axes.vlines(order[shown], 0.5 * values[shown].min(), values[shown], color=LIGHT["band"], linewidth=2.5)
        axes.plot(order[shown], values[shown], "o", color=LIGHT["identified"], markersize=4.5)
        _logarithmic(axes)
        axes.set_ylim(0.5 * values[shown].min(), 2.0 * values.max())
        axes.set_xlim(0, len(values) + 1)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_xlabel("singular value, number")
        axes.set_ylabel("size")

    return svg("Singular values of the regressor", HALF, HEIGHT, draw)


def search_plot(history: Sequence[tuple[float, float]], criterion: str) -> str:
    """The best value so far over the time of the search."""
    time, value = np.array(history).T

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        end = max(1.05 * time[-1], 1e-3)
        axes.step([*time, end], [*value, value[-1]], where="post", color=LIGHT["identified"], linewidth=1.6)
        axes.plot(time, value, "o", color=LIGHT["identified"], markersize=4.5)
        if value.min() > 0 and value.max() > 3 * value.min():
            _logarithmic(axes)
        axes.set_xlim(0, end)
        axes.set_xlabel("time of the search (s)")
        axes.set_ylabel(criterion)

    return svg("The best motion so far over the time of the search", HALF, HEIGHT, draw)


def _logarithmic(axes: Axes) -> None:
    """A scale with plain numbers: mathematical text is not parsed in these figures."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
