"""How a motion was found and what it tells: distances, singular values, the course of the search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg, thinned
from dynid_ros.report.motion.motion_use import Approach
from dynid_ros.report.palette import LIGHT

WIDTH, HEIGHT = 680, 260
HALF = 400
FAR = 300.0
"""Distances that are not shown, mm: nobody asks how far away is safe."""
COLORS = ("identified", "uncompensated", "truth", "urdf", "measured")


def distance_plot(time: NDArray, approaches: Sequence[Approach]) -> str:
    """Distance left over time of the nearest things, as many as there are colours; zero is the bound."""
    some = thinned(len(time))

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        axes.axhline(0, color=LIGHT["wrong"], linewidth=1.2, linestyle=(0, (4, 2)))
        for approach, color in zip(approaches, COLORS, strict=False):
            rows = np.union1d(some, [np.argmin(approach.course)])
            axes.plot(time[rows], 1000 * approach.course[rows], color=LIGHT[color], linewidth=1.4)
            axes.plot(approach.time, 1000 * approach.room, color=LIGHT[color], marker="o", markersize=5)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("room left (mm)")
        axes.margins(x=0)
        top = min(axes.get_ylim()[1], FAR)
        axes.set_ylim(1000 * min(0.0, *(approach.room for approach in approaches)) - 0.03 * top, top)

    return svg("Room left between the nearest links and what they must not touch", WIDTH, HEIGHT, draw)


def spectrum_plot(singular_values: NDArray) -> str:
    """Singular values, largest first, those of zero left out."""
    values = np.asarray(singular_values)
    order = np.arange(1, len(values) + 1)
    shown = values > 1e-12 * values.max(initial=0.0)

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        axes.vlines(order[shown], 0.5 * values[shown].min(), values[shown], color=LIGHT["band"], linewidth=2.5)
        axes.plot(order[shown], values[shown], color=LIGHT["identified"], marker="o", markersize=4.5, linestyle="none")
        _logarithmic(axes)
        axes.set_ylim(0.5 * values[shown].min(), 2.0 * values.max())
        axes.set_xlim(0, len(values) + 1)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_xlabel("singular value, number")
        axes.set_ylabel("size")

    return svg("Singular values of the regressor", HALF, HEIGHT, draw)


def search_plot(history: Sequence[tuple[float, float]], criterion: str) -> str:
    """The best value so far over the time of the search."""
    time, value = np.array(history).T

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=42)
        end = max(1.05 * time[-1], 1e-3)
        axes.step([*time, end], [*value, value[-1]], where="post", color=LIGHT["identified"], linewidth=1.6)
        axes.plot(time, value, color=LIGHT["identified"], marker="o", markersize=4.5, linestyle="none")
        if value.min() > 0 and value.max() > 3 * value.min():
            _logarithmic(axes)
        axes.set_xlim(0, end)
        axes.set_xlabel("time of the search (s)")
        axes.set_ylabel(criterion)

    return svg("The best motion so far over the time of the search", HALF, HEIGHT, draw)


def _logarithmic(axes: Axes) -> None:
    """A scale with plain numbers: mathematical text is not parsed in these figures."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
