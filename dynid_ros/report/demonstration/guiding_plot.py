"""An arm that is led by the hand: where it is over time, and the force that leads it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import LIGHT, label_axes, plot_area, svg
from dynid_ros.report.plots import SideView, draw_stick

WIDTH, HEIGHT, FORCES = 340, 300, 80
VIEW_WIDTH, VIEW_HEIGHT = 340, 300
CENTI = 100.0


def guiding_plot(time: NDArray, moved: NDArray, force: NDArray, led: Sequence[tuple[float, float]]) -> str:
    """SVG of the way of the place that the hand holds, and the hand's force below.

    Args:
        time: (T,) s.
        moved: (T,) distance from where it was first, m.
        force: (T,) size of the hand's, N.
        led: from when to when the hand leads, s.

    """

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + FORCES)
        above.plot(time, CENTI * moved, color=LIGHT["identified"], linewidth=1.8)
        label_axes(above, "", "way (cm)")
        above.tick_params(axis="x", length=0, labelbottom=False)
        below = plot_area(figure, left=52, bottom=40, top=HEIGHT - 40 - FORCES)
        below.plot(time, force, color=LIGHT["measured"], linewidth=1.4)
        label_axes(below, "time (s)", "force (N)")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            for start, end in led:
                axes.axvspan(start, end, color=LIGHT["band"], linewidth=0, zorder=0)
            axes.margins(x=0)

    return svg("How far the arm has moved and the force of the hand, over time", WIDTH, HEIGHT, draw)


def guiding_view(robot: RobotModel, poses: NDArray) -> str:
    """SVG of the arm from the side, in the poses (P, n) in which it was left; the first in grey, the last in full."""
    view = SideView.of(robot, poses)
    sticks = view.sticks(poses)
    points = sticks.reshape(-1, 2)
    margin = 0.12 * (np.ptp(points, axis=0).max() or 1.0)
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, 0, 0, 0, 0)
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.axhline(0, color=LIGHT["line"], linewidth=1.5, zorder=0)
        draw_stick(axes, sticks[0], LIGHT["measured"], alpha=0.55, width=6)
        for alpha, stick in zip(np.linspace(0.4, 1.0, len(sticks) - 1), sticks[1:], strict=True):
            draw_stick(axes, stick, LIGHT["identified"], alpha=float(alpha), width=3)

    return svg("Side view of the arm where the hand left it", VIEW_WIDTH, VIEW_HEIGHT, draw)
