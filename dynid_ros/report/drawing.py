"""Figures without pyplot: drawn in the light palette, saved as PNG or as SVG that follows the page's theme."""

import re
from collections.abc import Callable
from html import escape
from io import BytesIO, StringIO

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

# Colours by meaning, the same in text and plots; those of data follow Okabe and Ito, safe for the colour-blind.


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
"""Figures are drawn in these; each value stands for its name, so no two may be equal."""

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


WIDTH = 320
"""Of a plot of one joint among those of the others."""


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Labels and few ticks, the same place in all panels."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 3, 4.5, 6, 9, 10] if "°" in x else None))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_label_coords(-44 / (WIDTH - 60), 0.5)


Draw = Callable[[Figure], None]
UNITS_PER_INCH = 72
SHARPNESS = 2.0
"""Dots of a PNG for each page unit."""
NAMES = {value: name for name, value in LIGHT.items()}
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
    "xtick.color": LIGHT["line"],
    "ytick.color": LIGHT["line"],
    "xtick.labelcolor": LIGHT["muted"],
    "ytick.labelcolor": LIGHT["muted"],
    "svg.fonttype": "none",
}


def svg(label: str, width: int, height: int, draw: Draw) -> str:
    """Inline SVG of what `draw` puts on a figure of that many page units; `label` is read out by screen readers.

    Colours become CSS variables named as in the palette. Ids are made from the label and the content: the same data
    give the same text, and two figures of one page do not share an id.
    """
    buffer = StringIO()
    with style.context(["default", STYLE, {"svg.hashsalt": label}]):
        _drawn(width, height, draw).savefig(buffer, format="svg", transparent=True)
    body = buffer.getvalue().partition("<svg")[2].partition(">")[2]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"<g id=\"[^\"]*\"", "<g", body).replace("xlink:href", "href")
    body = re.sub(r' (?:d|x|y|transform)="[^"]*"', _rounded, body)
    body = re.sub(r' style="[^"]*"', _themed, body)
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
    return head + body


def png(width: int, height: int, draw: Draw) -> bytes:
    """PNG of the same, on white."""
    buffer = BytesIO()
    with style.context(["default", STYLE]):
        _drawn(width, height, draw).savefig(
            buffer, format="png", dpi=SHARPNESS * UNITS_PER_INCH, metadata={"Software": None}
        )
    return buffer.getvalue()


def plot_area(figure: Figure, left: float, bottom: float, right: float = 8, top: float = 8) -> Axes:
    """Axes with those margins in page units, so that plots side by side line up."""
    width, height = figure.get_size_inches() * UNITS_PER_INCH
    return figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))


def thinned(count: int) -> NDArray:
    """Indices of at most 300 of `count` points, evenly spread; more would hide each other and make the page heavy."""
    return np.unique(np.linspace(0, count - 1, min(count, 300)).astype(int))


def _rounded(attribute: re.Match) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", attribute.group())


def _themed(attribute: re.Match) -> str:
    return re.sub("|".join(NAMES), lambda color: f"var(--{NAMES[color.group()]})", attribute.group())


def _drawn(width: int, height: int, draw: Draw) -> Figure:
    figure = Figure(figsize=(width / UNITS_PER_INCH, height / UNITS_PER_INCH), dpi=UNITS_PER_INCH)
    draw(figure)
    return figure
