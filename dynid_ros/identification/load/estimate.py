"""What the fit of a load takes and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import KnownColumns
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.estimation.least_squares import MINIMUM_FREEDOM, LeastSquaresFit
from dynid_ros.estimation.normal_equations import Columns
from dynid_ros.identification.equations import Equations


class LoadColumns(Columns, Protocol):
    """Columns of the equations of a load.

    Attributes:
        own: (k,) what is fitted, the load's parameters first.
        of_arm: (a,) columns that are known, but not exactly.
        names: (k,) of `own`.

    """

    own: NDArray
    of_arm: NDArray
    names: tuple[str, ...]


class LoadProblem(NamedTuple):
    """What is fitted.

    Attributes:
        equations: of the load.
        columns: what they consist of.
        channels: names: joints, or axes of a wrench.
        known: columns that are known, but not exactly; None: there are none.
        gain_error: standard deviation of the relative error of each channel's gain.
        remarks: choices made, one sentence each.

    """

    equations: Equations
    columns: LoadColumns
    channels: tuple[str, ...]
    known: KnownColumns | None
    gain_error: float
    remarks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LoadFit:
    """What the data say.

    Attributes:
        estimate: of all unknowns, the load's first.
        solution: (k,) complete.
        condition_number: of the weighted equations with unit columns; infinite where something stays open.
        noise: (c,) RMS residual of each channel less what the fit took of it.
        residual_rms: (c,).
        signal_rms: (c,) of what was fitted.
        n_samples: equations of each channel.

    """

    estimate: BaseEstimate
    solution: NDArray
    condition_number: float
    noise: NDArray
    residual_rms: NDArray
    signal_rms: NDArray
    n_samples: int


def check_freedom(freedom: int, n_samples: int, channels: Sequence[str], columns: LoadColumns) -> None:
    """Refuse what leaves too few equations to see errors by.

    Raises:
        IdentificationError: says how many there are.

    """
    if freedom < MINIMUM_FREEDOM:
        raise IdentificationError(
            f"{n_samples} samples of {', '.join(channels)} for {columns.own.size} unknowns leave {max(freedom, 0)} "
            f"equations to see the errors by, at least {MINIMUM_FREEDOM} are needed: record longer, or more poses"
        )


def estimate(columns: LoadColumns, fit: LeastSquaresFit, covariance: NDArray, freedom: NDArray) -> BaseEstimate:
    """What the data say of all unknowns."""
    values = np.where(np.isfinite(fit.inflation), fit.solution, np.nan)
    return BaseEstimate(columns.names, columns.names, values, covariance, np.full(len(values), np.nan), freedom)
