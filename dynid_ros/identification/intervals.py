"""The one statistic of all intervals: Student's t, with the degrees of freedom that a standard error was found with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, fdtri, ndtri, stdtrit

LEVEL = 0.95
"""Of every interval that is printed."""
KEY = "degrees_of_freedom"
"""In `identified.yaml`: of the whole file, or of an entry: a number, or one for each label as in its `std`."""


def half_width(error: ArrayLike, freedom: ArrayLike = np.inf, level: float = LEVEL) -> NDArray:
    """Half of the intervals of numbers with standard errors `error`, shaped as these and `freedom` together.

    Args:
        error: standard errors.
        freedom: degrees of freedom of their variances; infinite: they are known, and the interval is the normal one.
        level: share of such intervals that hold the truth.

    """
    wide = np.asarray(freedom, dtype=float)
    known, tail = np.isinf(wide), (1 + level) / 2
    return np.where(known, ndtri(tail), stdtrit(np.where(known, 1.0, wide), tail)) * np.asarray(error, dtype=float)


def interval(value: ArrayLike, error: ArrayLike, freedom: ArrayLike = np.inf, level: float = LEVEL) -> NDArray:
    """Lower and upper ends (..., 2)."""
    half = half_width(error, freedom, level)
    return np.stack([value - half, value + half], axis=-1)


def region_radius(size: int, freedom: float = np.inf, level: float = LEVEL) -> float:
    """Radius in standard errors of the ellipsoid that holds `size` numbers together (Hotelling 1931)."""
    if np.isinf(freedom):
        return float(np.sqrt(chdtri(size, 1 - level)))
    return float(np.sqrt(size * fdtri(size, freedom, level)))


def freedom_of(document: dict, entry: dict | None = None, label: str = "") -> float:
    """Degrees of freedom of a standard error in `identified.yaml`; infinite where the file says none.

    Args:
        document: the file's content.
        entry: that has the standard error; None: any of the file.
        label: of the number in it.

    """
    found: Any = document.get(KEY) if entry is None or KEY not in entry else entry[KEY]
    if isinstance(found, dict):
        found = found.get(label)
    usable = isinstance(found, (int, float)) and not isinstance(found, bool) and found > 0
    return float(found) if usable else np.inf
