"""Mass, centre and inertia of a load in rows, with their 95 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.model.inertia import LOAD_NAMES, STATIC

MILLI = 1e3


@dataclass(frozen=True)
class LoadRow:
    """One number of the load.

    Attributes:
        name: what it is.
        unit: of all numbers.
        value: of the body that can exist.
        alone: by the data alone; NaN where they do not decide it.
        half: half of the 95 % interval about it.
        note: what else to know.

    """

    name: str
    unit: str
    value: float
    alone: float
    half: float
    note: str = ""

    @property
    def doubtful(self) -> bool:
        """Whether the interval is wider than the number is large."""
        return not self.half < abs(self.alone)


def load_rows(result: LoadResult) -> list[LoadRow]:
    """Mass, centre, inertia about it in the axes of the tip link, principal moments; only the mass without a load."""
    body, alone = result.possible, result.body
    freedom = result.estimate.freedom
    rows = [LoadRow("Mass", "kg", result.mass, alone.mass, float(half_width(alone.mass_error, freedom[0])))]
    if not result.is_loaded:
        return rows
    halves = MILLI * half_width(alone.center_errors, freedom[1:STATIC])
    centres = zip("xyz", MILLI * result.center, MILLI * alone.center, halves, strict=True)
    rows += [LoadRow(f"Centre {axis}", "mm", value, own, half) for axis, value, own, half in centres]
    if not knows_inertia(result):
        return rows
    upper, halves = np.triu_indices(3), half_width(alone.inertia_errors, result.inertia_freedom)
    inertias = zip(LOAD_NAMES[STATIC:], body.inertia[upper], alone.inertia[upper], halves, strict=True)
    rows += [LoadRow(name, "kg m²", value, own, half, "about the centre") for name, value, own, half in inertias]
    moments = zip(body.moments, half_width(body.moment_errors, result.inertia_freedom), body.axes.T, strict=True)
    rows += [
        LoadRow(f"Principal moment {i}", "kg m²", moment, np.nan, half, _axis(result, i - 1, axis))
        for i, (moment, half, axis) in enumerate(moments, 1)
    ]
    return rows


def knows_inertia(result: LoadResult) -> bool:
    """Whether motion showed it."""
    return bool(np.isfinite(result.parameters).all()) and result.is_loaded


def inertia_is_a_guess(result: LoadResult) -> bool:
    """Whether the data leave every principal moment open by more than its size."""
    return knows_inertia(result) and bool((result.possible.moment_errors > result.possible.moments).all())


def beside_rows(result: LoadResult) -> Sequence[tuple[str, float, float]]:
    """Name, value and standard error of what was estimated beside the load."""
    return [(name, value, error) for name, (value, error) in result.nuisance.items()]


def _axis(result: LoadResult, number: int, axis: NDArray) -> str:
    if any(number in pair for pair in result.possible.alike):
        return "its axis means nothing: another moment is too much like it"
    return f"about ({', '.join(f'{c:.2f}' for c in axis)})".replace("-", "−")
