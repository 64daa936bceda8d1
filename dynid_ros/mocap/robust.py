"""Marker residuals against outliers: how large noise makes them, and how much each one counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

MEDIAN_LENGTH = 1.5382
"""Median length of a vector of three standard normal numbers."""

GATE = 4.5
"""Standard deviations beyond which a marker's residual is an outlier; noise is beyond once in 15 000 times."""

TUKEY = 5.5
"""Standard deviations at which Tukey's biweight of a vector of three reaches zero (95 % efficiency)."""


def lengths(residual: NDArray) -> NDArray:
    """Lengths (...) of residuals (..., 3); infinite where they are not finite."""
    squared = np.einsum("...i,...i->...", residual, residual)
    return np.sqrt(np.where(np.isfinite(squared), squared, np.inf))


def spread(length: NDArray) -> NDArray:
    """Standard deviation (...) of a coordinate from the median of the finite lengths (..., P); NaN without one."""
    ordered = np.sort(np.where(np.isfinite(length), length, np.inf), axis=-1)
    count = np.isfinite(ordered).sum(axis=-1)
    middle = [np.maximum((count - 1 + odd) // 2, 0) for odd in (0, 1)]
    median = sum(np.take_along_axis(ordered, m[..., None], axis=-1)[..., 0] for m in middle) / 2
    return np.where(count > 0, median, np.nan) / MEDIAN_LENGTH


def tukey(length: NDArray, scale: ArrayLike) -> NDArray:
    """Weights of squared residuals, (1 − (r / 5.5 σ)²)², zero beyond (Beaton and Tukey 1974)."""
    return np.maximum(1 - (np.where(np.isfinite(length), length, np.inf) / (TUKEY * np.asarray(scale))) ** 2, 0.0) ** 2
