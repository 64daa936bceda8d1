"""Plots with a named row for each joint or parameter."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg, thinned
from dynid_ros.report.palette import LIGHT

WIDTH = 340
ROW = 22
LONGEST_NAME = 20


def rows_height(count: int) -> int:
    """Height of a figure with that many rows."""
    return ROW * count + 50


def row_axes(figure: Figure, names: Sequence[tuple[str, ...]], right: float = 12) -> Axes:
    """Axes with a row for each name, the first on top, at y = 0, the next at 1.

    Args:
        figure: filled by the axes.
        names: joint, and what of the joint if it has several rows.
        right: margin, in page units.

    """
    labels = [" ".join([_shortened(joint), *what]) for joint, *what in names]
    axes = plot_area(figure, left=10 + 6.2 * max(map(len, labels)), bottom=40, right=right, top=4)
    axes.set_yticks(np.arange(len(labels)), labels=labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    return axes


def error_plot(names: Sequence[str], error: NDArray, label: str) -> str:
    """Errors (N, rows) as points about a line at zero, thinned if many; `label` names them and their unit.

    Points are spread within their row, the same way each time, so that they do not hide each other.
    """
    some = thinned(len(error))
    spread = 0.3 * np.sin(2.4 * np.arange(len(some)))

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, [(name,) for name in names])
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        for row in range(len(names)):
            axes.plot(
                error[some, row],
                row + spread,
                linestyle="none",
                marker="o",
                markersize=2.6,
                markeredgewidth=0,
                color=LIGHT["identified"],
                alpha=0.55,
            )
        axes.set_xlabel(label)

    return svg(label, WIDTH, rows_height(len(names)), draw)


def interval_bars(axes: Axes, value: NDArray, half: NDArray) -> None:
    """Values (rows,) as points with bars of half widths (rows,); none in a row of NaN."""
    axes.errorbar(
        value,
        np.arange(len(value)),
        xerr=half,
        linestyle="none",
        marker="o",
        markersize=4,
        color=LIGHT["identified"],
        elinewidth=1.6,
        capsize=3,
        capthick=1.2,
    )


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
