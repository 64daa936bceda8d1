"""What a joint's spring passes on over its deflection, as measured, identified and in truth."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, label_axes
from dynid_ros.report.units import REVOLUTE, JointUnits

HEIGHT = 220
POINTS = 800


def spring_plot(
    joint: str,
    deflection: NDArray,
    torque: NDArray,
    across: NDArray,
    identified: NDArray,
    *,
    true: NDArray | None = None,
    unit: JointUnits = REVOLUTE,
) -> str:
    """SVG of one joint's spring.

    Args:
        joint: its name.
        deflection: (N,) motor less link, rad or m.
        torque: (N,) that passes through the spring, N m or N.
        across: (M,) deflections of the lines.
        identified: (M,) torque by what was identified; NaN: not decided.
        true: (M,) likewise, where it is known.
        unit: of the joint.

    """
    # Evenly spread over the deflection: most of the time is spent at its ends.
    some = np.argsort(deflection)[np.unique(np.linspace(0, len(deflection) - 1, POINTS).astype(int))]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        points = unit.scale * deflection[some], torque[some]
        axes.plot(*points, linestyle="none", marker="o", markersize=1.6, color=LIGHT["measured"], alpha=0.5)
        if true is not None:
            axes.plot(unit.scale * across, true, color=LIGHT["truth"], linewidth=3.0)
        axes.plot(unit.scale * across, identified, color=LIGHT["identified"], linewidth=1.4)
        label_axes(axes, f"deflection ({unit.position})", f"torque ({unit.effort})")

    what = ", measured and identified" if true is None else ", measured, identified and true"
    return svg(f"Spring of {joint}: torque over deflection{what}", WIDTH, HEIGHT, draw)
