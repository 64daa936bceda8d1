"""How far a joint drifts in the drop test."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dynid_ros.report.demonstration.demonstration import Demonstration
from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.units import JointUnits

WIDTH, HEIGHT = 320, 160
SMALLEST_SPAN = 2.0
"""Least height of the picture, ° or mm: noise must not look like motion."""


def drift_plot(demonstration: Demonstration, joint: int, unit: JointUnits) -> str:
    """Position less the position where the arm was let go, over time, without and with compensation."""

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        for position, color in (
            (demonstration.position_without, LIGHT["uncompensated"]),
            (demonstration.position_with, LIGHT["identified"]),
        ):
            drift = (position[:, joint] - position[0, joint]) * unit.scale
            axes.plot(demonstration.time - demonstration.time[0], drift, color=color, linewidth=1.8)
        axes.set_xlabel("time (s)")
        axes.set_ylabel(f"drift ({unit.position})")
        middle = np.mean(axes.get_ylim())
        half = max(np.ptp(axes.get_ylim()), SMALLEST_SPAN) / 2
        axes.set_ylim(middle - half, middle + half)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0)

    return svg(f"Drift of {demonstration.joint_names[joint]} without and with compensation", WIDTH, HEIGHT, draw)
