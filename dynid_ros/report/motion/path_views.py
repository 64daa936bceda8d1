"""Where the tip of the arm goes, seen from the side, from the front and from above, with floor, box and obstacles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from dynid_ros.report.drawing import plot_area, svg, thinned
from dynid_ros.report.motion.motion_use import MotionUse
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.side_view import draw_stick

WIDTH, HEIGHT = 320, 320
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

        return svg(title, WIDTH, HEIGHT, draw)

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
