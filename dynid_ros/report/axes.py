"""Axes of pictures as SVG, with the methods of matplotlib's that the reports use.

matplotlib takes a second of processor time for the pictures of one report, most of it for numbers at the axes. Lengths
are in page units, places are from the upper left corner, as in SVG.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.report.axis import FONT_SIZE, Axis

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

Figures are drawn with these values, which become CSS variables in SVG. No two values may be equal.
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
COLOR_NAMES = {value: name for name, value in LIGHT.items()}
UNITS_PER_INCH = 72
MIDDLE_OF_FONT = 0.35
"""Height of the middle of a digit above its base line, as a fraction of the height of the font."""
LABEL_DISTANCE = 44
"""Distance of the vertical label from the axes."""
TICK_DISTANCE = 4
ARROW_HEAD = 6.0


class Axes:
    """Part of a picture with two axes, and the curves, marks and texts in it.

    Artists with a larger `zorder` hide those with a smaller one.

    Args:
        left, top, width, height: place in the picture.
    """

    def __init__(self, left: float, top: float, width: float, height: float) -> None:
        self.left = left
        self.top = top
        self.width = width
        self.height = height
        self.xaxis = Axis()
        self.yaxis = Axis()
        self._artists: list[tuple[float, Callable[[], str]]] = []
        self._texts: list[Callable[[], str]] = []
        self._is_equal = False
        self._is_off = False

    def plot(
        self,
        x: ArrayLike,
        y: ArrayLike,
        marks: str = "",
        *,
        color: str = "none",
        linewidth: float = 1.5,
        dashes: str = "none",
        marker: str = "",
        markersize: float = 6.0,
        fill: str = "",
        edge: str = "",
        markeredgewidth: float = 1.0,
        alpha: float = 1.0,
        solid_capstyle: str = "butt",
        solid_joinstyle: str = "round",
        zorder: float = 2,
    ) -> None:
        """Draw a line through points (N,), with a `marker` at each, or `marks` alone: o, D, ^, v or |.

        Markers have the colour of the line, unless `fill` or `edge` is given.
        """
        across, upward = np.broadcast_arrays(np.atleast_1d(x).astype(float), np.atleast_1d(y).astype(float))
        self._include(across, upward)
        shape = marks or marker

        def draw() -> str:
            at = self._places(across, upward)
            parts = []
            if not marks:
                line = _line(*at)
                ends = {"linecap": solid_capstyle, "linejoin": solid_joinstyle}
                parts.append(_path(line, "none", color, linewidth, dasharray=dashes, **ends))
            if shape:
                outline = _marker(shape, markersize / 2)
                known = np.isfinite(at).all(axis=0)
                path = "".join(f"M{_number(i)} {_number(j)}{outline}" for i, j in np.transpose(at)[known])
                parts.append(_path(path, fill or color, edge or color, markeredgewidth))
            return _faint("".join(parts), alpha)

        self._artists.append((zorder, draw))

    def fill(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        color: str = "none",
        edge: str = "none",
        dashes: str = "none",
        alpha: float = 1.0,
    ) -> None:
        """Fill a polygon with corners (N,)."""
        across = np.asarray(x, dtype=float)
        upward = np.asarray(y, dtype=float)
        self._include(across, upward)

        def draw() -> str:
            outline = f"{_line(*self._places(across, upward))}z"
            return _faint(_path(outline, color, edge, 1.0, dasharray=dashes), alpha)

        self._artists.append((1, draw))

    def fill_between(self, x: NDArray, low: ArrayLike, high: ArrayLike, *, color: str) -> None:
        """Fill the area between two curves over x (N,), where both are known."""
        lower, upper = (np.broadcast_to(np.asarray(curve, dtype=float), x.shape) for curve in (low, high))
        known = np.isfinite(lower) & np.isfinite(upper)
        self.fill(np.r_[x[known], x[known][::-1]], np.r_[lower[known], upper[known][::-1]], color=color)

    def barh(self, rows: NDArray, values: NDArray, height: float, color: str) -> None:
        """Draw horizontal bars from zero."""
        for row, value in zip(rows, values, strict=True):
            self.fill([0.0, value, value, 0.0], row + height * np.array([-0.5, -0.5, 0.5, 0.5]), color=color)

    def step(self, x: ArrayLike, y: ArrayLike, where: str, color: str, linewidth: float) -> None:
        """Draw a line of steps; `where` says whether a value holds before ("pre") or after ("post") its x."""
        across, upward = np.repeat(x, 2), np.repeat(y, 2)
        if where == "pre":
            self.plot(across[:-1], upward[1:], color=color, linewidth=linewidth)
        else:
            self.plot(across[1:], upward[:-1], color=color, linewidth=linewidth)

    def vlines(self, x: NDArray, low: ArrayLike, high: ArrayLike, color: str, linewidth: float) -> None:
        """Draw vertical lines at x (N,)."""
        ends = np.broadcast_arrays(low, high, np.nan, np.asarray(x, dtype=float))
        self.plot(np.repeat(x, 3), np.column_stack(ends[:3]).ravel(), color=color, linewidth=linewidth)

    def errorbar(self, x: NDArray, y: NDArray, xerr: NDArray, color: str, markersize: float) -> None:
        """Draw points (N,) with horizontal bars that have caps."""
        ends = np.column_stack([x - xerr, x + xerr, np.full(len(x), np.nan)]).ravel()
        self.plot(ends, np.repeat(y, 3), color=color, linewidth=1.6)
        self.plot(ends, np.repeat(y, 3), "|", edge=color, markersize=6, markeredgewidth=1.2)
        self.plot(x, y, "o", color=color, markersize=markersize)

    def axhline(self, y: float, color: str, linewidth: float, dashes: str = "none", zorder: float = 2) -> None:
        """Draw a horizontal line across the axes."""
        self.yaxis.include(y)

        def draw() -> str:
            start = f"M{_number(self.left)} {_number(float(self._places(0.0, y)[1]))}"
            return _path(f"{start}h{_number(self.width)}", "none", color, linewidth, dasharray=dashes)

        self._artists.append((zorder, draw))

    def axvline(self, x: float, color: str, linewidth: float) -> None:
        """Draw a vertical line across the axes."""
        self.xaxis.include(x)

        def draw() -> str:
            start = f"M{_number(float(self._places(x, 0.0)[0]))} {_number(self.top)}"
            return _path(f"{start}v{_number(self.height)}", "none", color, linewidth)

        self._artists.append((2, draw))

    def axhspan(self, low: float, high: float, color: str, alpha: float = 1.0) -> None:
        """Fill the strip between two heights."""
        self.yaxis.include([low, high])

        def draw() -> str:
            lower, upper = self._places(0.0, np.array([low, high]))[1]
            strip = (
                f"M{_number(self.left)} {_number(lower)}h{_number(self.width)}V{_number(upper)}H{_number(self.left)}z"
            )
            return _faint(_path(strip, color, "none", 0.0), alpha)

        self._artists.append((1, draw))

    def axvspan(self, low: float, high: float, color: str) -> None:
        """Fill the strip between two x."""
        self.xaxis.include([low, high])

        def draw() -> str:
            first, last = self._places(np.array([low, high]), 0.0)[0]
            strip = f"M{_number(first)} {_number(self.top)}v{_number(self.height)}H{_number(last)}V{_number(self.top)}z"
            return _path(strip, color, "none", 0.0)

        self._artists.append((0, draw))

    def arrow(self, x: float, y: float, color: str, linewidth: float) -> None:
        """Draw an arrow from the origin to a point."""

        def draw() -> str:
            start, end = np.transpose(self._places(np.array([0.0, x]), np.array([0.0, y])))
            along = (end - start) / (np.linalg.norm(end - start) or 1.0)
            across = 0.5 * np.array([-along[1], along[0]])
            sides = [end - ARROW_HEAD * (along + side * across) for side in (-1, 1)]
            lines = _line(*np.transpose([start, end])) + _line(*np.transpose([sides[0], end, sides[1]]))
            return _path(lines, "none", color, linewidth)

        self._artists.append((3, draw))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = FONT_SIZE,
        color: str,
        anchor: str = "start",
        within: str = "",
    ) -> None:
        """Write a text at a point, half of its height above and below it.

        Args:
            x: place from left to right.
            y: place upwards.
            text: text.
            size: height of the font.
            color: colour.
            anchor: "start", "middle" or "end" of the text, which is at x.
            within: some of "x" and "y", whose places are fractions of the axes instead of data.
        """

        def draw() -> str:
            at = self._places(x, y)
            across = self.left + x * self.width if "x" in within else float(at[0])
            downward = self.top + (1 - y) * self.height if "y" in within else float(at[1])
            return _text(across, downward + size * MIDDLE_OF_FONT, text, anchor, size=size, color=color)

        self._texts.append(draw)

    def set_xlim(self, low: float, high: float) -> None:
        """Set the ends of the horizontal axis."""
        self.xaxis.limits = (float(low), float(high))

    def set_ylim(self, low: float, high: float) -> None:
        """Set the ends of the vertical axis; the first may be larger."""
        self.yaxis.limits = (float(low), float(high))

    def set_aspect(self, _equal: str) -> None:
        """Make the axes smaller in one direction, so that units have the same length in both."""
        self._is_equal = True

    def set_axis_off(self) -> None:
        """Leave out lines and numbers of the axes."""
        self._is_off = True

    def markup(self, clip: str) -> str:
        """Return the axes as SVG; what is drawn in them is cut off at their ends, by a clip path with this id."""
        if self._is_equal:
            self._shrink()
        corner = f'x="{_number(self.left)}" y="{_number(self.top)}"'
        area = f'<rect {corner} width="{_number(self.width)}" height="{_number(self.height)}"/>'
        drawn = "".join(draw() for _, draw in sorted(self._artists, key=lambda artist: artist[0]))
        inner = f'<clipPath id="{clip}">{area}</clipPath><g clip-path="url(#{clip})">{drawn}</g>'
        frame = "" if self._is_off else self._frame()
        return frame + inner + "".join(draw() for draw in self._texts)

    def _frame(self) -> str:
        """Return the grid, the lines and the numbers of the axes, and their labels."""
        bottom = self.top + self.height
        parts = []
        grid = []
        places, labels = self.xaxis.ticks(self.width)
        for x, label in zip(self.left + self.width * self.xaxis.fractions(places), labels, strict=True):
            grid += [f"M{_number(x)} {_number(self.top)}v{_number(self.height)}"] if self.xaxis.shows_grid else []
            if self.xaxis.shows_labels:
                parts.append(_text(x, bottom + TICK_DISTANCE + FONT_SIZE, label, "middle"))
        places, labels = self.yaxis.ticks(self.height)
        for y, label in zip(bottom - self.height * self.yaxis.fractions(places), labels, strict=True):
            grid += [f"M{_number(self.left)} {_number(y)}h{_number(self.width)}"] if self.yaxis.shows_grid else []
            downward = y + MIDDLE_OF_FONT * FONT_SIZE
            parts.append(_text(self.left - TICK_DISTANCE, downward, label, "end"))
        lines = [f"M{_number(self.left)} {_number(bottom)}h{_number(self.width)}"]
        lines += [f"M{_number(self.left)} {_number(self.top)}v{_number(self.height)}"] if self.yaxis.shows_line else []
        if self.xaxis.label:
            middle = self.left + self.width / 2
            parts.append(_text(middle, bottom + 2.75 * FONT_SIZE, self.xaxis.label, "middle"))
        if self.yaxis.label:
            x = max(self.left - LABEL_DISTANCE, 0.8 * FONT_SIZE)
            y = self.top + self.height / 2
            parts.append(
                f'<g transform="translate({_number(x)} {_number(y)}) rotate(-90)">'
                f"{_text(0, 0, self.yaxis.label, 'middle', size=self.yaxis.label_size)}</g>"
            )
        return (
            _path("".join(grid), "none", LIGHT["line"], 0.6)
            + _path("".join(lines), "none", LIGHT["line"], 0.8)
            + "".join(parts)
        )

    def _include(self, x: NDArray, y: NDArray) -> None:
        self.xaxis.include(x)
        self.yaxis.include(y)

    def _places(self, x: ArrayLike, y: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the places of data in the picture."""
        across = self.left + self.width * self.xaxis.fractions(x)
        return across, self.top + self.height * (1 - self.yaxis.fractions(y))

    def _shrink(self) -> None:
        across, upward = (abs(np.subtract(*axis.range())) for axis in (self.xaxis, self.yaxis))
        width = min(self.width, self.height * across / upward)
        height = min(self.height, self.width * upward / across)
        self.left += (self.width - width) / 2
        self.top += (self.height - height) / 2
        self.width = width
        self.height = height


