"""Figures without pyplot: drawn in the light palette, saved as PNG or as SVG that follows the page's theme."""

import re
from collections.abc import Callable
from html import escape
from io import BytesIO, StringIO

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.report.palette import LIGHT

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
