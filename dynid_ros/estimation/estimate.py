"""Confidence intervals, and estimates of base parameters with their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, fdtri, ndtri, ndtri_exp, stdtrit

MAX_RELATIVE_ERROR = 0.25
"""Largest standard error of a value that is well determined, as a fraction of the value: an interval of half of it."""
WELL_CONDITIONED = 30.0
"""Largest condition number of a good experiment, …"""
ILL_CONDITIONED = 100.0
"""… and above which it is poor."""


# The one statistic of all intervals: Student's t, with the degrees of freedom that a standard error was found with.


CONFIDENCE_LEVEL = 0.95
"""Level of every interval that is printed."""


def half_width(error: ArrayLike, dof: ArrayLike = np.inf, level: float = CONFIDENCE_LEVEL) -> NDArray:
    """Half of the intervals of numbers with standard errors `error`, shaped as these and `dof` together.

    Args:
        error: standard errors.
        dof: degrees of freedom of their variances; infinite: they are known, and the interval is the normal one.
        level: share of such intervals that hold the truth.
    """
    wide = np.asarray(dof, dtype=float)
    known = np.isinf(wide)
    tail = (1 + level) / 2
    return np.where(known, ndtri(tail), stdtrit(np.where(known, 1.0, wide), tail)) * np.asarray(error, dtype=float)


def normal_score(below: ArrayLike, above: ArrayLike) -> NDArray:
    """Return the standard normal quantile with the smaller of two tails, given by log probabilities."""
    return np.where(np.less(above, below), -1.0, 1.0) * ndtri_exp(np.minimum(above, below))


def interval(value: ArrayLike, error: ArrayLike, dof: ArrayLike = np.inf, level: float = CONFIDENCE_LEVEL) -> NDArray:
    """Lower and upper ends (..., 2)."""
    half = half_width(error, dof, level)
    return np.stack([value - half, value + half], axis=-1)


def region_radius(size: int, dof: float = np.inf, level: float = CONFIDENCE_LEVEL) -> float:
    """Radius in standard errors of the ellipsoid that holds `size` numbers together (Hotelling 1931)."""
    if np.isinf(dof):
        return float(np.sqrt(chdtri(size, 1 - level)))
    return float(np.sqrt(size * fdtri(size, dof, level)))


@dataclass(frozen=True, eq=False)
class BaseEstimate:
    """Estimate of base parameters by the data alone, without a prior.

    Attributes:
        names: (k,) names of the parameters that lead the expressions, such as "Izz1".
        expressions: (k,) such as "Izz1 + Ixx2 + 0.2025 m3"; friction coefficients are among them.
        values: (k,) NaN if undetermined.
        covariance: (k, k) of `values`.
        nominal: (k,) values of the URDF; NaN for friction, for which a URDF has no useful value.
        dof: (k,) degrees of freedom of each variance.
        gain_shifts: (n, k) change of the values per relative error of each joint's torque gain, which later readings of
            the same sensors share; None: unknown.
        gain_error: standard deviation of these errors that the covariance allows for.
    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    values: NDArray
    covariance: NDArray
    nominal: NDArray
    dof: NDArray
    gain_shifts: NDArray | None = None
    gain_error: float = 0.0

    @property
    def alone(self) -> dict[str, int]:
        """Indices of the parameters whose expression contains no other parameter, by name."""
        pairs = zip(self.names, self.expressions, strict=True)
        return {name: place for place, (name, expression) in enumerate(pairs) if name == expression}

    @property
    def standard_errors(self) -> NDArray:
        """(k,) NaN where the data do not determine it."""
        return np.where(np.isfinite(self.values), np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.nan)

    @property
    def relative_standard_errors(self) -> NDArray:
        """(k,) standard errors over absolute values."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.standard_errors / np.abs(self.values)

    def confidence_intervals(self, level: float = 0.95) -> NDArray:
        """Return lower and upper ends (k, 2), from Student's t."""
        return interval(self.values, self.standard_errors, self.dof, level)
