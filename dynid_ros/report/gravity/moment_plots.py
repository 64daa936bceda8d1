"""Identified gravity parameters with their 95 % intervals, against the truth where it is known."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.report.drawing import svg
from dynid_ros.report.palette import LIGHT
from dynid_ros.report.row_plots import WIDTH, interval_bars, row_axes, rows_height

Names = list[tuple[str, str]]
"""Joint and parameter of each row."""


def value_plot(names: Names, value: NDArray, half: NDArray, truth: NDArray, unit: str) -> str:
    """A row per parameter: its value, its interval, and the truth, where it is known, as a ring."""

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, names)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        rows = np.arange(len(names))
        axes.plot(truth, rows, linestyle="none", marker="o", markersize=9, mfc="none", mec=LIGHT["truth"], mew=1.4)
        interval_bars(axes, value, half)
        axes.set_xlabel(f"identified value ({unit})")

    return svg(f"Identified gravity parameters in {unit}", WIDTH, rows_height(len(names)), draw)


def interval_plot(names: Names, error: NDArray, half: NDArray, what: str, zero: str) -> str:
    """The intervals magnified, in per cent of the joint's largest torque, which makes those of small joints visible.

    Args:
        names: of the rows.
        error: identified less true, or zero where there is no truth.
        half: half widths.
        what: label of the axis.
        zero: colour of the line at zero, by its name in the palette.

    """

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, names)
        axes.axvline(0, color=LIGHT[zero], linewidth=1.2)
        interval_bars(axes, 100 * error, 100 * half)
        axes.set_xlabel(what)

    return svg(f"Gravity parameters, {what}", WIDTH, rows_height(len(names)), draw)
