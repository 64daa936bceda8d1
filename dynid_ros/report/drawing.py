"""Draw figures as PNG, or as SVG whose colours follow the theme of the page.

The plots that several reports share are here too: a row for each joint, and measured against predicted signals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.report.axes import LIGHT, UNITS_PER_INCH, Axes, Figure
from dynid_ros.report.axis import DEGREE_STEPS, FONT_SIZE
from dynid_ros.report.formats import with_unit

PANEL_WIDTH = 320
"""Width of the figure of one joint, page units."""
MAX_POINTS = 300
"""Largest number of points in a scatter plot; more points hide each other and make the page heavy."""
ROW_PLOT_WIDTH = 340
ROW_HEIGHT = 22
MAX_NAME_LENGTH = 20
SIGNAL_HEIGHT = 250
RESIDUAL_HEIGHT = 62
MAX_SIGNAL_SAMPLES = 360
"""Largest number of samples in a plot over time; more are narrower than a line."""
GAP_PERIODS = 1.5
"""Sampling periods between two samples above which a gap separates them."""

Draw = Callable[[Figure], None]
PNG_DOTS_PER_UNIT = 2.0


class Plot(NamedTuple):
    """An SVG picture with its name and a note above it, and a caption below."""

    picture: str
    name: str = ""
    note: str = ""
    below: str = ""


def svg(label: str, width: int, height: int, draw: Draw) -> str:
    """Draw a figure and return it as inline SVG.

    Colours become CSS variables named as in the palette. Ids are hashes of the label and the content: equal data give
    equal text, and two figures of one page do not share an id.

    Args:
        label: description for screen readers.
        width: page units.
        height: page units.
        draw: function that draws on an empty figure.
    """
    figure = Figure(width, height)
    draw(figure)
    return figure.markup(label)


def png(width: int, height: int, draw: Callable[[Any], None]) -> bytes:
    """Draw on an empty figure of matplotlib and return it as PNG on white; arguments as for `svg`."""
    from matplotlib import rc_context  # noqa: PLC0415 - it takes a second to load, and few pictures are PNG
    from matplotlib.figure import Figure as PngFigure  # noqa: PLC0415

    buffer = BytesIO()
    with rc_context({"font.size": FONT_SIZE, "text.color": LIGHT["ink"], "text.parse_math": False}):
        figure = PngFigure(figsize=(width / UNITS_PER_INCH, height / UNITS_PER_INCH), dpi=UNITS_PER_INCH)
        draw(figure)
        figure.savefig(buffer, format="png", dpi=PNG_DOTS_PER_UNIT * UNITS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def plot_area(figure: Figure, left: float, bottom: float, right: float = 8, top: float = 8) -> Axes:
    """Add axes with margins in page units, so that figures side by side are aligned."""
    width, height = figure.get_size_inches() * UNITS_PER_INCH
    return figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Set labels and few ticks."""
    axes.xaxis.label = x
    axes.yaxis.label = y
    axes.xaxis.count = 6
    axes.yaxis.count = 5
    if "°" in x:
        axes.xaxis.steps = DEGREE_STEPS


