"""Torque over time: measured, by the identified model and by the URDF, with the errors of both below."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid_ros.model import RobotModel
from dynid_ros.report.formats import with_unit
from dynid_ros.report.links.comparison import TorqueComparison
from dynid_ros.report.panel import Panel
from dynid_ros.report.prediction_plot import middle, prediction_plot
from dynid_ros.report.units import joint_units


def window(comparison: TorqueComparison) -> slice:
    """Rows that are shown: the middle of the longest stretch."""
    return middle(comparison.longest)


def series_panels(robot: RobotModel, comparison: TorqueComparison) -> Iterator[Panel]:
    """A panel per joint, base to tip; its RMS is that of the whole recording."""
    rows = window(comparison)
    for joint, (name, unit) in enumerate(zip(robot.joint_names, joint_units(robot), strict=True)):
        measured, identified, urdf = (
            x[:, joint] for x in (comparison.measured, comparison.identified, comparison.urdf)
        )
        rms, urdf_rms = (float(np.sqrt(np.mean((measured - predicted) ** 2))) for predicted in (identified, urdf))
        picture = prediction_plot(
            f"Torque of {name} over time, measured and predicted",
            f"torque ({unit.effort})",
            comparison.time[rows],
            measured[rows],
            identified[rows],
            urdf=urdf[rows],
        )
        yield Panel(name, f"URDF off by {with_unit(urdf_rms, unit.effort, 2)}", picture, rms, unit.effort)
