"""Use of the joint limits and distances between objects in a designed motion, and plots of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import LIGHT, PANEL_WIDTH, Plot, draw_stick, label_axes, plot_area, spread_indices, svg
from dynid_ros.report.formats import joint_units, significant
from dynid_ros.report.page import Table
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace
from dynid_ros.trajectories.limits import check_times

POSES_PER_BLOCK = 200
MIN_DISTANCE_CHANGE_M = 1e-3
"""Smallest change of a distance, m, that counts as dependence on the motion."""
MAX_TIMES = 20000
"""Largest number of checked times."""
MAX_PLOT_SAMPLES = 400
STRIP_HEIGHT = 82
STRIP_GAP = 12
BOTTOM_MARGIN = 42

VIEW_SIZE = 320
N_STICKS = 5
"""Number of poses of the arm in a view."""
VIEW_MARGIN = 0.08
MAX_OBSTACLE_DISTANCE = 0.3
"""Largest extension of a view to each side to show obstacles, over the extent of the motion."""
CORNERS = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
DISTANCE_WIDTH = 680
PLOT_HEIGHT = 260
HALF_WIDTH = 400
MAX_DISTANCE_MM = 300.0
"""Largest distance that is shown, mm."""
DISTANCE_COLORS = ("identified", "uncompensated", "truth", "urdf", "measured")
MIN_SINGULAR_FRACTION = 1e-12
"""Largest ratio to the largest singular value of a singular value that counts as zero."""


class Approach(NamedTuple):
    """Distance between two objects during a motion.

    Attributes:
        names: names of the two objects.
        margin: smallest distance minus the clearance, m.
        time: time of the smallest distance, s.
        course: (M,) distance minus the clearance over time, m.
    """

    names: str
    margin: float
    time: float
    course: NDArray

    @property
    def is_constant(self) -> bool:
        """Whether the distance is constant during the motion, as between links on both sides of one joint."""
        return bool(np.ptp(self.course) < MIN_DISTANCE_CHANGE_M)


@dataclass(frozen=True, eq=False)
class MotionUse:
    """Evaluation of a motion with respect to limits and workspace.

    Attributes:
        robot: arm, whose nominal parameters give the torque.
        limits: full limits of the joints, without the fraction that the design keeps free.
    """

    robot: RobotModel
    limits: MotionLimits
    workspace: Workspace
    trajectory: Trajectory

    @cached_property
    def time(self) -> NDArray:
        """(M,) times at which the motion is evaluated, s."""
        time = check_times(self.trajectory)
        return time[:: -(-len(time) // MAX_TIMES)]

    @cached_property
    def motion(self) -> tuple[NDArray, NDArray, NDArray]:
        """Position, velocity and acceleration (M, n)."""
        return self.trajectory.at(self.time)

    @cached_property
    def torque(self) -> NDArray | None:
        """(M, n) nominal torque of the links, N m or N; None if the URDF has no masses."""
        return self.robot.inverse_dynamics(*self.motion) if np.any(self.robot.parameters) else None

    @cached_property
    def fractions(self) -> dict[str, NDArray]:
        """(n,) used fraction of the limit of each joint, by kind of limit; NaN without a limit."""
        position, velocity, acceleration = self.motion
        middle = (self.limits.upper + self.limits.lower) / 2
        half = (self.limits.upper - self.limits.lower) / 2
        used = {
            "position": (np.abs(position - middle).max(axis=0), half),
            "velocity": (np.abs(velocity).max(axis=0), self.limits.velocity),
            "acceleration": (np.abs(acceleration).max(axis=0), self.limits.acceleration),
            "jerk": (self.jerk, self.limits.jerk),
        }
        if self.torque is not None:
            used["torque"] = (np.abs(self.torque).max(axis=0), self.limits.torque)
        return {
            kind: np.divide(value, limit, out=np.full(len(limit), np.nan), where=np.isfinite(limit))
            for kind, (value, limit) in used.items()
        }

    @cached_property
    def jerk(self) -> NDArray:
        """(n,) largest jerk of each joint, per s³."""
        return np.abs(self.trajectory.jerk_peaks()[1]).max(axis=0)

    @cached_property
    def approaches(self) -> list[Approach]:
        """Approaches of all checked pairs: first those whose distance the motion changes, each sorted by distance."""
        position = self.motion[0]
        blocks = [position[start : start + POSES_PER_BLOCK] for start in range(0, len(position), POSES_PER_BLOCK)]
        margin = np.concatenate([self.workspace.distances(block).room for block in blocks])
        names = np.array(self.workspace.names, dtype=object)
        approaches = []
        for name in dict.fromkeys(self.workspace.names):  # a link may have several capsules
            course = margin[:, names == name].min(axis=1)
            nearest = int(np.argmin(course))
            approaches.append(Approach(name, float(course[nearest]), float(self.time[nearest]), course))
        return sorted(approaches, key=lambda approach: (approach.is_constant, approach.margin))

    def most_used(self) -> dict[str, tuple[float, str]]:
        """Return the largest used fraction and its joint by kind of limit."""
        most = {}
        for kind, fractions in self.fractions.items():
            if np.isfinite(fractions).any():
                joint = int(np.nanargmax(fractions))
                most[kind] = (float(fractions[joint]), self.limits.joint_names[joint])
        return most

    def lines(self) -> list[str]:
        """Return lines of text with the smallest distance and the largest used fractions of the limits."""
        used = [f"{kind} {100 * fraction:.0f} % ({joint})" for kind, (fraction, joint) in self.most_used().items()]
        lines = [f"used of the limits: {', '.join(used)}"]
        if self.approaches:
            nearest = self.approaches[0]
            margin = f"{1000 * nearest.margin:.0f} mm more than the clearance"
            lines.insert(0, f"nearest: {nearest.names} at {nearest.time:.2f} s, {margin}")
        return lines


def limit_panels(use: MotionUse) -> list[Plot]:
    """Return a plot for each joint of position, velocity, acceleration and torque over time, with the limits."""
    plots = []
    rows = spread_indices(len(use.time), MAX_PLOT_SAMPLES)
    for joint, name in enumerate(use.limits.joint_names):
        fractions = {kind: values[joint] for kind, values in use.fractions.items() if np.isfinite(values[joint])}
        most = max(fractions, key=lambda kind: fractions[kind])
        plots.append(Plot(_draw_joint(use, joint, name, rows), name, f"{100 * fractions[most]:.0f} % of {most}"))
    return plots


def limit_table(use: MotionUse) -> Table:
    """Return the table of the range and the largest values of each joint, with the used fractions of the limits."""
    position, velocity, acceleration = use.motion
    units = joint_units(use.robot)
    low = position.min(axis=0)
    high = position.max(axis=0)
    texts = {
        "position": [
            f"{significant(unit.scale * low[j])} to {significant(unit.scale * high[j])} {unit.position}"
            for j, unit in enumerate(units)
        ]
    }
    peaks = {
        "velocity": (velocity, [unit.velocity for unit in units]),
        "acceleration": (acceleration, [f"{unit.velocity}²" for unit in units]),
        "jerk": (use.jerk[np.newaxis], [f"{unit.velocity}³" for unit in units]),
        "torque": (use.torque, [unit.effort for unit in units]),
    }
    for kind, (values, names) in peaks.items():
        if values is not None:
            largest = np.abs(values).max(axis=0)
            texts[kind] = [f"{significant(value)} {unit}" for value, unit in zip(largest, names, strict=True)]
    columns: dict[str | tuple[str, str], list[str]] = {kind.capitalize(): ["not known"] * len(units) for kind in peaks}
    columns = {"Position": [], **columns}
    for kind, cells in texts.items():
        columns[kind.capitalize()] = [
            f"{text}, {100 * fraction:.0f} %" if np.isfinite(fraction) else f"{text}, no limit"
            for text, fraction in zip(cells, use.fractions[kind], strict=True)
        ]
    return Table.by_column(
        "Joint", use.limits.joint_names, columns, folded="Largest values, and fractions of the limits"
    )


class _Strip(NamedTuple):
    """Curve (M,) of one quantity of a joint over time, with its lower and upper limit, in printed units."""

    label: str
    values: NDArray
    lower: float
    upper: float


def _strips(use: MotionUse, joint: int, rows: NDArray) -> Iterator[_Strip]:
    """Yield the curves of a joint at the times of the indices `rows`."""
    unit = joint_units(use.robot)[joint]
    limits = use.limits
    position, velocity, acceleration = use.motion
    low, high = (unit.scale * ends[joint] for ends in (limits.lower, limits.upper))
    yield _Strip(f"position ({unit.position})", unit.scale * position[rows, joint], low, high)
    for noun, values, limit, unit_name in (
        ("velocity", velocity, limits.velocity, unit.velocity),
        ("accel.", acceleration, limits.acceleration, f"{unit.velocity}²"),
        ("torque" if unit.effort == "N m" else "force", use.torque, limits.torque, unit.effort),
    ):
        if values is not None:
            yield _Strip(f"{noun} ({unit_name})", values[rows, joint], -limit[joint], limit[joint])


def _draw_joint(use: MotionUse, joint: int, name: str, rows: NDArray) -> str:
    strips = list(_strips(use, joint, rows))
    height = BOTTOM_MARGIN + len(strips) * (STRIP_HEIGHT + STRIP_GAP)

    def draw(figure: Figure) -> None:
        for k, strip in enumerate(strips):
            bottom = BOTTOM_MARGIN + (len(strips) - 1 - k) * (STRIP_HEIGHT + STRIP_GAP)
            axes = plot_area(figure, left=52, bottom=bottom, top=height - bottom - STRIP_HEIGHT)
            _draw_strip(axes, strip, use.time[rows])
            is_last = k == len(strips) - 1
            label_axes(axes, "time (s)" if is_last else "", strip.label)
            axes.yaxis.label.set_fontsize(10)
            axes.yaxis.set_major_locator(MaxNLocator(3))
            if not is_last:
                axes.tick_params(axis="x", labelbottom=False)

    return svg(f"Motion of {name} within its limits", PANEL_WIDTH, height, draw)


def _draw_strip(axes: Axes, strip: _Strip, time: NDArray) -> None:
    """Draw the curve, and its limits as dashed lines."""
    bounds = [bound for bound in (strip.lower, strip.upper) if np.isfinite(bound)]
    for bound in bounds:
        axes.axhline(bound, color=LIGHT["wrong"], linewidth=1.0, linestyle=(0, (4, 2)))
    axes.plot(time, strip.values, color=LIGHT["identified"], linewidth=1.3)
    if bounds:
        low = min(*bounds, strip.values.min())
        high = max(*bounds, strip.values.max())
        axes.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    else:
        axes.text(0.98, 0.9, "no limit", transform=axes.transAxes, ha="right", va="top", size=9, color=LIGHT["muted"])
    axes.margins(x=0)


@dataclass(frozen=True, eq=False)
class PathViews:
    """Views of the path of the tip and its surroundings.

    All coordinates, m, are in an upright frame: the third axis is against gravity, the origin is that of the base.

    Attributes:
        frame: (3, 3) axes of this frame as rows, in the base frame.
        tip: (M, 3) path of the tip.
        sticks: (K, J, 3) base, origins of the links and tip in some poses.
        boxes: corners (8, 3) of obstacles by name.
        walls: corners (8, 3) of the box that contains the links; None: no box, or an infinite one.
        floor: height of the floor; -inf: no floor.
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
        """Draw the view whose horizontal and vertical axis are the two axes `pair` of the frame."""

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
    """Return axes (3, 3) as rows: the last is `up`, the first is close to the base's x axis, or to y if x is steep."""
    towards = np.eye(3)[0 if abs(up[0]) < 0.7 else 1]
    across = towards - towards @ up * up
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(up, across), up])


