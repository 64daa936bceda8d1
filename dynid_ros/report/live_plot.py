"""A load's mass as it was learnt while the arm moved."""

from __future__ import annotations

from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.report.drawing import LIGHT, label_axes, plot_area, svg

WIDTH, HEIGHT = 340, 260
ROOM = 0.5
"""Of the true mass, shown on either side of zero and of it."""


def live_plot(time: NDArray, mass: NDArray, interval: NDArray, true: NDArray) -> str:
    """SVG of estimates and truth over time.

    Args:
        time: (E,) s since the arm began to move.
        mass: (E,) kg.
        interval: (E, 2) of 95 %.
        true: (E,) kg.

    """

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        axes.fill_between(time, *interval.T, color=LIGHT["band"], linewidth=0)
        axes.step(time, true, color=LIGHT["truth"], linewidth=1.6, where="pre")
        axes.plot(time, mass, color=LIGHT["identified"], linewidth=1.2, marker="o", markersize=3)
        axes.set_ylim(-ROOM * true.max(), (1 + ROOM) * true.max())
        label_axes(axes, "time since the arm began to move (s)", "mass (kg)")
        axes.margins(x=0)

    return svg("Mass of the load over time, as learnt and in truth", WIDTH, HEIGHT, draw)
