"""Axis of a picture: its range, its scale, and the numbers along it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FONT_SIZE = 11
MARGIN_FRACTION = 0.05
"""Space between the data and the ends of an axis, as a fraction of the range of the data."""
TICK_STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
DEGREE_STEPS = (1.0, 2.0, 3.0, 4.5, 6.0, 9.0, 10.0)
"""Steps between numbers at an axis, times a power of ten."""
UNITS_PER_TICK = 50.0
MAX_LOG_TICKS = 8
PLAIN_NUMBERS = (1e-4, 1e6)
"""Magnitudes of the largest number at an axis between which numbers have no power of ten."""


def tick_places(low: float, high: float, count: int, steps: Sequence[float], whole: bool = False) -> NDArray:
    """Return multiples of a round step from `low` to `high`, at most `count` steps apart in all."""
    raw = (high - low) / max(count, 1)
    decade = 10.0 ** np.floor(np.log10(raw))
    step = next(step for step in (*(decade * np.array(steps)), 10.0 * decade * steps[1]) if step >= raw * (1 - 1e-9))
    step = max(1.0, np.ceil(step)) if whole else step
    rounding = 1e-9 * (high - low)
    return step * np.arange(np.ceil((low - rounding) / step), np.floor((high + rounding) / step) + 1)


def tick_labels(places: NDArray) -> list[str]:
    """Return the numbers at an axis, all with as many decimals as their step needs."""
    largest = np.abs(places).max(initial=0.0)
    if len(places) < 2 or not PLAIN_NUMBERS[0] <= largest < PLAIN_NUMBERS[1]:
        labels = [f"{place:g}" for place in places]
    else:
        step = float(np.diff(places).min())
        decimals = next(n for n in range(16) if abs(round(step, n) - step) <= 1e-6 * step)
        labels = [f"{place:.{decimals}f}" for place in places]
    return [label.replace("-", "−") for label in labels]


class Axis:
    """Range, scale and numbers of one axis.

    Attributes:
        label, label_size: name and unit of the axis, and the height of this text.
        limits: ends of the axis; None: those of the data, with a margin.
        margin: space beyond the data, as a fraction of their range.
        is_logarithmic: whether equal distances are equal ratios.
        places: values where numbers are; None: round values.
        labels: texts there; None: the values.
        count, steps, whole: largest number of steps between round values (None: by the length), their sizes times a
            power of ten, and whether they are whole numbers.
        shows_labels, shows_grid, shows_line: whether there are numbers, lines across the picture, and one at the end.
    """

    def __init__(self) -> None:
        self.label = ""
        self.label_size = FONT_SIZE
        self.limits: tuple[float, float] | None = None
        self.margin = MARGIN_FRACTION
        self.is_logarithmic = False
        self.places: NDArray | None = None
        self.labels: Sequence[str] | None = None
        self.count: int | None = None
        self.steps: Sequence[float] = TICK_STEPS
        self.whole = False
        self.shows_labels = True
        self.shows_grid = True
        self.shows_line = True
        self._data: list[NDArray] = []

    def include(self, values: ArrayLike) -> None:
        """Extend the range to values."""
        self._data.append(np.ravel(np.asarray(values, dtype=float)))

    def range(self) -> tuple[float, float]:
        """Return the ends of the axis."""
        if self.limits is not None:
            return self.limits
        values = np.concatenate([np.zeros(0), *self._data])
        values = values[np.isfinite(values) & ((values > 0) | (not self.is_logarithmic))]
        if not len(values):
            return (1.0, 10.0) if self.is_logarithmic else (0.0, 1.0)
        ends = self._scaled(np.array([values.min(), values.max()]))
        margin = self.margin * float(ends[1] - ends[0])
        if ends[1] - ends[0] <= 1e-12 * np.abs(ends).max():
            margin = MARGIN_FRACTION * (float(np.abs(ends).max()) or 1.0)
        low = float(ends[0]) - margin
        high = float(ends[1]) + margin
        return (10.0**low, 10.0**high) if self.is_logarithmic else (low, high)

    def fractions(self, values: ArrayLike) -> NDArray:
        """Return the places of values along the axis, from 0 to 1."""
        low, high = self._scaled(np.array(self.range()))
        return (self._scaled(np.asarray(values, dtype=float)) - low) / (high - low)

    def ticks(self, length: float) -> tuple[NDArray, Sequence[str]]:
        """Return places and texts of the numbers along an axis of that length."""
        low, high = sorted(self.range())
        if self.places is not None:
            places = self.places
        elif self.is_logarithmic:
            decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
            places = np.outer(decades, [1.0, 2.0, 5.0]).ravel()
            places = decades if np.sum((places >= low) & (places <= high)) > MAX_LOG_TICKS else places
        else:
            count = max(2, round(length / UNITS_PER_TICK)) if self.count is None else self.count
            places = tick_places(low, high, count, self.steps, self.whole)
        inside = (places >= low - 1e-9 * (high - low)) & (places <= high + 1e-9 * (high - low))
        places = places[inside]
        if self.labels is not None:
            return places, [label for label, is_inside in zip(self.labels, inside, strict=True) if is_inside]
        return places, [f"{place:g}" for place in places] if self.is_logarithmic else tick_labels(places)

    def _scaled(self, values: NDArray) -> NDArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log10(values) if self.is_logarithmic else values
