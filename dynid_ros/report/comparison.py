"""Comparison of estimates and measured values with true values, where a simulation knows the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid_ros.report.formats import UNKNOWN_TEXT, as_fine_as, brief, counted, significant
from dynid_ros.report.page import Table

MAX_OPEN_COMPARISONS = 12
"""Largest number of rows of a table that starts unfolded."""


@dataclass(frozen=True)
class Check:
    """A measured value and its bound.

    Attributes:
        value: measured; NaN fails.
        unit: unit of both.
        at_least: whether the bound is the smallest allowed value rather than the largest.
    """

    label: str
    value: float
    allowed: float
    unit: str = ""
    at_least: bool = False

    @property
    def passed(self) -> bool:
        """Whether the value keeps to its bound."""
        return bool(self.value >= self.allowed if self.at_least else self.value <= self.allowed)

    @property
    def measured(self) -> str:
        """Value with its unit as text."""
        return f"{brief(self.value)} {self.unit}".strip()

    @property
    def bound(self) -> str:
        """Bound as text."""
        return f"{'at least' if self.at_least else 'at most'} {brief(self.allowed)} {self.unit}".strip()

    def __str__(self) -> str:
        return f"{self.label}: {self.measured} ({self.bound}{'' if self.passed else ', FAILED'})"


@dataclass(frozen=True)
class Comparison:
    """An estimate and the true value.

    Attributes:
        unit: unit of all values.
        value: estimate; NaN: undetermined.
        half: half width of the 95 % interval.
    """

    name: str
    unit: str
    true: float
    value: float
    half: float

    @property
    def error(self) -> float:
        """Estimate minus true value."""
        return self.value - self.true

    @property
    def relative_error(self) -> float:
        """Magnitude of the error over the true value; infinite where undetermined."""
        return abs(self.error / self.true) if self.is_determined else float("inf")

    @property
    def is_determined(self) -> bool:
        """Whether the data determine the parameter."""
        return bool(np.isfinite(self.value))

    @property
    def is_covered(self) -> bool:
        """Whether the interval contains the true value."""
        return bool(abs(self.error) <= self.half)

    @property
    def cells(self) -> tuple[str, ...]:
        """True value, estimate, half width, error and coverage as text."""
        if not self.is_determined:
            return significant(self.true), UNKNOWN_TEXT, UNKNOWN_TEXT, UNKNOWN_TEXT, "undetermined"
        finer = self.half / 10
        true = self.true if abs(self.true) > finer / 100 else 0.0  # no zero with a sign
        return (
            as_fine_as(true, finer),
            as_fine_as(self.value, finer),
            significant(self.half, 2),
            significant(self.error, 2),
            "contains the truth" if self.is_covered else "misses the truth",
        )


def count_covered(comparisons: Sequence[Comparison]) -> tuple[int, int]:
    """Return how many 95 % intervals contain the true value, and how many intervals there are."""
    covered = [comparison.is_covered for comparison in comparisons if comparison.is_determined]
    return sum(covered), len(covered)


def coverage_check(comparisons: Sequence[Comparison], least_percent: float) -> Check:
    """Return the check of the share of 95 % intervals that contain the true value."""
    covered, count = count_covered(comparisons)
    percent = 100 * covered / count if count else float("nan")
    return Check("95 % intervals that contain the true value", percent, least_percent, "%", at_least=True)


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the table of estimates and true values; a long one starts folded."""
    covered, count = count_covered(comparisons)
    return Table(
        ("", "True", "Estimate", ("95 % interval", "half width"), "Error", "Interval"),
        [(f"{one.name}{', ' if one.unit else ''}{one.unit}", *one.cells) for one in comparisons],
        words=[5],
        folded=f"{counted(len(comparisons), 'estimate')} beside the truth; {covered} of {count} intervals contain it",
        unfolded=len(comparisons) <= MAX_OPEN_COMPARISONS,
    )
