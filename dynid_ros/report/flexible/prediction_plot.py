"""A measured signal over time, what a model makes of it, and the error below."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.panel import WIDTH, label_axes

HEIGHT, ERRORS = 250, 62


def prediction_plot(label: str, quantity: str, time: NDArray, measured: NDArray, predicted: NDArray) -> str:
    """SVG of two signals (N,) at times (N,), s; `quantity` with its unit, as in "torque (N m)"."""

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + ERRORS)
        above.plot(time, measured, color=LIGHT["measured"], linewidth=2.0)
        above.plot(time, predicted, color=LIGHT["identified"], linewidth=1.1)
        label_axes(above, "", quantity)
        above.tick_params(axis="x", length=0, labelbottom=False)
        below = plot_area(figure, left=52, bottom=40, top=HEIGHT - 40 - ERRORS)
        below.axhline(0, color=LIGHT["measured"], linewidth=0.8)
        below.plot(time, measured - predicted, color=LIGHT["identified"], linewidth=1.0)
        label_axes(below, "time (s)", "error")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            axes.margins(x=0)

    return svg(label, WIDTH, HEIGHT, draw)