class Figure:
    """Picture with axes."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self._axes: list[Axes] = []

    def get_size_inches(self) -> NDArray:
        """Return width and height, inches."""
        return np.array([self.width, self.height]) / UNITS_PER_INCH

    def add_axes(self, place: tuple[float, float, float, float]) -> Axes:
        """Add axes, given left, bottom, width and height as fractions of the picture."""
        left, bottom, width, height = place
        axes = Axes(left * self.width, (1 - bottom - height) * self.height, width * self.width, height * self.height)
        self._axes.append(axes)
        return axes

    def markup(self, label: str) -> str:
        """Return the picture as SVG, with a description for screen readers and ids that are hashes of its content."""
        body = "".join(axes.markup(f"{{clip}}-{number}") for number, axes in enumerate(self._axes))
        body = body.replace("{clip}", sha256(f"{label}{body}".encode()).hexdigest()[:12])
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-label="{escape(label)}" '
            f'style="font-size: {FONT_SIZE}px">{body}</svg>'
        )


def _css(color: str) -> str:
    return f"var(--{COLOR_NAMES[color]})" if color in COLOR_NAMES else color


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _line(x: NDArray, y: NDArray) -> str:
    """Return the path through points (N,), interrupted where one is not finite."""
    known = np.isfinite(x) & np.isfinite(y)
    begins = known & ~np.concatenate([[False], known[:-1]])
    words = ["M" if first else "L" for first in begins]
    points = zip(words, x, y, known, strict=True)
    return "".join(f"{word}{_number(i)} {_number(j)}" for word, i, j, is_known in points if is_known)


def _marker(shape: str, half: float) -> str:
    """Return the path of a marker, relative to its place."""
    r = _number(half)
    if shape == "o":
        return f"m-{r} 0a{r} {r} 0 1 0 {_number(2 * half)} 0a{r} {r} 0 1 0 -{_number(2 * half)} 0z"
    if shape == "D":
        r = _number(np.sqrt(2) * half)  # a square on its corner
        return f"m0 -{r}l{r} {r}l-{r} {r}l-{r} -{r}z"
    if shape == "|":
        return f"m0 -{r}v{_number(2 * half)}"
    up = -1 if shape == "^" else 1
    return f"m0 {_number(up * half)}l{r} {_number(-2 * up * half)}h-{_number(2 * half)}z"


def _path(path: str, fill: str, stroke: str, width: float, **line: str) -> str:
    """Return a path; of its line, `dasharray`, `linecap` and `linejoin` may be given."""
    style = f"fill: {_css(fill)}; stroke: {_css(stroke if width else 'none')}; stroke-width: {width:g}"
    style += "".join(f"; stroke-{name}: {value}" for name, value in line.items())
    return f'<path d="{path}" style="{style}"/>'


def _text(x: float, y: float, text: str, anchor: str, *, size: float = FONT_SIZE, color: str = LIGHT["muted"]) -> str:
    style = f"fill: {_css(color)}; text-anchor: {anchor}; font-size: {size:g}px"
    return f'<text x="{_number(x)}" y="{_number(y)}" style="{style}">{escape(text)}</text>'


def _faint(markup: str, alpha: float) -> str:
    return markup if alpha == 1.0 else f'<g style="opacity: {alpha:g}">{markup}</g>'
