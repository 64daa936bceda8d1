"""Weighted linear least squares that says what the data do not decide."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.linear_fit import decompose

RANK_TOLERANCE = 1e-9
"""Singular values of the column-scaled matrix below this fraction of the largest count as zero."""

MINIMUM_FREEDOM = 4
"""Degrees of freedom below which a group's noise is not re-estimated."""


@dataclass(frozen=True)
class LeastSquaresFit:
    """Solution of min Σ w (A x − b)²; k columns, m rows.

    Attributes:
        solution: (k,) of minimum norm in the scaled columns where the rank is short.
        covariance: (k, k) for weights that are inverse variances; within the determined space.
        residual: (m,) b − A x.
        leverage: (m,) diagonal of the hat matrix.
        rank: number of determined combinations.
        condition_number: of the column-scaled weighted matrix; infinite where the rank is short.
        inflation: (k,) factor by which collinearity with the other columns inflates each standard error (square root of
            the variance inflation factor); infinite for a column that takes part in an undetermined combination.

    """

    solution: NDArray
    covariance: NDArray
    residual: NDArray
    leverage: NDArray
    rank: int
    condition_number: float
    inflation: NDArray


def solve(
    matrix: NDArray, right: NDArray, weights: NDArray | None = None, tolerance: float = RANK_TOLERANCE
) -> LeastSquaresFit:
    """Solve by SVD of the weighted matrix with unit columns.

    Args:
        matrix: (m, k), with m ≥ 1.
        right: (m,).
        weights: (m,) inverse variances, ones if left out.
        tolerance: fraction of the largest singular value below which one counts as zero.

    """
    root = np.ones(len(right)) if weights is None else np.sqrt(weights)
    found = decompose(matrix * root[:, None], tolerance)
    half = (found.right.T * found.inverse) / found.scale[:, None]
    solution = half @ (found.left.T @ (root * right))
    rank = len(found.right)
    in_null_space = np.sum(found.right**2, axis=0) < 1 - 1e-6
    inflation = np.where(in_null_space, np.inf, np.linalg.norm(found.right.T * found.inverse, axis=1))
    return LeastSquaresFit(
        solution=solution,
        covariance=half @ half.T,
        residual=right - matrix @ solution,
        leverage=np.sum(found.left**2, axis=1),
        rank=rank,
        condition_number=found.condition_number if rank == matrix.shape[1] else np.inf,
        inflation=inflation,
    )


def solve_grouped(matrix: NDArray, right: NDArray, group: NDArray, rounds: int = 20) -> tuple[LeastSquaresFit, NDArray]:
    """Feasible weighted least squares: one noise variance per group of rows, estimated together with the solution.

    A group's variance is its residual sum of squares over its degrees of freedom (rows less their leverage), iterated.
    A group with fewer than four degrees of freedom keeps the variance of the first, unweighted fit: with so few, the
    iteration can end in a solution that passes through all its rows and calls them exact.

    Args:
        matrix: (m, k).
        right: (m,).
        group: (m,) integers 0 … G−1.
        rounds: upper bound of the iteration; it ends when no variance moves by more than 1e-6 of itself.

    Returns:
        The fit, its covariance in physical units, and the (G,) standard deviations of a row.

    """
    count = np.bincount(group)
    floor = 1e-12 * max(float(np.max(np.abs(right))), 1e-12)
    fit = solve(matrix, right)
    sigma = _spread(fit, group, count, floor)
    for _ in range(rounds):
        fit = solve(matrix, right, 1 / sigma[group] ** 2)
        freedom = count - np.bincount(group, fit.leverage, len(count))
        updated = np.where(freedom < MINIMUM_FREEDOM, sigma, _spread(fit, group, count, floor))
        settled = np.allclose(updated, sigma, rtol=1e-6, atol=0)
        sigma = updated
        if settled:
            break
    return solve(matrix, right, 1 / sigma[group] ** 2), sigma


def _spread(fit: LeastSquaresFit, group: NDArray, count: NDArray, floor: float) -> NDArray:
    """Standard deviation of a row in each group; one that is fitted exactly takes that of all rows together."""
    squares = np.bincount(group, fit.residual**2, len(count))
    freedom = count - np.bincount(group, fit.leverage, len(count))
    pooled = squares.sum() / max(freedom.sum(), 1e-9)
    return np.maximum(np.sqrt(np.where(freedom > 0.5, squares / np.maximum(freedom, 0.5), pooled)), floor)
