"""Torque over time: measured, by the identified model and by the URDF, with the errors of both below."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.formats import with_unit
from dynid_ros.report.links.comparison import TorqueComparison
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, Panel, label_axes
from dynid_ros.report.units import joint_units

HEIGHT, ERRORS = 250, 62
LONGEST = 360
"""Samples in a plot: more of them would be narrower than what they show."""


def window(comparison: TorqueComparison) -> slice:
    """Rows that are shown: the middle of the longest stretch."""
    rows = comparison.longest
    spare = max(rows.stop - rows.start - LONGEST, 0) // 2
    return slice(rows.start + spare, min(rows.start + spare + LONGEST, rows.stop))


def series_panels(robot: RobotModel, comparison: TorqueComparison) -> Iterator[Panel]:
    """A panel per joint, base to tip; its RMS is that of the whole recording."""
    rows = window(comparison)
    for joint, (name, unit) in enumerate(zip(robot.joint_names, joint_units(robot), strict=True)):
        rms, urdf_rms = (
            float(np.sqrt(np.mean((comparison.measured - predicted)[:, joint] ** 2)))
            for predicted in (comparison.identified, comparison.urdf)
        )
        note = f"URDF off by {with_unit(urdf_rms, unit.effort, 2)}"
        yield Panel(name, note, _picture(comparison, rows, joint, name, unit.effort), rms, unit.effort)


def _picture(comparison: TorqueComparison, rows: slice, joint: int, name: str, effort: str) -> str:
    time = comparison.time[rows]
    measured, identified, urdf = (x[rows, joint] for x in (comparison.measured, comparison.identified, comparison.urdf))

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + ERRORS)
        above.plot(time, urdf, color=LIGHT["urdf"], linewidth=1.6)
        above.plot(time, measured, color=LIGHT["measured"], linewidth=2.0)
        above.plot(time, identified, color=LIGHT["identified"], linewidth=1.1)
        label_axes(above, "", f"torque ({effort})")
        above.tick_params(axis="x", length=0, labelbottom=False)
        below = plot_area(figure, left=52, bottom=40, top=HEIGHT - 40 - ERRORS)
        below.axhline(0, color=LIGHT["measured"], linewidth=0.8)
        below.plot(time, measured - urdf, color=LIGHT["urdf"], linewidth=1.4)
        below.plot(time, measured - identified, color=LIGHT["identified"], linewidth=1.0)
        label_axes(below, "time (s)", "error")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            axes.margins(x=0)

    return svg(f"Torque of {name} over time, measured and predicted", WIDTH, HEIGHT, draw)
