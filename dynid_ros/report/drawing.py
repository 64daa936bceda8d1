"""Drawing of figures with matplotlib as PNG, or as inline SVG whose colours follow the theme of the page.

The module also contains the plots that several reports share: rows for joints, and measured and predicted signals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from html import escape
from io import BytesIO, StringIO
from typing import Any, NamedTuple, cast

import numpy as np
from matplotlib import rc_context, rcParams, style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.report.formats import with_unit

LIGHT = {
    "paper": "#ffffff",
    "panel": "#f5f6f8",
    "ink": "#1a1d21",
    "muted": "#5b6470",
    "line": "#d9dde2",
    "measured": "#4a525c",
    "identified": "#0072b2",
    "band": "#d3e6f3",
    "truth": "#00805d",
    "uncompensated": "#d55e00",
    "urdf": "#e8b878",
    "wrong": "#b3261e",
}
"""Colours of a light page, by meaning; those of data are from the palette of Okabe and Ito for the colour-blind.

Figures are drawn with these values, and `svg` replaces them by CSS variables. All values must be different.
"""

DARK = {
    "paper": "#121518",
    "panel": "#1b2025",
    "ink": "#e9ebee",
    "muted": "#a0a9b4",
    "line": "#353c44",
    "measured": "#c2c9d1",
    "identified": "#56b4e9",
    "band": "#1d3a4e",
    "truth": "#36c497",
    "uncompensated": "#f4924f",
    "urdf": "#8f6f45",
    "wrong": "#ff8a7a",
}

PANEL_WIDTH = 320
"""Width of the figure of one joint, page units."""
MAX_POINTS = 300
"""Largest number of points in a scatter plot; more points would hide each other and make the file large."""
ROW_PLOT_WIDTH = 340
ROW_HEIGHT = 22
MAX_NAME_LENGTH = 20
SIGNAL_HEIGHT = 250
RESIDUAL_HEIGHT = 62
MAX_SIGNAL_SAMPLES = 360
"""Largest number of samples in a plot over time; more could not be distinguished at the width of a line."""
GAP_PERIODS = 1.5
"""Largest interval between samples without a gap, in sampling periods."""

Draw = Callable[[Figure], None]
UNITS_PER_INCH = 72
PNG_DOTS_PER_UNIT = 2.0
COLOR_NAMES = {value: name for name, value in LIGHT.items()}
NAMED_COLORS = re.compile("|".join(COLOR_NAMES))
DIGITS_BEYOND_CENTS = re.compile(r"(?<=\.\d\d)\d+")
STYLE = {
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.labelsize": 11,
    "axes.labelcolor": LIGHT["muted"],
    "axes.edgecolor": LIGHT["line"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-4, 6),
    "grid.color": LIGHT["line"],
    "grid.linewidth": 0.6,
    "text.color": LIGHT["ink"],
    "text.parse_math": False,  # a joint's name may hold a $
    "xtick.bottom": False,  # the grid replaces tick marks, which would enlarge the file
    "ytick.left": False,
    "xtick.color": LIGHT["line"],
    "ytick.color": LIGHT["line"],
    "xtick.labelcolor": LIGHT["muted"],
    "ytick.labelcolor": LIGHT["muted"],
    "svg.fonttype": "none",
}


class Plot(NamedTuple):
    """An SVG picture.

    Attributes:
        picture: inline SVG.
        name, note: text above the picture.
        below: caption below the picture.
    """

    picture: str
    name: str = ""
    note: str = ""
    below: str = ""


def svg(label: str, width: int, height: int, draw: Draw) -> str:
    """Draw a figure and return it as inline SVG.

    Colours become CSS variables with the names of the palette. Ids are hashes of the label and the content, so that
    equal data give equal text and the ids of two figures on one page differ.

    Args:
        label: description for screen readers.
        width: width, page units.
        height: height, page units.
        draw: function that draws on an empty figure.
    """
    buffer = StringIO()
    with _page_style(label):
        _draw_figure(width, height, draw).savefig(buffer, format="svg", transparent=True)
    body = buffer.getvalue().partition("<svg")[2].partition(">")[2]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"<g id=\"[^\"]*\"", "<g", body).replace("xlink:href", "href")
    body = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda match: DIGITS_BEYOND_CENTS.sub("", match.group()), body)
    body = re.sub(r' style="[^"]*"', lambda match: NAMED_COLORS.sub(_color_variable, match.group()), body)
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
    return head + body


def png(width: int, height: int, draw: Draw) -> bytes:
    """Draw a figure and return it as PNG on a white background; see `svg` for the arguments."""
    buffer = BytesIO()
    with _page_style():
        _draw_figure(width, height, draw).savefig(
            buffer, format="png", dpi=PNG_DOTS_PER_UNIT * UNITS_PER_INCH, metadata={"Software": None}
        )
    return buffer.getvalue()


@contextmanager
def _page_style(label: str = "") -> Iterator[None]:
    """Apply the settings of the page; `label` makes ids in SVG differ between figures."""
    with rc_context():
        # The settings bypass validation, which would take as long as drawing a small picture.
        dict.update(cast("dict[str, Any]", rcParams), _page_settings())
        rcParams["svg.hashsalt"] = label
        yield


@lru_cache(maxsize=1)
def _page_settings() -> dict[str, Any]:
    with style.context(["default", STYLE]):
        return {name: value for name, value in rcParams.copy().items() if name != "backend"}


def plot_area(figure: Figure, left: float, bottom: float, right: float = 8, top: float = 8) -> Axes:
    """Add axes with margins in page units, so that neighbouring figures are aligned."""
    width, height = figure.get_size_inches() * UNITS_PER_INCH
    return figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Set labels and few ticks, with the label of the y axis at the same distance in all panels."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 3, 4.5, 6, 9, 10] if "°" in x else None))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_label_coords(-44 / (PANEL_WIDTH - 60), 0.5)


def spread_indices(count: int, limit: int = MAX_POINTS) -> NDArray:
    """Return at most `limit` evenly spaced indices below `count`."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).astype(int))


