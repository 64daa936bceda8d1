"""Gains of a sensor's axes, as far as a load shows them.

All axes feel one mass and one centre: gains that differ from axis to axis leave residuals, and would be taken for
inertia. Readings are Y x + bias + γ Y x with relative errors γ of the gains, drawn from a normal distribution of known
width: ridge regression, about the load of the fit before. What all axes have in common no load shows; it stays an error
of the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.least_squares import column_norms
from dynid_ros.estimation.normal_equations import LinkProblem

ROUNDS = 5
CORRELATED = 2.0
"""Factor of the noise that stands for its correlation from sample to sample."""


class Gains(NamedTuple):
    """Relative errors (6,) of the axes' gains, their covariance (6, 6), and the load (10,) or (4,) of that fit."""

    errors: NDArray
    covariance: NDArray
    load: NDArray

    @property
    def values(self) -> NDArray:
        """(6,) of the columns of what is left of the errors."""
        return np.zeros(len(self.errors))

    @property
    def gain_shifts(self) -> None:
        """Nothing else was found with these gains."""
        return None


def estimated_gains(problem: LinkProblem, gain_error: float, n_load: int) -> Gains:
    """Gains of a problem whose first unknowns are those of the load.

    Args:
        problem: of the readings of six axes.
        gain_error: standard deviation of the relative errors before the readings were seen.
        n_load: number of the load's parameters.

    """
    fit, noise = problem.weighted()
    parts = [problem.joint(axis) for axis in range(problem.n_joints)]
    n, k = problem.n_joints, problem.n_unknowns
    load, right = fit.solution[:n_load], np.concatenate([own for _, own in parts])
    owner = np.repeat(np.arange(n), [len(own) for _, own in parts])
    for _ in range(ROUNDS):
        gains = np.zeros((len(right), n))
        gains[np.arange(len(right)), owner] = np.concatenate([matrix[:, :n_load] @ load for matrix, _ in parts])
        matrix = np.hstack([np.concatenate([matrix for matrix, _ in parts]), gains])
        solution, covariance = _ridge(matrix / noise[owner, None], right / noise[owner], k, gain_error)
        squares = np.bincount(owner, (right - matrix @ solution) ** 2, n)
        noise = np.maximum(np.sqrt(squares / max(problem.count() - (k + n) / n, 1.0)), 1e-9 * problem.torque_rms())
        load = solution[:n_load]
    _, covariance = _ridge(matrix / (CORRELATED * noise[owner, None]), right, k, gain_error)
    return Gains(solution[k:], covariance[k:, k:], load)


def _ridge(matrix: NDArray, right: NDArray, k: int, size: float) -> tuple[NDArray, NDArray]:
    """Solution (k + n,) and covariance of unknowns of which the last n are drawn with a standard deviation `size`."""
    n = matrix.shape[1] - k
    prior = np.hstack([np.zeros((n, k)), np.eye(n) / size])
    whole = np.vstack([matrix, prior])
    scale = column_norms(whole)
    inverse = np.linalg.pinv(whole / scale) / scale[:, None]
    return inverse @ np.append(right, np.zeros(n)), inverse @ inverse.T
