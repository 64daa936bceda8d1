"""A designed motion against the limits of its joints, and the distances between its links and their surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import LIGHT, PANEL_WIDTH, label_axes, plot_area, spread_indices, svg
from dynid_ros.report.formats import joint_units, significant
from dynid_ros.report.page import Plot, Table
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace
from dynid_ros.trajectories.limits import check_times

POSES_PER_BLOCK = 200
MIN_DISTANCE_CHANGE_M = 1e-3
"""Change of a distance below which it does not depend on the motion."""
MAX_TIMES = 20000
MAX_PLOT_SAMPLES = 400
STRIP_HEIGHT = 82
STRIP_GAP = 12
BOTTOM_MARGIN = 42


class Approach(NamedTuple):
    """Smallest distance between two things.

    Attributes:
        names: the two things.
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
        """Whether the motion does not change the distance, as between links with one joint between them."""
        return bool(np.ptp(self.course) < MIN_DISTANCE_CHANGE_M)


@dataclass(frozen=True, eq=False)
class MotionUse:
    """A motion and its limits.

    Attributes:
        robot: arm, whose nominal parameters give the torque.
        limits: limits of the joints.
        workspace: allowed space of the links.
        trajectory: motion.
    """

    robot: RobotModel
    limits: MotionLimits
    workspace: Workspace
    trajectory: Trajectory

    @cached_property
    def time(self) -> NDArray:
        """(M,) times that are checked, s."""
        time = check_times(self.trajectory)
        return time[:: -(-len(time) // MAX_TIMES)]

    @cached_property
    def motion(self) -> tuple[NDArray, NDArray, NDArray]:
        """Position, velocity and acceleration (M, n)."""
        return self.trajectory.at(self.time)

    @cached_property
    def torque(self) -> NDArray | None:
        """(M, n) nominal torque of the links; None where the URDF has no masses."""
        return self.robot.inverse_dynamics(*self.motion) if np.any(self.robot.parameters) else None

    @cached_property
    def fractions(self) -> dict[str, NDArray]:
        """(n,) used fraction of each limit by its name; NaN without a limit."""
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
        """(n,) largest jerk of each joint."""
        return np.abs(self.trajectory.jerk_peaks()[1]).max(axis=0)

    @cached_property
    def approaches(self) -> list[Approach]:
        """Approaches of all pairs that are kept apart: those that the motion changes first, then by distance."""
        position = self.motion[0]
        blocks = [position[start : start + POSES_PER_BLOCK] for start in range(0, len(position), POSES_PER_BLOCK)]
        margin = np.concatenate([self.workspace.distances(block).room for block in blocks])
        names = np.array(self.workspace.names, dtype=object)
        approaches = []
        for name in dict.fromkeys(self.workspace.names):  # a link may consist of several bodies
            course = margin[:, names == name].min(axis=1)
            nearest = int(np.argmin(course))
            approaches.append(Approach(name, float(course[nearest]), float(self.time[nearest]), course))
        return sorted(approaches, key=lambda approach: (approach.is_constant, approach.margin))

    def most_used(self) -> dict[str, tuple[float, str]]:
        """Return the largest used fraction of each limit and its joint, by the name of the limit."""
        most = {}
        for kind, fractions in self.fractions.items():
            if np.isfinite(fractions).any():
                joint = int(np.nanargmax(fractions))
                most[kind] = (float(fractions[joint]), self.limits.joint_names[joint])
        return most

    def lines(self) -> list[str]:
        """Return the smallest distance and the most used limits as lines of text."""
        used = [f"{kind} {100 * fraction:.0f} % ({joint})" for kind, (fraction, joint) in self.most_used().items()]
        lines = [f"used of the limits: {', '.join(used)}"]
        if self.approaches:
            nearest = self.approaches[0]
            margin = f"{1000 * nearest.margin:.0f} mm more than the clearance"
            lines.insert(0, f"nearest: {nearest.names} at {nearest.time:.2f} s, {margin}")
        return lines


def limit_panels(use: MotionUse) -> list[Plot]:
    """Return position, velocity, acceleration and torque of each joint over time, between the limits."""
    plots = []
    some = spread_indices(len(use.time), MAX_PLOT_SAMPLES)
    for joint, name in enumerate(use.limits.joint_names):
        fractions = {kind: values[joint] for kind, values in use.fractions.items() if np.isfinite(values[joint])}
        most = max(fractions, key=lambda kind: fractions[kind])
        plots.append(Plot(_draw_joint(use, joint, name, some), name, f"{100 * fractions[most]:.0f} % of {most}"))
    return plots


def limit_table(use: MotionUse) -> Table:
    """Return the range and the largest velocity, acceleration, jerk and torque of each joint, with used fractions."""
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
    """Curve of one quantity of a joint over time, and its limits."""

    label: str
    values: NDArray
    lower: float
    upper: float


def _strips(use: MotionUse, joint: int, some: NDArray) -> Iterator[_Strip]:
    unit = joint_units(use.robot)[joint]
    limits = use.limits
    position, velocity, acceleration = use.motion
    low, high = (unit.scale * ends[joint] for ends in (limits.lower, limits.upper))
    yield _Strip(f"position ({unit.position})", unit.scale * position[some, joint], low, high)
    for noun, values, limit, unit_name in (
        ("velocity", velocity, limits.velocity, unit.velocity),
        ("accel.", acceleration, limits.acceleration, f"{unit.velocity}²"),
        ("torque" if unit.effort == "N m" else "force", use.torque, limits.torque, unit.effort),
    ):
        if values is not None:
            yield _Strip(f"{noun} ({unit_name})", values[some, joint], -limit[joint], limit[joint])


def _draw_joint(use: MotionUse, joint: int, name: str, some: NDArray) -> str:
    strips = list(_strips(use, joint, some))
    height = BOTTOM_MARGIN + len(strips) * (STRIP_HEIGHT + STRIP_GAP)

    def draw(figure: Figure) -> None:
        for row, strip in enumerate(strips):
            bottom = BOTTOM_MARGIN + (len(strips) - 1 - row) * (STRIP_HEIGHT + STRIP_GAP)
            axes = plot_area(figure, left=52, bottom=bottom, top=height - bottom - STRIP_HEIGHT)
            _draw_strip(axes, strip, use.time[some])
            is_last = row == len(strips) - 1
            label_axes(axes, "time (s)" if is_last else "", strip.label)
            axes.yaxis.label.set_fontsize(10)
            axes.yaxis.set_major_locator(MaxNLocator(3))
            if not is_last:
                axes.tick_params(axis="x", length=0, labelbottom=False)

    return svg(f"Motion of {name} within its limits", PANEL_WIDTH, height, draw)


def _draw_strip(axes: Axes, strip: _Strip, time: NDArray) -> None:
    """Draw the curve between its limits as dashed lines, with a margin beyond both."""
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
