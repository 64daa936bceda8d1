"""Base parameters with their intervals, what the URDF says of them, and whether it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.model.inertia import PARAMETERS_PER_LINK


@dataclass(frozen=True)
class BaseRow:
    """One base parameter.

    Attributes:
        link: its number, from 0.
        name: parameter that leads the expression.
        expression: the combination.
        unit: of all numbers here.
        value, half: estimate by the data alone and half width of its 95 % interval; NaN if not decided.
        urdf: NaN if the combination has a rotor or friction in it, of which the URDF says nothing.
        exported: of the identified model, which is physically possible and drawn to the URDF.
        truth: NaN if not known.

    """

    link: int
    name: str
    expression: str
    unit: str
    value: float
    half: float
    urdf: float
    exported: float
    truth: float

    @property
    def label(self) -> str:
        """Name, with dots if there is more in the combination."""
        return self.name if self.name == self.expression else f"{self.name} + …"

    @property
    def decided(self) -> bool:
        """Whether the data decide it."""
        return bool(np.isfinite(self.value))

    @property
    def known(self) -> bool:
        """Whether both the interval and the truth are known."""
        return self.decided and bool(np.isfinite(self.truth))

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return self._holds(self.truth)

    @property
    def compared(self) -> bool:
        """Whether the URDF can be compared with the data."""
        return self.decided and bool(np.isfinite(self.urdf))

    @property
    def wrong(self) -> bool:
        """Whether the URDF is wrong: the interval holds the value of the identified model, and not the URDF's."""
        return self.compared and not self._holds(self.urdf) and self._holds(self.exported)

    @property
    def doubtful(self) -> bool:
        """Whether the interval holds neither: then it is the interval that is too narrow or in the wrong place."""
        return self.compared and not self._holds(self.urdf) and not self._holds(self.exported)

    def _holds(self, value: float) -> bool:
        return bool(abs(self.value - value) <= self.half)


def base_rows(result: LinkResult, truth: NDArray | None = None) -> list[BaseRow]:
    """Base parameters of the links, base to tip; those of friction alone are left out.

    Args:
        result: what was identified.
        truth: (10 n,) true parameters of the links.

    """
    base, estimate, size = result.base, result.base_parameters, result.parameters.size
    low, high = estimate.confidence_intervals().T
    exported = base.project(np.concatenate([result.parameters, result.model.coefficients]))
    mixed = np.abs(base.combinations[:, size:]).max(axis=1, initial=0.0) > 0
    true = np.full(base.rank, np.nan)
    if truth is not None:
        true = np.where(mixed, np.nan, base.combinations[:, :size] @ truth)
    return [
        BaseRow(
            link=int(column) // PARAMETERS_PER_LINK,
            name=estimate.names[row],
            expression=estimate.expressions[row],
            unit=_unit(estimate.names[row]),
            value=float(estimate.values[row]),
            half=float(high[row] - low[row]) / 2,
            urdf=float(estimate.nominal[row]),
            exported=float(exported[row]),
            truth=float(true[row]),
        )
        for row, column in enumerate(base.columns)
        if column < size
    ]


@dataclass(frozen=True)
class WeakRow:
    """A parameter that the data hardly decide, and which other one its error goes along with most."""

    name: str
    relative_error: float
    partner: str
    correlation: float


def weak_rows(result: LinkResult, limit: float) -> Iterator[WeakRow]:
    """Parameters, friction included, whose standard error is above `limit` of their value, the weakest first."""
    estimate = result.base_parameters
    errors = estimate.standard_errors
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = estimate.covariance / np.outer(errors, errors)
    correlation[~np.isfinite(correlation)] = 0.0
    np.fill_diagonal(correlation, 0.0)
    relative = estimate.relative_standard_errors
    for row in sorted(np.flatnonzero(np.nan_to_num(relative) > limit), key=lambda row: -relative[row]):
        other = int(np.abs(correlation[row]).argmax())
        yield WeakRow(estimate.names[row], float(relative[row]), estimate.names[other], float(correlation[row, other]))


def _unit(name: str) -> str:
    return "kg m²" if name.startswith("I") else "kg m" if name.startswith("mc") else "kg"
