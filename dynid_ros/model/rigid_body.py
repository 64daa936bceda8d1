"""Mass, centre, principal moments and axes of a body with their standard errors, from its ten inertial parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model.inertia import inertia_matrix, skew

COMPLEX_STEP = 1e-30
"""Step of complex-step derivatives, which have no rounding error."""
MAX_AXIS_ERROR_RAD = 0.35
"""Standard error above which the direction of a principal axis is meaningless."""
AXIS_PAIRS = ((1, 2), (0, 2), (0, 1))
"""For each axis the other two; if their moments are equal, their directions in the plane across the axis are free."""


@dataclass(frozen=True, eq=False)
class LoadBody:
    """A rigid body and the covariance of its parameters; standard errors follow by the delta method.

    Attributes:
        parameters: (10,) about the frame's origin; NaN if unknown.
        covariance: (10, 10) of the parameters.
    """

    parameters: NDArray
    covariance: NDArray

    @property
    def mass(self) -> float:
        """Mass, kg."""
        return float(self.parameters[0])

    @property
    def mass_error(self) -> float:
        """Standard error of the mass, kg."""
        return float(np.sqrt(max(self.covariance[0, 0], 0.0)))

    @property
    def center(self) -> NDArray:
        """Centre of mass (3,) in the frame, m."""
        return _center(self.parameters)

    @property
    def center_errors(self) -> NDArray:
        """Standard errors (3,) of the centre of mass, m."""
        return np.sqrt(np.diag(self._through(_center)))

    @property
    def inertia(self) -> NDArray:
        """Inertia (3, 3) about the centre of mass, in the axes of the frame, kg m²."""
        return inertia_matrix(np.concatenate([np.zeros(4), _central(self.parameters)]))

    @property
    def inertia_errors(self) -> NDArray:
        """Standard errors (6,) of Ixx Ixy Ixz Iyy Iyz Izz about the centre of mass, kg m²."""
        return np.sqrt(np.diag(self._through(_central)))

    @property
    def moments(self) -> NDArray:
        """Principal moments (3,) about the centre of mass, ascending, kg m²."""
        return self._principal[0]

    @property
    def axes(self) -> NDArray:
        """Principal axes (3, 3) in the frame, right-handed, one per column, in the order of the moments."""
        return self._principal[1]

    @cached_property
    def moment_errors(self) -> NDArray:
        """Standard errors (3,) of the principal moments, kg m²."""
        return np.sqrt(np.diag(self._in_axes)[[0, 3, 5]])

    @cached_property
    def axis_errors(self) -> NDArray:
        """Standard errors (3,) of the turn about each principal axis, which mixes the other two, rad."""
        # A perturbation E of the tensor turns axes i and j by E_ij / (λ_j − λ_i).
        deviations = np.sqrt(np.diag(self._in_axes)[[4, 2, 1]])
        gaps = np.array([self.moments[j] - self.moments[i] for i, j in AXIS_PAIRS])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(gaps > 0, deviations / gaps, np.inf)

    @property
    def alike(self) -> list[tuple[int, int]]:
        """Pairs of principal moments that are too close to each other for meaningful axes."""
        return [pair for pair, error in zip(AXIS_PAIRS, self.axis_errors, strict=True) if error > MAX_AXIS_ERROR_RAD]

    @cached_property
    def _principal(self) -> tuple[NDArray, NDArray]:
        if not np.isfinite(self.inertia).all():
            return np.full(3, np.nan), np.full((3, 3), np.nan)
        moments, axes = np.linalg.eigh(self.inertia)
        return moments, axes * np.array([1.0, 1.0, np.linalg.det(axes)])

    @property
    def _in_axes(self) -> NDArray:
        """Covariance (6, 6) of the tensor about the centre of mass in its principal axes."""
        axes = np.nan_to_num(self.axes)

        def turned(parameters: NDArray) -> NDArray:
            tensor = inertia_matrix(np.concatenate([np.zeros(4), _central(parameters)]))
            return (axes.T @ tensor @ axes)[np.triu_indices(3)]

        return self._through(turned)

    def _through(self, function: Callable[[NDArray], NDArray]) -> NDArray:
        """Return the covariance of a function of the parameters, by complex-step derivatives."""
        parameters = np.nan_to_num(self.parameters)
        if not parameters[0]:
            size = len(function(np.ones(10)))
            return np.full((size, size), np.nan)
        slopes = np.stack(
            [function(parameters + 1j * COMPLEX_STEP * unit).imag / COMPLEX_STEP for unit in np.eye(10)], axis=1
        )
        return slopes @ self.covariance @ slopes.T


def _center(parameters: NDArray) -> NDArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return parameters[1:4] / parameters[0]


def _central(parameters: NDArray) -> NDArray:
    """Return the inertia (6,) about the centre of mass."""
    center = _center(parameters)
    arm = skew(center).astype(parameters.dtype) if np.iscomplexobj(parameters) else skew(center)
    return (inertia_matrix(parameters) + parameters[0] * arm @ arm)[np.triu_indices(3)]
