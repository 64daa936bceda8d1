"""What a joint's spring passes on over its deflection, as identified and in truth."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import label_axes

WIDTH, HEIGHT = 420, 260
POINTS = 800
MILLI = 1e3


def spring_plot(joint: str, deflection: NDArray, torque: NDArray, *, identified: float, true: float) -> str:
    """SVG of one joint's spring.

    Args:
        joint: its name.
        deflection: (N,) motor less link, rad.
        torque: (N,) that passes through the spring, N m.
        identified: stiffness, N m/rad; NaN: not decided.
        true: likewise.

    """
    some = np.argsort(deflection)[np.unique(np.linspace(0, len(deflection) - 1, POINTS).astype(int))]
    across = np.array([deflection.min(), deflection.max()])

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        points = MILLI * deflection[some], torque[some]
        axes.plot(*points, linestyle="none", marker="o", markersize=1.6, color=LIGHT["measured"], alpha=0.5)
        axes.plot(MILLI * across, true * across, color=LIGHT["truth"], linewidth=2.4)
        axes.plot(MILLI * across, identified * across, color=LIGHT["identified"], linewidth=1.2, linestyle="--")
        label_axes(axes, "deflection (mrad)", "torque (N m)")

    return svg(f"Spring of {joint}: torque over deflection, identified and true", WIDTH, HEIGHT, draw)
