"""Motion of each joint over time, beside its limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.formats import significant
from dynid_ros.report.motion.motion_use import MotionUse
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, label_axes
from dynid_ros.report.units import joint_units

STRIP, GAP, BOTTOM = 82, 12, 42
LONGEST = 400
"""Samples in a plot: more of them would be narrower than what they show."""


class UsePanel(NamedTuple):
    """One joint: its name, what it uses most of, and SVG."""

    joint: str
    note: str
    picture: str


class _Strip(NamedTuple):
    label: str
    values: NDArray
    lower: float
    upper: float


def use_panels(use: MotionUse) -> Iterator[UsePanel]:
    """A panel per joint, base to tip: position, velocity, acceleration and torque within their limits."""
    some = np.unique(np.linspace(0, len(use.time) - 1, LONGEST).astype(int))
    for joint, name in enumerate(use.limits.joint_names):
        parts = {kind: values[joint] for kind, values in use.parts.items() if np.isfinite(values[joint])}
        most = max(parts, key=lambda kind: parts[kind])
        yield UsePanel(name, f"{100 * parts[most]:.0f} % of {most}", _picture(use, joint, name, some))


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


def use_rows(use: MotionUse) -> Iterator[tuple[str, list[str]]]:
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
        yield name, cells


def _cell(text: str, part: float) -> str:
    return f"{text}, {100 * part:.0f} %" if np.isfinite(part) else f"{text}, no limit"
