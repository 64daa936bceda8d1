"""Plots that several reports have: a row for each joint, and measured against predicted signals over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg, thinned
from dynid_ros.report.formats import with_unit
from dynid_ros.report.page import Plot

# Plots with a named row for each joint or parameter.


ROW_WIDTH = 340
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
                "o",
                markersize=2.6,
                markeredgewidth=0,
                color=LIGHT["identified"],
                alpha=0.55,
            )
        axes.set_xlabel(label)

    return svg(label, ROW_WIDTH, rows_height(len(names)), draw)


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


def draw_stick(axes: Axes, stick: NDArray, color: str, alpha: float = 1.0, width: float = 3.0) -> None:
    """One pose (n + 1, 2), with a dot at each joint."""
    axes.plot(
        *stick.T,
        color=color,
        alpha=alpha,
        linewidth=width,
        solid_capstyle="round",
        solid_joinstyle="round",
        marker="o",
        markersize=1.5 * width,
        markeredgewidth=0,
    )


# A measured signal over time, what a model makes of it, and the error below.


HEIGHT, ERRORS = 250, 62
LONGEST = 360
"""Samples in a plot over time: more of them would be narrower than what they show."""


def stretches(time: NDArray, part: NDArray | None = None) -> list[slice]:
    """Return the rows (N,) without a gap between them, in order; `part` (N,) is of which recording they are."""
    steps = np.diff(time)
    cut = (steps < 0) | (steps > 1.5 * np.median(np.abs(steps))) if len(steps) else np.zeros(0, bool)
    if part is not None:
        cut |= np.diff(part) != 0
    ends = np.flatnonzero(cut) + 1
    return [slice(int(first), int(last)) for first, last in zip([0, *ends], [*ends, len(time)], strict=True)]


def shown_rows(time: NDArray, part: NDArray | None = None) -> slice:
    """Return the middle of the longest stretch, no longer than can be shown."""
    rows = max(stretches(time, part), key=lambda own: own.stop - own.start)
    spare = max(rows.stop - rows.start - LONGEST, 0) // 2
    return slice(rows.start + spare, min(rows.start + spare + LONGEST, rows.stop))


def panel(name: str, picture: str, rms: float, unit: str, note: str = "") -> Plot:
    """Return the figure of a joint with the RMS of measured less predicted values in its caption; NaN: none."""
    error = f"residual {with_unit(rms, unit, 2)} RMS" if np.isfinite(rms) else "not predicted"
    return Plot(picture, name, f"{note}, {error}" if note else error, rms=rms)


def prediction_panels(
    names: Sequence[str],
    units: Sequence[str],
    across: NDArray,
    measured: NDArray,
    predicted: NDArray,
    *,
    rows: slice | NDArray,
    quantity: str = "torque",
    urdf: NDArray | None = None,
    rests: bool = False,
) -> list[Plot]:
    """Return a panel per joint with the `rows` of signals (N, n); the RMS is that of all rows, and without NaN."""
    found = []
    for j, (name, unit) in enumerate(zip(names, units, strict=True)):
        rms = float(np.sqrt(np.nanmean((measured[:, j] - predicted[:, j]) ** 2)))
        note, other = "", None
        if urdf is not None:
            other = urdf[rows, j]
            note = f"URDF off by {with_unit(float(np.sqrt(np.mean((measured[:, j] - urdf[:, j]) ** 2))), unit, 2)}"
        picture = prediction_plot(
            f"{quantity.capitalize()} of {name}, measured and predicted",
            f"{quantity} ({unit})",
            across[rows],
            measured[rows, j],
            predicted[rows, j],
            urdf=other,
            rests=rests,
        )
        found.append(panel(name, picture, rms, unit, note))
    return found


def prediction_plot(
    label: str,
    quantity: str,
    across: NDArray,
    measured: NDArray,
    predicted: NDArray,
    *,
    urdf: NDArray | None = None,
    rests: bool = False,
) -> str:
    """SVG of two signals.

    Args:
        label: of the picture.
        quantity: with its unit, as in "torque (N m)".
        across: (N,) s, or numbers of dwells.
        measured: (N,).
        predicted: (N,) by what was identified.
        urdf: (N,) by the URDF, to compare with.
        rests: the signals are those of dwells, each by itself: points, not lines.
    """
    large: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.0} if rests else {}
    small = large | {"markersize": 2.5}

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + ERRORS)
        below = plot_area(figure, left=52, bottom=40, top=HEIGHT - 40 - ERRORS)
        below.axhline(0, color=LIGHT["measured"], linewidth=0.8)
        if urdf is not None:
            above.plot(across, urdf, color=LIGHT["urdf"], linewidth=1.6, **small)
            below.plot(across, measured - urdf, color=LIGHT["urdf"], linewidth=1.4, **small)
        above.plot(across, measured, color=LIGHT["measured"], linewidth=2.0, **large)
        above.plot(across, predicted, color=LIGHT["identified"], linewidth=1.1, **small)
        below.plot(across, measured - predicted, color=LIGHT["identified"], linewidth=1.0, **small)
        label_axes(above, "", quantity)
        above.tick_params(axis="x", length=0, labelbottom=False)
        label_axes(below, "dwell" if rests else "time (s)", "error")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            if rests:
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            else:
                axes.margins(x=0)

    return svg(label, WIDTH, HEIGHT, draw)