def spread_indices(count: int, limit: int = MAX_POINTS) -> NDArray:
    """Return at most `limit` indices below `count`, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).astype(int))


def rows_height(count: int) -> int:
    """Return the height of a figure with that many rows, page units."""
    return ROW_HEIGHT * count + 50


def row_axes(figure: Figure, names: Sequence[str], quantities: Sequence[str] = (), right: float = 12) -> Axes:
    """Add axes that fill the figure, with a row for each name: the first on top, at y = 0, the next at y = 1.

    Args:
        figure: empty figure.
        names: joints or parameters, one for each row.
        quantities: quantity of each row, printed after the name; empty: none.
        right: right margin, page units.
    """
    shown = [name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…" for name in names]
    labels = [f"{name} {what}" for name, what in zip(shown, quantities, strict=True)] if quantities else shown
    axes = plot_area(figure, left=10 + 6.2 * max(map(len, labels)), bottom=40, right=right, top=4)
    axes.yaxis.places = np.arange(len(labels))
    axes.yaxis.labels = labels
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.yaxis.shows_grid = False
    axes.yaxis.shows_line = False
    axes.xaxis.count = 4
    return axes


def residual_plot(names: Sequence[str], residual: NDArray, label: str) -> str:
    """Draw residuals (N, rows) as points in a row for each name, as SVG; `label` names the quantity and its unit.

    Points are spread over the height of their row, so that they do not hide each other.
    """
    some = spread_indices(len(residual))
    offset = 0.3 * np.sin(2.4 * np.arange(len(some)))

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, names)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        for row in range(len(names)):
            marker: dict[str, Any] = {
                "markersize": 2.6,
                "markeredgewidth": 0,
                "color": LIGHT["identified"],
                "alpha": 0.55,
            }
            axes.plot(residual[some, row], row + offset, "o", **marker)
        axes.xaxis.label = label

    return svg(label, ROW_PLOT_WIDTH, rows_height(len(names)), draw)


def draw_intervals(axes: Axes, value: NDArray, half: NDArray) -> None:
    """Draw values (rows,) with bars of half widths (rows,); a row of NaN stays empty."""
    axes.errorbar(value, np.arange(len(value)), xerr=half, markersize=4, color=LIGHT["identified"])


def draw_stick(axes: Axes, stick: NDArray, color: str, alpha: float = 1.0, width: float = 3.0) -> None:
    """Draw one pose of an arm as a stick figure (n + 1, 2) with a dot at each joint."""
    line: dict[str, Any] = {"solid_capstyle": "round", "solid_joinstyle": "round", "linewidth": width}
    axes.plot(*stick.T, color=color, alpha=alpha, marker="o", markersize=1.5 * width, markeredgewidth=0, **line)


def split_at_gaps(time: NDArray, recording: NDArray | None = None) -> list[slice]:
    """Return the rows of each contiguous part of the time stamps (N,), in order.

    Args:
        time: stamps, s.
        recording: (N,) number of the recording of each sample; None: one recording.
    """
    steps = np.diff(time)
    is_gap = (steps < 0) | (steps > GAP_PERIODS * np.median(np.abs(steps))) if len(steps) else np.zeros(0, bool)
    if recording is not None:
        is_gap |= np.diff(recording) != 0
    ends = np.flatnonzero(is_gap) + 1
    return [slice(int(first), int(last)) for first, last in zip([0, *ends], [*ends, len(time)], strict=True)]


def rows_to_plot(time: NDArray, recording: NDArray | None = None) -> slice:
    """Return the middle of the longest contiguous part, at most `MAX_SIGNAL_SAMPLES` rows."""
    rows = max(split_at_gaps(time, recording), key=lambda part: part.stop - part.start)
    margin = max(rows.stop - rows.start - MAX_SIGNAL_SAMPLES, 0) // 2
    return slice(rows.start + margin, min(rows.start + margin + MAX_SIGNAL_SAMPLES, rows.stop))


def panel(name: str, picture: str, residual: NDArray, unit: str, note: str = "") -> Plot:
    """Return the figure of a joint with the RMS of its residual in the caption; NaN: not predicted."""
    known = residual[np.isfinite(residual)]
    caption = f"residual {with_unit(_rms(known), unit, 2)} RMS" if len(known) else "not predicted"
    return Plot(picture, name, f"{caption}, {note}" if note else caption)


def _rms(values: NDArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


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
    are_dwells: bool = False,
) -> list[Plot]:
    """Return one panel per joint that shows the `rows` of measured and predicted signals.

    Args:
        names: n joints or channels.
        units: n units of the signals.
        across: (N,) time stamps, s, or numbers of dwells.
        measured: (N, n).
        predicted: (N, n); NaN: not predicted.
        rows: samples to draw. The RMS in the caption is that of all samples.
        quantity: name of the signals.
        urdf: (N, n) prediction by the URDF, for comparison.
        are_dwells: whether the samples are dwells, drawn as points.
    """
    panels = []
    for j, (name, unit) in enumerate(zip(names, units, strict=True)):
        note = "" if urdf is None else f"of the URDF {with_unit(_rms(measured[:, j] - urdf[:, j]), unit, 2)}"
        picture = _prediction_plot(
            f"{quantity.capitalize()} of {name}, measured and predicted",
            f"{quantity} ({unit})",
            across[rows],
            measured[rows, j],
            predicted[rows, j],
            urdf=None if urdf is None else urdf[rows, j],
            are_dwells=are_dwells,
        )
        panels.append(panel(name, picture, measured[:, j] - predicted[:, j], unit, note))
    return panels


def _prediction_plot(
    label: str,
    quantity: str,
    across: NDArray,
    measured: NDArray,
    predicted: NDArray,
    *,
    urdf: NDArray | None = None,
    are_dwells: bool = False,
) -> str:
    """Draw measured and predicted signals (N,) above their difference, as SVG; arguments as for `prediction_panels`."""
    marks = "o" if are_dwells else ""

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + RESIDUAL_HEIGHT)
        below = plot_area(figure, left=52, bottom=40, top=SIGNAL_HEIGHT - 40 - RESIDUAL_HEIGHT)
        below.axhline(0, color=LIGHT["measured"], linewidth=0.8)
        if urdf is not None:
            above.plot(across, urdf, marks, color=LIGHT["urdf"], linewidth=1.6, markersize=2.5)
            below.plot(across, measured - urdf, marks, color=LIGHT["urdf"], linewidth=1.4, markersize=2.5)
        above.plot(across, measured, marks, color=LIGHT["measured"], linewidth=2.0, markersize=4.0)
        above.plot(across, predicted, marks, color=LIGHT["identified"], linewidth=1.1, markersize=2.5)
        below.plot(across, measured - predicted, marks, color=LIGHT["identified"], linewidth=1.0, markersize=2.5)
        label_axes(above, "", quantity)
        above.xaxis.shows_labels = False
        label_axes(below, "dwell" if are_dwells else "time (s)", "residual")
        below.yaxis.count = 3
        for axes in (above, below):
            if are_dwells:
                axes.xaxis.whole = True
            else:
                axes.xaxis.margin = 0.0

    return svg(label, PANEL_WIDTH, SIGNAL_HEIGHT, draw)


def before_after_plot(names: Sequence[str], before: NDArray, after: NDArray, label: str) -> str:
    """Draw two values (rows,) for each joint as SVG, orange before, blue after; `label` names quantity and unit."""
    largest = max(np.max(values, initial=0.0, where=np.isfinite(values)) for values in (before, after))

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, names)
        rows = np.arange(len(names))
        axes.barh(rows - 0.2, before, height=0.36, color=LIGHT["uncompensated"])
        axes.barh(rows + 0.2, np.where(np.isfinite(after), after, 0.0), height=0.36, color=LIGHT["identified"])
        axes.set_xlim(0, 1.05 * largest or 1.0)
        axes.xaxis.label = label

    return svg(label, ROW_PLOT_WIDTH, rows_height(len(names)), draw)