def _color_variable(color: re.Match) -> str:
    return f"var(--{COLOR_NAMES[color.group()]})"


def _draw_figure(width: int, height: int, draw: Draw) -> Figure:
    figure = Figure(figsize=(width / UNITS_PER_INCH, height / UNITS_PER_INCH), dpi=UNITS_PER_INCH)
    draw(figure)
    return figure


def rows_height(count: int) -> int:
    """Return the height of a figure with `count` rows, page units."""
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
    axes.set_yticks(np.arange(len(labels)), labels=labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    return axes


def residual_plot(names: Sequence[str], residual: NDArray, label: str) -> str:
    """Draw residuals (N, rows) as points in a row for each name, as SVG; `label` has the quantity and its unit.

    Points are spread over the height of their row, so that they do not hide each other.
    """
    samples = spread_indices(len(residual))
    offset = 0.3 * np.sin(2.4 * np.arange(len(samples)))

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
            axes.plot(residual[samples, row], row + offset, "o", **marker)
        axes.set_xlabel(label)

    return svg(label, ROW_PLOT_WIDTH, rows_height(len(names)), draw)


def draw_intervals(axes: Axes, value: NDArray, half: NDArray) -> None:
    """Draw values (rows,) with bars of half widths (rows,); a row of NaN stays empty."""
    bar: dict[str, Any] = {"elinewidth": 1.6, "capsize": 3, "capthick": 1.2}
    rows = np.arange(len(value))
    axes.errorbar(value, rows, xerr=half, linestyle="none", marker="o", markersize=4, color=LIGHT["identified"], **bar)


def draw_stick(axes: Axes, stick: NDArray, color: str, alpha: float = 1.0, width: float = 3.0) -> None:
    """Draw one pose of an arm as a stick figure (n + 1, 2) with a dot at each joint."""
    line: dict[str, Any] = {"solid_capstyle": "round", "solid_joinstyle": "round", "linewidth": width}
    axes.plot(*stick.T, color=color, alpha=alpha, marker="o", markersize=1.5 * width, markeredgewidth=0, **line)


def split_at_gaps(time: NDArray, recording: NDArray | None = None) -> list[slice]:
    """Return the rows of each contiguous part of the time stamps (N,), in order.

    Args:
        time: (N,) time stamps, s.
        recording: (N,) number of the recording of each sample; None: all are from one recording.
    """
    steps = np.diff(time)
    is_gap = (steps < 0) | (steps > GAP_PERIODS * np.median(np.abs(steps))) if len(steps) else np.zeros(0, bool)
    if recording is not None:
        is_gap |= np.diff(recording) != 0
    ends = np.flatnonzero(is_gap) + 1
    return [slice(int(first), int(last)) for first, last in zip([0, *ends], [*ends, len(time)], strict=True)]


def rows_to_plot(time: NDArray, recording: NDArray | None = None) -> slice:
    """Return at most `MAX_SIGNAL_SAMPLES` rows from the middle of the longest contiguous part."""
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
        measured: (N, n) measured signals.
        predicted: (N, n) predicted signals; NaN: not predicted.
        rows: samples to draw. The RMS in the caption is that of all samples.
        quantity: name of the signals.
        urdf: (N, n) prediction by the URDF, for comparison; None: no comparison.
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
    """Draw measured and predicted signals (N,) above their difference, as SVG; see `prediction_panels`."""
    large: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.0} if are_dwells else {}
    small = large | {"markersize": 2.5}

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + RESIDUAL_HEIGHT)
        below = plot_area(figure, left=52, bottom=40, top=SIGNAL_HEIGHT - 40 - RESIDUAL_HEIGHT)
        below.axhline(0, color=LIGHT["measured"], linewidth=0.8)
        if urdf is not None:
            above.plot(across, urdf, color=LIGHT["urdf"], linewidth=1.6, **small)
            below.plot(across, measured - urdf, color=LIGHT["urdf"], linewidth=1.4, **small)
        above.plot(across, measured, color=LIGHT["measured"], linewidth=2.0, **large)
        above.plot(across, predicted, color=LIGHT["identified"], linewidth=1.1, **small)
        below.plot(across, measured - predicted, color=LIGHT["identified"], linewidth=1.0, **small)
        label_axes(above, "", quantity)
        above.tick_params(axis="x", labelbottom=False)
        label_axes(below, "dwell" if are_dwells else "time (s)", "residual")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            if are_dwells:
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            else:
                axes.margins(x=0)

    return svg(label, PANEL_WIDTH, SIGNAL_HEIGHT, draw)


def before_after_plot(names: Sequence[str], before: NDArray, after: NDArray, label: str) -> str:
    """Draw two bars for each joint as SVG: orange for `before` (rows,), blue for `after` (rows,).

    Args:
        names: names of the joints.
        before: first values.
        after: second values; NaN: no bar.
        label: quantity and unit.
    """
    largest = max(np.max(values, initial=0.0, where=np.isfinite(values)) for values in (before, after))

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, names)
        rows = np.arange(len(names))
        axes.barh(rows - 0.2, before, height=0.36, color=LIGHT["uncompensated"])
        axes.barh(rows + 0.2, np.where(np.isfinite(after), after, 0.0), height=0.36, color=LIGHT["identified"])
        axes.set_xlim(0, 1.05 * largest or 1.0)
        axes.set_xlabel(label)

    return svg(label, ROW_PLOT_WIDTH, rows_height(len(names)), draw)
