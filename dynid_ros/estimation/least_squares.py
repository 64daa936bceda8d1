"""Weighted linear least squares that says what the data do not determine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError, ModelError

NO_EFFECT = 1e-5
"""Norm of a column that counts as zero, of the largest; and share of a term in a combination, of its column."""

OUTSIDE = 1e-5
"""Part of a combination outside the determined space, of its length in scaled columns, that counts as none. Rounding
leaves 1e-15, right angles written as 1.5708 leave 1e-11; parameters that are really combined have more than 1e-3."""


@dataclass(frozen=True)
class LinearFit:
    """Estimate of k parameters.

    Attributes:
        solution: (k,) complete, to compute torques of motions like those of the data; along what the data leave
            undetermined it says nothing, see `values`.
        covariance: (k, k) of the solution within the determined space, zero along the null space.
        determined: (r, k) orthonormal rows that span what the data determine, in columns divided by `scale`.
        scale: (k,) norms of the columns, 1 for an empty one.
        condition_number: of the columns divided by `scale`, within the determined space.
        singular_values: descending, of the matrix in the columns in which it was inverted.
    """

    solution: NDArray
    covariance: NDArray
    determined: NDArray
    scale: NDArray
    condition_number: float
    singular_values: NDArray

    @property
    def rank(self) -> int:
        """Number r of independent combinations that the data determine."""
        return len(self.determined)

    @property
    def values(self) -> NDArray:
        """(k,) solution, NaN for each parameter that the data do not determine by itself."""
        return self.combine(np.eye(len(self.solution)))[0]

    @property
    def standard_errors(self) -> NDArray:
        """(k,) of `values`."""
        return self.combine(np.eye(len(self.solution)))[1]

    def combine(self, combinations: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return values and standard errors, (s,) each, of combinations (s, k); NaN where undetermined."""
        rows = np.asarray(combinations, dtype=float)
        unknown = ~self.determines(rows)
        values, errors = rows @ self.solution, standard_errors_of(rows, self.covariance)
        values[unknown], errors[unknown] = np.nan, np.nan
        return values, errors

    def determines(self, combinations: ArrayLike) -> NDArray:
        """(s,) whether the data determine each of the combinations (s, k)."""
        return within(np.asarray(combinations, dtype=float) / self.scale, self.determined)


def within(rows: NDArray, determined: NDArray, tolerance: float = OUTSIDE) -> NDArray:
    """(...) bool: rows (..., k) lie in the span of orthonormal rows (r, k), but for a `tolerance` of their length."""
    outside = rows - rows @ determined.T @ determined
    return np.linalg.norm(outside, axis=-1) <= tolerance * np.linalg.norm(rows, axis=-1)


def standard_errors_of(combinations: NDArray, covariance: NDArray) -> NDArray:
    """(...) standard errors of combinations (..., k) of numbers with this covariance (k, k)."""
    return np.sqrt(np.maximum(np.einsum("...k,kl,...l->...", combinations, covariance, combinations), 0.0))


class Decomposition(NamedTuple):
    """Singular value decomposition of a matrix (m, k) whose columns were divided by their norms.

    Attributes:
        scale: (k,) norms, 1 for an empty column.
        left: (m, r) singular vectors that count.
        singular: (min(m, k),) all singular values, descending.
        right: (r, k) singular vectors that count.
    """

    scale: NDArray
    left: NDArray
    singular: NDArray
    right: NDArray

    @property
    def inverse(self) -> NDArray:
        """(r,) inverse singular values."""
        return 1 / self.singular[: len(self.right)]

    @property
    def condition_number(self) -> float:
        """Largest over smallest singular value that counts; 1 where none does."""
        return float(self.singular[0] * self.inverse[-1]) if len(self.right) else 1.0


def decompose(matrix: NDArray, tolerance: float) -> Decomposition:
    """Decompose a matrix (m, k); singular values of up to `tolerance` of the largest do not count.

    Columns of unit norm make the rank, and what is determined, independent of the units of the parameters. Clear
    columns of rounding errors before (`without_rounding`): brought to unit norm, they would count.
    """
    scale = column_norms(matrix)
    left, singular, right = np.linalg.svd(matrix / scale, full_matrices=False)
    rank = int(np.sum(singular > tolerance * singular[0])) if singular.size else 0
    return Decomposition(scale, left[:, :rank], singular, right[:rank] * matrix.any(axis=0))


