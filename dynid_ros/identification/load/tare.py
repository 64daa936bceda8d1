"""A tool that was weighed along with the load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.identification.load.result import LoadResult
from dynid_ros.model.inertia import LOAD_NAMES


def without_tare(estimate: BaseEstimate, solution: NDArray, tare: LoadResult) -> tuple[BaseEstimate, NDArray]:
    """The estimate and its complete solution (k,), less the tare's parameters; their errors add up.

    What is not known of the tare is not known of the load either.
    """
    n = sum(name in LOAD_NAMES for name in estimate.names)
    own, both = slice(0, n), slice(0, min(n, tare.n_load))
    values, rest, covariance = estimate.values.copy(), solution.copy(), estimate.covariance.copy()
    values[own] -= tare.body.parameters[own]
    rest[own] -= np.nan_to_num(tare.body.parameters[own])
    covariance[own, own] += tare.body.covariance[own, own]
    freedom = estimate.freedom.copy()
    freedom[both] = np.minimum(freedom[both], tare.estimate.freedom[both])
    return replace(estimate, values=values, covariance=covariance, freedom=freedom), rest
