"""Plots of a designed motion: path of the tip, distances, singular values, and the progress of the search."""

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

from dynid_ros.report.drawing import LIGHT, plot_area, spread_indices, svg
from dynid_ros.report.motion_use import Approach, MotionUse
from dynid_ros.report.plots import draw_stick

VIEW_SIZE = 320
N_STICKS = 5
"""Poses of the arm in a view."""
VIEW_MARGIN = 0.08
MAX_OBSTACLE_DISTANCE = 0.3
"""Largest growth of a view to each side for obstacles, over the extent of the motion."""
CORNERS = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
DISTANCE_WIDTH = 680
PLOT_HEIGHT = 260
HALF_WIDTH = 400
MAX_DISTANCE_MM = 300.0
"""Largest distance that is shown."""
DISTANCE_COLORS = ("identified", "uncompensated", "truth", "urdf", "measured")
MIN_SINGULAR_FRACTION = 1e-12
"""Singular value over the largest below which it counts as zero."""


@dataclass(frozen=True, eq=False)
class PathViews:
    """The path of the tip and its surroundings, in a frame with axis 3 against gravity and the origin of the base, m.

    Attributes:
        frame: (3, 3) axes of that frame as rows, in the base frame.
        tip: (M, 3) path of the tip.
        sticks: (K, J, 3) base, origins of the links and tip in some poses.
        boxes: corners (8, 3) of obstacles by name.
        walls: corners (8, 3) of the box that contains the links; None: no box, or an infinite one.
        floor: height; -inf: no floor.
        centre: (3,) centre of the views.
        half: half of the width of the views.
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
    def from_use(cls, use: MotionUse) -> PathViews:
        """Return the views of a motion."""
        workspace = use.workspace
        frame = _upright_frame(workspace.up)
        points = _stick_points(use, use.motion[0][spread_indices(len(use.time))]) @ frame.T
        boxes = {
            obstacle.name: (obstacle.centre + (CORNERS * obstacle.half) @ obstacle.rotation.T) @ frame.T
            for obstacle in workspace.obstacles
        }
        walls = None
        if workspace.box is not None and np.isfinite(workspace.box).all():
            walls = np.where(CORNERS < 0, *workspace.box) @ frame.T
        low = points.min(axis=(0, 1))
        high = points.max(axis=(0, 1))
        reach = MAX_OBSTACLE_DISTANCE * (high - low).max()
        for corners in boxes.values():
            low = np.minimum(low, np.maximum(corners.min(axis=0), low - reach))
            high = np.maximum(high, np.minimum(corners.max(axis=0), high + reach))
        half = float((0.5 + VIEW_MARGIN) * (high - low).max())
        sticks = points[np.linspace(0, len(points) - 1, N_STICKS).astype(int)]
        return cls(frame, points[:, -1], sticks, boxes, walls, workspace.floor_height, (low + high) / 2, half)

    def draw(self) -> dict[str, str]:
        """Draw each view as SVG, by the direction of view."""
        views = {"from the side": (0, 2), "from the front": (1, 2), "from above": (0, 1)}
        return {name: self._draw_view(f"Path of the tip, {name}", list(pair)) for name, pair in views.items()}

    def _draw_view(self, title: str, pair: list[int]) -> str:
        """Draw the view with these two axes of the frame to the right and upward."""

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
            axes.set_xlabel(f"{_axis_name(self.frame[pair[0]])} (m)")
            axes.set_ylabel(f"{_axis_name(self.frame[pair[1]])} (m)")

        return svg(title, VIEW_SIZE, VIEW_SIZE, draw)

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


def _upright_frame(up: NDArray) -> NDArray:
    """Return axes (3, 3) as rows: the last is `up`, the first near the x axis of the base, or y if x is upright."""
    towards = np.eye(3)[0 if abs(up[0]) < 0.7 else 1]
    across = towards - towards @ up * up
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(up, across), up])


def _axis_name(axis: NDArray) -> str:
    """Return the name of the base axis that is nearest to this axis."""
    k = int(np.argmax(np.abs(axis)))
    name = ("−" if axis[k] < 0 else "") + "xyz"[k]
    return name if abs(axis[k]) > 0.999 else f"about {name}"


def _stick_points(use: MotionUse, position: NDArray) -> NDArray:
    """Return base, origins of the links and tip (M, J, 3) in the base frame, for positions (M, n)."""
    frames = use.robot.forward_kinematics(position)
    offset = use.robot.chain.tip_offset
    tip = frames[:, -1, :3, :3] @ offset[:3, 3] + frames[:, -1, :3, 3]
    base = np.zeros((len(position), 1, 3))
    return np.concatenate([base, frames[:, :, :3, 3], tip[:, np.newaxis]], axis=1)


def _outline(points: NDArray) -> NDArray:
    return points[ConvexHull(points).vertices]


def draw_distances(time: NDArray, approaches: Sequence[Approach]) -> str:
    """Draw the distances minus the clearance over time, for as many approaches as there are colours, as SVG."""
    some = spread_indices(len(time))

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        axes.axhline(0, color=LIGHT["wrong"], linewidth=1.2, linestyle=(0, (4, 2)))
        for approach, color in zip(approaches, DISTANCE_COLORS, strict=False):
            rows = np.union1d(some, [np.argmin(approach.course)])
            axes.plot(time[rows], 1000 * approach.course[rows], color=LIGHT[color], linewidth=1.4)
            axes.plot(approach.time, 1000 * approach.margin, color=LIGHT[color], marker="o", markersize=5)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("distance − clearance (mm)")
        axes.margins(x=0)
        top = min(axes.get_ylim()[1], MAX_DISTANCE_MM)
        axes.set_ylim(1000 * min(0.0, *(approach.margin for approach in approaches)) - 0.03 * top, top)

    return svg("Distances of the links minus the clearance", DISTANCE_WIDTH, PLOT_HEIGHT, draw)


def draw_singular_values(singular_values: NDArray) -> str:
    """Draw singular values, the largest first, as SVG; those of zero are left out."""
    values = np.asarray(singular_values)
    order = np.arange(1, len(values) + 1)
    shown = values > MIN_SINGULAR_FRACTION * values.max(initial=0.0)

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        axes.vlines(order[shown], 0.5 * values[shown].min(), values[shown], color=LIGHT["band"], linewidth=2.5)
        axes.plot(order[shown], values[shown], "o", color=LIGHT["identified"], markersize=4.5)
        _set_log_scale(axes)
        axes.set_ylim(0.5 * values[shown].min(), 2.0 * values.max())
        axes.set_xlim(0, len(values) + 1)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_xlabel("number")
        axes.set_ylabel("singular value")

    return svg("Singular values of the regressor", HALF_WIDTH, PLOT_HEIGHT, draw)


def draw_search(history: Sequence[tuple[float, float]], criterion: str) -> str:
    """Draw the best criterion so far over the time of the search, as SVG."""
    time, value = np.array(history).T

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        end = max(1.05 * time[-1], 1e-3)
        axes.step([*time, end], [*value, value[-1]], where="post", color=LIGHT["identified"], linewidth=1.6)
        axes.plot(time, value, "o", color=LIGHT["identified"], markersize=4.5)
        if value.min() > 0 and value.max() > 3 * value.min():
            _set_log_scale(axes)
        axes.set_xlim(0, end)
        axes.set_xlabel("time of the search (s)")
        axes.set_ylabel(criterion)

    return svg("Best motion so far over the time of the search", HALF_WIDTH, PLOT_HEIGHT, draw)


def _set_log_scale(axes: Axes) -> None:
    """Set a logarithmic scale with plain numbers: mathematical text is not parsed in these figures."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
