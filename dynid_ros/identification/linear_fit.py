"""What a linear estimate says, and what the data leave open."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.model.base_parameters import NO_EFFECT, triangular_factor

OUTSIDE = 1e-5
"""Part of a combination outside the determined space, of its length in scaled columns, that counts as none. Rounding
leaves 1e-15, right angles written as 1.5708 leave 1e-11; parameters that are really combined have more than 1e-3."""


@dataclass(frozen=True)
class LinearFit:
    """Estimate of k parameters.

    Attributes:
        solution: (k,) complete, to compute torques of motions like those of the data; along what the data leave open
            it says nothing, see `values`.
        covariance: (k, k) of the solution within the determined space, zero along what is open.
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
        """Values and standard errors, (s,) each, of combinations (s, k); NaN for those that the data leave open."""
        rows = np.asarray(combinations, dtype=float)
        open_ = ~self.determines(rows)
        values = rows @ self.solution
        errors = np.sqrt(np.maximum(np.einsum("sk,kl,sl->s", rows, self.covariance, rows), 0.0))
        values[open_], errors[open_] = np.nan, np.nan
        return values, errors

    def determines(self, combinations: ArrayLike) -> NDArray:
        """(s,) whether the data determine each of the combinations (s, k)."""
        scaled = np.asarray(combinations, dtype=float) / self.scale
        outside = scaled - scaled @ self.determined.T @ self.determined
        return np.linalg.norm(outside, axis=1) <= OUTSIDE * np.linalg.norm(scaled, axis=1)


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
