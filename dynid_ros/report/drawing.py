"""Draw figures without pyplot and save them as PNG, or as SVG whose colours follow the theme of the page."""

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
"""Colours by meaning, for text and figures; data colours follow Okabe and Ito, safe for the colour-blind.

Figures are drawn with these values, which `svg` replaces by CSS variables. No two values may be equal.
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
"""Largest number of points in a scatter plot; more points hide each other and make the page heavy."""
Draw = Callable[[Figure], None]
UNITS_PER_INCH = 72
PNG_DOTS_PER_UNIT = 2.0
COLOR_NAMES = {value: name for name, value in LIGHT.items()}
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
    """Draw a figure and return it as inline SVG.

    Colours become CSS variables named as in the palette. Ids are hashes of the label and the content: equal data give
    equal text, and two figures of one page do not share an id.

    Args:
        label: description for screen readers.
        width: page units.
        height: page units.
        draw: function that draws on an empty figure.
    """
    buffer = StringIO()
    with style.context(["default", STYLE, {"svg.hashsalt": label}]):
        _draw_figure(width, height, draw).savefig(buffer, format="svg", transparent=True)
    body = buffer.getvalue().partition("<svg")[2].partition(">")[2]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"<g id=\"[^\"]*\"", "<g", body).replace("xlink:href", "href")
    body = re.sub(r' (?:d|x|y|transform)="[^"]*"', _round_coordinates, body)
    body = re.sub(r' style="[^"]*"', _replace_colors, body)
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
    return head + body


def png(width: int, height: int, draw: Draw) -> bytes:
    """Draw a figure and return it as PNG on white; arguments as for `svg`."""
    buffer = BytesIO()
    with style.context(["default", STYLE]):
        _draw_figure(width, height, draw).savefig(
            buffer, format="png", dpi=PNG_DOTS_PER_UNIT * UNITS_PER_INCH, metadata={"Software": None}
        )
    return buffer.getvalue()


def plot_area(figure: Figure, left: float, bottom: float, right: float = 8, top: float = 8) -> Axes:
    """Add axes with margins in page units, so that figures side by side are aligned."""
    width, height = figure.get_size_inches() * UNITS_PER_INCH
    return figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Set labels and few ticks, with the vertical label at the same distance in all panels."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 3, 4.5, 6, 9, 10] if "°" in x else None))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_label_coords(-44 / (PANEL_WIDTH - 60), 0.5)


def spread_indices(count: int, limit: int = MAX_POINTS) -> NDArray:
    """Return at most `limit` indices below `count`, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).astype(int))


def _round_coordinates(attribute: re.Match) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", attribute.group())


def _replace_colors(attribute: re.Match) -> str:
    return re.sub("|".join(COLOR_NAMES), lambda color: f"var(--{COLOR_NAMES[color.group()]})", attribute.group())


def _draw_figure(width: int, height: int, draw: Draw) -> Figure:
    figure = Figure(figsize=(width / UNITS_PER_INCH, height / UNITS_PER_INCH), dpi=UNITS_PER_INCH)
    draw(figure)
    return figure