def _axis_name(axis: NDArray) -> str:
    """Return the name of the base axis that is nearest to this axis, with "about" if they differ."""
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
    """Draw the distances minus the clearance over time as SVG, for the first approaches, one for each colour."""
    spread = spread_indices(len(time))

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        axes.axhline(0, color=LIGHT["wrong"], linewidth=1.2, linestyle=(0, (4, 2)))
        for approach, color in zip(approaches, DISTANCE_COLORS, strict=False):
            rows = np.union1d(spread, [np.argmin(approach.course)])
            axes.plot(time[rows], 1000 * approach.course[rows], color=LIGHT[color], linewidth=1.4)
            axes.plot(approach.time, 1000 * approach.margin, color=LIGHT[color], marker="o", markersize=5)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("distance − clearance (mm)")
        axes.margins(x=0)
        top = min(axes.get_ylim()[1], MAX_DISTANCE_MM)
        axes.set_ylim(1000 * min(0.0, *(approach.margin for approach in approaches)) - 0.03 * top, top)

    return svg("Distances of the links minus the clearance", DISTANCE_WIDTH, PLOT_HEIGHT, draw)


def draw_singular_values(singular_values: NDArray) -> str:
    """Draw singular values, largest first, as SVG; zeros are omitted."""
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
    """Draw the best value of the criterion over the time of the search, as SVG."""
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