def column_norms(matrix: NDArray) -> NDArray:
    """(k,) norms of the columns; 1 for an empty one, so that it can be divided by."""
    norms = np.linalg.norm(matrix, axis=0)
    return np.where(norms > 0, norms, 1.0)


def without_rounding(matrix: NDArray) -> NDArray:
    """Copy of a matrix (m, k) in which columns without effect are exactly zero, as `BaseParameters` counts them."""
    norms = np.linalg.norm(matrix, axis=0)
    return matrix * (norms > NO_EFFECT * norms.max(initial=0.0))


def triangular_factor(regressors: Iterable[NDArray]) -> NDArray:
    """R (at most p rows, p) of the QR decomposition of all regressors (..., p) below each other, in flat memory.

    Raises:
        ModelError: there are none.
    """
    factor: NDArray | None = None
    for regressor in regressors:
        rows = regressor.reshape(-1, regressor.shape[-1])
        # An array already, which numpy's type hints do not know of this mode.
        factor = np.asarray(np.linalg.qr(rows if factor is None else np.concatenate([factor, rows]), mode="r"))
    if factor is None:
        raise ModelError("motion: it has no samples")
    return factor


def checked_problem(R: ArrayLike, z: ArrayLike, prior: ArrayLike | None) -> tuple[NDArray, NDArray, NDArray]:
    """Matrix (m, k), right-hand side (m,) and prior (k,), compressed to at most k + 1 rows; no prior is zero.

    Raises:
        IdentificationError: shapes that do not fit, numbers that are not finite, a matrix of zeros.
    """
    R, z = np.asarray(R, dtype=float), np.asarray(z, dtype=float)
    start = np.zeros(R.shape[-1]) if prior is None else np.asarray(prior, dtype=float)
    if R.ndim != 2 or z.shape != R.shape[:1] or start.shape != R.shape[1:]:
        raise IdentificationError(
            f"Regressor {R.shape}, right-hand side {z.shape} and prior {start.shape} do not fit; expected (m, k), (m,) "
            f"and (k,)"
        )
    for name, values in (("Regressor", R), ("Right-hand side", z), ("Prior", start)):
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise IdentificationError(f"{name}: row {row} is not finite; remove such samples before the fit")
    if not R.any():
        raise IdentificationError("Regressor: all entries are zero, so the data determine nothing; record motion")
    if len(R) > R.shape[1] + 1:
        factor = triangular_factor([np.column_stack([R, z])])
        R, z = factor[:, :-1], factor[:, -1]
    return without_rounding(R), z, start


# Estimates from a rank-deficient regressor: ridge regression and the solution of minimum norm.
#
# Both are about a prior: with nominal parameters θ₀ they solve the error model of Khosla and Kanade (1987, eq. 11)
#
# ε = τ − Y θ₀ = Y Δθ,   θ = θ₀ + Δθ,
#
# so what the data leave undetermined stays nominal. Without a prior it is zero, as with Atkeson, An and Hollerbach
# (1986).


TOLERANCE = 1e-5
"""Singular values of the column-scaled matrix below this fraction of the largest count as zero. On real motions
structure leaves 1e-15, right angles written as 1.5708 leave 1e-10, and what can be identified more than 1e-3."""


def minimum_norm(R: ArrayLike, z: ArrayLike, prior: ArrayLike | None = None, *, scaled: bool = False) -> LinearFit:
    """The least-squares solution nearest to the prior (Atkeson, An and Hollerbach 1986, section 2.2.1).

    Args:
        R: (m, k) regressor with rows of unit variance, tall or its triangular factor.
        z: (m,) right-hand side, compressed alike.
        prior: (k,) nominal parameters; None: zero.
        scaled: measure the distance in columns of unit norm, so that it does not depend on units; else in SI units.
            The rank is that of scaled columns in either case.

    Raises:
        IdentificationError: shapes that do not fit, numbers that are not finite, a regressor of zeros.
    """
    R, z, start = checked_problem(R, z, prior)
    found = decompose(R, TOLERANCE)
    gain = (found.right.T * found.inverse) @ found.left.T / found.scale[:, None]
    if not scaled:
        gain = project(found.right * found.scale, gain)
    return LinearFit(
        solution=start + gain @ (z - R @ start),
        covariance=gain @ gain.T,
        determined=found.right,
        scale=found.scale,
        condition_number=found.condition_number,
        singular_values=found.singular if scaled else np.linalg.svd(R, compute_uv=False),
    )


