"""The body that a load can be: drawn to the estimate by its errors, and to a ball of its mass where they leave room."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.physical_consistency import solve_consistent
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, from_center_of_mass

DENSITY = 2700.0
"""Of the ball, kg/m³: aluminium."""
SMALLEST_MASS = 1e-3
"""Of the ball, kg."""
FARTHEST = 1.0
"""Largest distance of the ball from the frame in each direction, m."""
WEIGHT = 1.0
"""Of the ball: as of one observation that knows each second moment to about its own size."""
DECIDED = 1e-12
"""Smallest eigenvalue of a correlation matrix that is no rounding."""


def possible_load(solution: NDArray, covariance: NDArray) -> NDArray:
    """Parameters (10,) of a body that can exist.

    Minimises ½ (x − x̂)ᵀ C⁻¹ (x − x̂) + `WEIGHT` · divergence from the ball, see `consistency`.

    Args:
        solution: (k,) first k of the ten parameters, as estimated.
        covariance: (k, k); it is singular where the data leave something open, which then is as in the ball.

    """
    matrix = _whitening(covariance)
    regressor = np.zeros((len(matrix), PARAMETERS_PER_LINK))
    regressor[:, : len(solution)] = matrix
    return solve_consistent(regressor, matrix @ solution, ball(solution), WEIGHT, link_names=["load"]).solution


def ball(solution: NDArray) -> NDArray:
    """(10,) ball of aluminium of about that mass and centre."""
    mass = max(float(solution[0]), SMALLEST_MASS)
    center = np.clip(solution[1:4] / mass, -FARTHEST, FARTHEST)
    radius = (3 * mass / (4 * np.pi * DENSITY)) ** (1 / 3)
    return from_center_of_mass(mass, center, 0.4 * mass * radius**2 * np.eye(3))


def _whitening(covariance: NDArray) -> NDArray:
    """(r, k) whose square is the inverse of the covariance within what it covers."""
    scale = np.sqrt(np.diag(covariance))
    scale = np.where(scale > 0, scale, 1.0)
    values, axes = np.linalg.eigh(covariance / np.outer(scale, scale))
    decided = values > DECIDED * values[-1]
    return (axes[:, decided] / np.sqrt(values[decided])).T / scale
