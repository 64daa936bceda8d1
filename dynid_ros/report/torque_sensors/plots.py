"""Readings of a torque sensor over the torque, and the line that its calibration draws through them."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult
from dynid_ros.report.drawing import plot_area, svg, thinned
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, label_axes
from dynid_ros.report.units import JointUnits

HEIGHT = 210


def reading_plot(result: TorqueSensorResult, joint: int, unit: JointUnits) -> str:
    """Points: rests, friction taken off, filled without and hollow with the mass; line: the calibration.

    Empty where the gain is not known: then the torque is not known either.
    """
    if np.isnan(result.gain[joint]):
        return ""
    model = result.model
    point = model.at(result.fit.values)
    torque = point.torque[:, joint]
    friction = result.per_joint("coulomb")[0][joint]
    reading = model.samples.torque[:, joint] - np.nan_to_num(friction) * model.samples.direction[:, joint]
    ends = np.array([torque.min(), torque.max()])

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=40)
        axes.plot(ends, ends / result.gain[joint] + result.offset[joint], color=LIGHT["ink"], linewidth=1)
        for loaded, face in ((False, LIGHT["identified"]), (True, "none")):
            some = np.flatnonzero(model.loaded == loaded)
            some = some[thinned(len(some))] if len(some) else some
            axes.plot(
                torque[some],
                reading[some],
                linestyle="none",
                marker="o",
                markersize=4,
                mfc=face,
                mec=LIGHT["identified"],
                mew=0.8,
                alpha=0.8,
            )
        label_axes(axes, f"gravity torque ({unit.effort})", "reading")

    return svg(f"Readings of {result.joint_names[joint]} over gravity torque", WIDTH, HEIGHT, draw)