def ridge(R: ArrayLike, z: ArrayLike, weight: float, prior: ArrayLike | None = None) -> LinearFit:
    """Minimise ‖R θ − z‖² + d ‖θ − θ₀‖²: θ = θ₀ + (RᵀR + d 1)⁻¹ Rᵀ (z − R θ₀), Atkeson's eq. 20.

    The weight should be far below the smallest squared singular value that counts. Every combination is pulled to the
    prior by d / (s² + d) of the way. The covariance is that of a prior with standard deviation 1/√d in each parameter,
    so it covers the pull as far as the prior is that good; along the null space it is zero as in `minimum_norm`.

    Args:
        R: (m, k) regressor, tall or its triangular factor.
        z: (m,) right-hand side, compressed alike.
        weight: d > 0; the paper's 10 is for rows in N m and parameters in SI units.
        prior: (k,) nominal parameters θ₀; None: zero.

    Raises:
        IdentificationError: a weight that is not positive, or as `minimum_norm`.
    """
    if not (np.isfinite(weight) and weight > 0):
        raise IdentificationError(f"Weight of the ridge is {weight:g}; expected a positive number")
    R, z, start = checked_problem(R, z, prior)
    found = decompose(R, TOLERANCE)
    left, singular, right = np.linalg.svd(R, full_matrices=False)
    filtered = singular / (singular**2 + weight)
    rank = len(found.right)
    known = right[:rank].T
    return LinearFit(
        solution=start + right.T @ (filtered * (left.T @ (z - R @ start))),
        covariance=(known / (singular[:rank] ** 2 + weight)) @ known.T,
        determined=found.right,
        scale=found.scale,
        condition_number=found.condition_number,
        singular_values=singular,
    )


def project(rows: NDArray, vectors: NDArray) -> NDArray:
    """Parts of vectors (k, ...) in the span of rows (r, k): with steps from a prior, the shortest that do the same."""
    basis, _ = np.linalg.qr(rows.T)
    return basis @ (basis.T @ vectors)


ROUNDING_RANK_TOLERANCE = 1e-9
"""Singular values of the column-scaled matrix below this fraction of the largest count as zero."""

MINIMUM_DOF = 4
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
    matrix: NDArray, right: NDArray, weights: NDArray | None = None, tolerance: float = ROUNDING_RANK_TOLERANCE
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


ROUNDS = 20
"""Most rounds of the estimation of groups' noise; it ends when no variance changes by more than 1e-6 of itself."""


def solve_grouped(matrix: NDArray, right: NDArray, group: NDArray) -> tuple[LeastSquaresFit, NDArray]:
    """Feasible weighted least squares: one noise variance per group of rows, estimated together with the solution.

    A group's variance is its residual sum of squares over its degrees of freedom (rows less their leverage), iterated.
    A group with fewer than four degrees of freedom keeps the variance of the first, unweighted fit: with so few, the
    iteration can end in a solution that passes through all its rows and calls them exact.

    Args:
        matrix: (m, k).
        right: (m,).
        group: (m,) integers 0 … G−1.

    Returns:
        The fit, its covariance in physical units, and the (G,) standard deviations of a row.
    """
    count = np.bincount(group)
    floor = 1e-12 * max(float(np.max(np.abs(right))), 1e-12)
    fit = solve(matrix, right)
    sigma = _spread(fit, group, count, floor)
    for _ in range(ROUNDS):
        fit = solve(matrix, right, 1 / sigma[group] ** 2)
        dof = count - np.bincount(group, fit.leverage, len(count))
        updated = np.where(dof < MINIMUM_DOF, sigma, _spread(fit, group, count, floor))
        settled = np.allclose(updated, sigma, rtol=1e-6, atol=0)
        sigma = updated
        if settled:
            break
    return solve(matrix, right, 1 / sigma[group] ** 2), sigma


def _spread(fit: LeastSquaresFit, group: NDArray, count: NDArray, floor: float) -> NDArray:
    """Standard deviation of a row in each group; one that is fitted exactly takes that of all rows together."""
    squares = np.bincount(group, fit.residual**2, len(count))
    dof = count - np.bincount(group, fit.leverage, len(count))
    pooled = squares.sum() / max(dof.sum(), 1e-9)
    return np.maximum(np.sqrt(np.where(dof > 0.5, squares / np.maximum(dof, 0.5), pooled)), floor)
