"""What a planned motion uses of the limits of the joints, and how near the links come to what they must not touch."""

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
from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg
from dynid_ros.report.formats import joint_units, significant
from dynid_ros.report.page import Plot
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace
from dynid_ros.trajectories.limits import check_times

BLOCK = 200
"""Poses looked at together."""
STEADY = 1e-3
"""A distance that changes less does not depend on the motion, m."""
MOST = 20000
"""Times looked at, at most, for distances."""


class Approach(NamedTuple):
    """How near two things come.

    Attributes:
        names: what comes near to what.
        room: least distance less the clearance that is asked for, m.
        time: when, s.
        course: (M,) that distance over time, m.
    """

    names: str
    room: float
    time: float
    course: NDArray

    @property
    def steady(self) -> bool:
        """Whether it is the same throughout, as between links with one joint between them."""
        return bool(np.ptp(self.course) < STEADY)


@dataclass(frozen=True, eq=False)
class MotionUse:
    """A motion compared with its limits.

    Attributes:
        robot: the arm; its nominal parameters give the torque.
        limits: what the joints may do.
        workspace: where the links may be.
        trajectory: the motion.
    """

    robot: RobotModel
    limits: MotionLimits
    workspace: Workspace
    trajectory: Trajectory

    @cached_property
    def time(self) -> NDArray:
        """(M,) times that are looked at, s."""
        time = check_times(self.trajectory)
        return time[:: -(-len(time) // MOST)]

    @cached_property
    def motion(self) -> tuple[NDArray, NDArray, NDArray]:
        """Position, velocity and acceleration (M, n)."""
        return self.trajectory.at(self.time)

    @cached_property
    def torque(self) -> NDArray | None:
        """(M, n) nominal torque of the links; None where the robot's description has no masses."""
        return self.robot.inverse_dynamics(*self.motion) if np.any(self.robot.parameters) else None

    @cached_property
    def jerk(self) -> NDArray:
        """(n,) highest."""
        return np.abs(self.trajectory.jerk_peaks()[1]).max(axis=0)

    @cached_property
    def parts(self) -> dict[str, NDArray]:
        """(n,) parts of each limit that are used, by its name; NaN where nothing limits."""
        position, velocity, acceleration = self.motion
        middle, half = (self.limits.upper + self.limits.lower) / 2, (self.limits.upper - self.limits.lower) / 2
        found = {
            "position": np.abs(position - middle).max(axis=0) / half,
            "velocity": np.abs(velocity).max(axis=0) / self.limits.velocity,
            "acceleration": np.abs(acceleration).max(axis=0) / self.limits.acceleration,
            "jerk": _part(self.jerk, self.limits.jerk),
        }
        if self.torque is not None:
            found["torque"] = _part(np.abs(self.torque).max(axis=0), self.limits.torque)
        return found

    @cached_property
    def approaches(self) -> list[Approach]:
        """The least distance between each two things that are kept apart: those that change, the nearest first."""
        position = self.motion[0]
        starts = range(0, len(position), BLOCK)
        rooms = [self.workspace.distances(position[start : start + BLOCK]).room for start in starts]
        room = np.concatenate(rooms)
        # A link may be several bodies.
        columns: dict[str, list[int]] = {}
        for column, name in enumerate(self.workspace.names):
            columns.setdefault(name, []).append(column)
        found = []
        for name, own in columns.items():
            course = room[:, own].min(axis=1)
            k = int(np.argmin(course))
            found.append(Approach(name, float(course[k]), float(self.time[k]), course))
        return sorted(found, key=lambda approach: (approach.steady, approach.room))

    def lines(self) -> list[str]:
        """What comes nearest to what, and what is used most of each limit."""
        lines = []
        if self.approaches:
            nearest = self.approaches[0]
            lines.append(
                f"nearest: {nearest.names} at {nearest.time:.2f} s, {1000 * nearest.room:.0f} mm more than they must "
                "be apart"
            )
        used = []
        for kind, parts in self.parts.items():
            if np.isfinite(parts).any():
                joint = int(np.nanargmax(parts))
                used.append(f"{kind} {100 * parts[joint]:.0f} % ({self.limits.joint_names[joint]})")
        return [*lines, f"used of the limits: {', '.join(used)}"]


def _part(used: NDArray, limit: NDArray) -> NDArray:
    return np.where(np.isfinite(limit), used / np.where(np.isfinite(limit), limit, 1.0), np.nan)


# Motion of each joint over time, compared with its limits.


STRIP, GAP, BOTTOM = 82, 12, 42
LONGEST = 400
"""Samples in a plot: more of them would be narrower than what they show."""


class _Strip(NamedTuple):
    label: str
    values: NDArray
    lower: float
    upper: float


def use_panels(use: MotionUse) -> list[Plot]:
    """Return a panel per joint, base to tip: position, velocity, acceleration and torque within their limits."""
    plots = []
    some = np.unique(np.linspace(0, len(use.time) - 1, LONGEST).astype(int))
    for joint, name in enumerate(use.limits.joint_names):
        parts = {kind: values[joint] for kind, values in use.parts.items() if np.isfinite(values[joint])}
        most = max(parts, key=lambda kind: parts[kind])
        plots.append(Plot(_picture(use, joint, name, some), name, f"{100 * parts[most]:.0f} % of {most}"))
    return plots


def _strips(use: MotionUse, joint: int, some: NDArray) -> Iterator[_Strip]:
    unit = joint_units(use.robot)[joint]
    limits, (position, velocity, acceleration) = use.limits, use.motion
    low, high = (unit.scale * ends[joint] for ends in (limits.lower, limits.upper))
    yield _Strip(f"position ({unit.position})", unit.scale * position[some, joint], low, high)
    for noun, values, limit, measure in (
        ("velocity", velocity, limits.velocity, unit.velocity),
        ("accel.", acceleration, limits.acceleration, f"{unit.velocity}²"),
        ("torque" if unit.effort == "N m" else "force", use.torque, limits.torque, unit.effort),
    ):
        if values is not None:
            yield _Strip(f"{noun} ({measure})", values[some, joint], -limit[joint], limit[joint])


def _picture(use: MotionUse, joint: int, name: str, some: NDArray) -> str:
    strips = list(_strips(use, joint, some))
    height = BOTTOM + len(strips) * (STRIP + GAP)

    def draw(figure: Figure) -> None:
        for row, strip in enumerate(strips):
            bottom = BOTTOM + (len(strips) - 1 - row) * (STRIP + GAP)
            axes = plot_area(figure, left=52, bottom=bottom, top=height - bottom - STRIP)
            _draw_strip(axes, strip, use.time[some])
            last = row == len(strips) - 1
            label_axes(axes, "time (s)" if last else "", strip.label)
            axes.yaxis.label.set_fontsize(10)
            axes.yaxis.set_major_locator(MaxNLocator(3))
            if not last:
                axes.tick_params(axis="x", length=0, labelbottom=False)

    return svg(f"Motion of {name} within its limits", WIDTH, height, draw)


def _draw_strip(axes: Axes, strip: _Strip, time: NDArray) -> None:
    """The curve; limits as lines where there are any, with room for what passes them."""
    bounds = [bound for bound in (strip.lower, strip.upper) if np.isfinite(bound)]
    for bound in bounds:
        axes.axhline(bound, color=LIGHT["wrong"], linewidth=1.0, linestyle=(0, (4, 2)))
    axes.plot(time, strip.values, color=LIGHT["identified"], linewidth=1.3)
    if bounds:
        low, high = (f([*bounds, f(strip.values)]) for f in (np.min, np.max))
        axes.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    else:
        axes.text(0.98, 0.9, "no limit", transform=axes.transAxes, ha="right", va="top", size=9, color=LIGHT["muted"])
    axes.margins(x=0)


def use_rows(use: MotionUse) -> Iterator[list[str]]:
    """Joint, and as text its range, and the highest of velocity, acceleration, jerk and torque with parts of limits."""
    position, velocity, acceleration = use.motion
    units = joint_units(use.robot)
    for joint, name in enumerate(use.limits.joint_names):
        unit = units[joint]
        ends = [f"{significant(unit.scale * f(position[:, joint]))}" for f in (np.min, np.max)]
        cells = [_cell(f"{ends[0]} to {ends[1]} {unit.position}", use.parts["position"][joint])]
        for kind, values, measure in (
            ("velocity", velocity, unit.velocity),
            ("acceleration", acceleration, f"{unit.velocity}²"),
            ("jerk", use.jerk[np.newaxis], f"{unit.velocity}³"),
            ("torque", use.torque, unit.effort),
        ):
            if values is None:
                cells.append("not known")
                continue
            highest = np.abs(values[:, joint]).max()
            cells.append(_cell(f"{significant(highest)} {measure}", use.parts[kind][joint]))
        yield [name, *cells]


def _cell(text: str, part: float) -> str:
    return f"{text}, {100 * part:.0f} %" if np.isfinite(part) else f"{text}, no limit"
