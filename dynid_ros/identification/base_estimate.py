"""Base parameters as estimated: values, errors, intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.intervals import KEY, interval


@dataclass(frozen=True, eq=False)
class BaseEstimate:
    """What the data alone say, without any prior.

    Attributes:
        names: (k,) parameters that lead the expressions, such as "Izz1".
        expressions: (k,) such as "Izz1 + Ixx2 + 0.2025 m3"; friction coefficients are among them.
        values: (k,) NaN where the data do not decide.
        covariance: (k, k) of `values`.
        nominal: (k,) of the URDF; NaN for friction, of which a URDF says nothing that counts.
        freedom: (k,) degrees of freedom of each variance.
        gain_shifts: (n, k) change of the values per relative error of each joint's torque gain, which later readings
            of the same sensors share; None: not known.
        gain_error: standard deviation of these errors that the covariance allows for.

    """

    names: tuple[str, ...]
    expressions: tuple[str, ...]
    values: NDArray
    covariance: NDArray
    nominal: NDArray
    freedom: NDArray
    gain_shifts: NDArray | None = None
    gain_error: float = 0.0

    @property
    def standard_errors(self) -> NDArray:
        """(k,) NaN where the data do not decide."""
        return np.where(np.isfinite(self.values), np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.nan)

    @property
    def relative_standard_errors(self) -> NDArray:
        """(k,) standard errors over absolute values."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.standard_errors / np.abs(self.values)

    def confidence_intervals(self, level: float = 0.95) -> NDArray:
        """(k, 2) lower and upper ends, from Student's t."""
        return interval(self.values, self.standard_errors, self.freedom, level)

    def differs_from_nominal(self, level: float = 0.95) -> NDArray:
        """(k,) bool: the URDF's value is outside of the interval; False where either is not known."""
        low, high = self.confidence_intervals(level).T
        return (self.nominal < low) | (self.nominal > high)

    def document(self) -> list[dict]:
        """Section `base_parameters` of `identified.yaml`."""
        return [
            {
                "expression": expression,
                "value": _number(value),
                "std": _number(error),
                KEY: _number(freedom),
                "urdf": _number(nominal),
            }
            for expression, value, error, freedom, nominal in zip(
                self.expressions, self.values, self.standard_errors, self.freedom, self.nominal, strict=True
            )
        ]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
