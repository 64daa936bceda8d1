"""Rank of a matrix of equations, and every tolerance that decides it.

Columns are scaled to unit norm first, so that the rank does not depend on the units of the parameters. A singular value
that is smaller than a tolerance, as a fraction of the largest, counts as zero.

The normal equations are XᵀX (k, k) of the regressor X, whose rows are divided by the standard deviation of their noise.
Columns are scaled to unit norm before the rank is decided, so that it does not depend on the units of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

MOTION_RANK_TOLERANCE = 1e-4
"""Tolerance for regressors of recorded motion. Motion determines singular values above 1e-3, and noise of the positions
simulates values up to 1e-5."""
STRUCTURE_RANK_TOLERANCE = 1e-5
"""Tolerance for regressors with exact positions. The structure of an arm leaves 1e-15, right angles written as 1.5708
leave 1e-10, and what can be identified has more than 1e-3."""
SENSOR_RANK_TOLERANCE = 1e-8
"""Tolerance for the Jacobian of torque sensors, whose readings are exact functions of a few poses."""
ROUNDING_RANK_TOLERANCE = 1e-9
"""Tolerance for few equations without structure, for which it removes rounding only."""
GRAM_ROUNDING = 1e-14
"""Tolerance for the eigenvalues of normal equations, per unit column: below it they are rounding."""
NEGLIGIBLE_COLUMN = 1e-5
"""Norm of a column that counts as zero, as a fraction of the largest norm or of the norm in a reference motion, and
share of a term in a combination. Right angles written as 1.5708 leave that much."""
ROUNDING_COLUMN = 1e-9
"""Norm of a column of one joint that is rounding, as a fraction of the joint's largest norm. Scaled to unit norm, it
would count."""
OUTSIDE_TOLERANCE = 1e-5
"""Part of a combination outside the determined space, as a fraction of its norm, that counts as zero. Rounding leaves
1e-15, right angles written as 1.5708 leave 1e-11, and parameters that are really combined have more than 1e-3."""
UNDETERMINED_FRACTION = 1e-3
"""Part of a unit column in the null space from which the parameter counts as undetermined."""


def column_norms(matrix: NDArray) -> NDArray:
    """Return the norms (k,) of the columns, 1 for an empty column, so that the matrix can be divided by them."""
    norms = np.linalg.norm(matrix, axis=0)
    return np.where(norms > 0, norms, 1.0)


def without_rounding(matrix: NDArray) -> NDArray:
    """Return a copy of a matrix (m, k) in which columns without effect are exactly zero."""
    norms = np.linalg.norm(matrix, axis=0)
    return matrix * (norms > NEGLIGIBLE_COLUMN * norms.max(initial=0.0))


class Decomposition(NamedTuple):
    """Singular value decomposition of a matrix (m, k) with columns of unit norm.

    Attributes:
        scale: (k,) norms of the columns, 1 for an empty column.
        left: (m, r) left singular vectors above the tolerance.
        singular: (min(m, k),) all singular values, descending.
        right: (r, k) right singular vectors above the tolerance.
    """

    scale: NDArray
    left: NDArray
    singular: NDArray
    right: NDArray

    @property
    def inverse(self) -> NDArray:
        """Inverse (r,) of the singular values above the tolerance."""
        return 1 / self.singular[: len(self.right)]

    @property
    def condition_number(self) -> float:
        """Ratio of the largest to the smallest singular value above the tolerance; 1 for rank 0."""
        return float(self.singular[0] * self.inverse[-1]) if len(self.right) else 1.0


def decompose(matrix: NDArray, tolerance: float) -> Decomposition:
    """Decompose a matrix (m, k); singular values up to `tolerance` of the largest do not count.

    Apply `without_rounding` first: a column of rounding errors would count once it has unit norm.
    """
    scale = column_norms(matrix)
    left, singular, right = np.linalg.svd(matrix / scale, full_matrices=False)
    rank = int(np.sum(singular > tolerance * singular[0])) if singular.size else 0
    return Decomposition(scale, left[:, :rank], singular, right[:rank] * matrix.any(axis=0))


def null_space(matrix: NDArray) -> NDArray:
    """Return the directions (k, k − r) that a matrix (m, k) does not determine."""
    parts = decompose(matrix, ROUNDING_RANK_TOLERANCE)
    rank = len(parts.right)
    basis = np.linalg.svd(parts.right)[2][rank:].T if rank else np.eye(matrix.shape[1])
    return basis / parts.scale[:, None]


def within(rows: NDArray, determined: NDArray, tolerance: float = OUTSIDE_TOLERANCE) -> NDArray:
    """Return a mask (...) of the rows (..., k) that lie in the span of orthonormal rows (r, k)."""
    outside = rows - rows @ determined.T @ determined
    return np.linalg.norm(outside, axis=-1) <= tolerance * np.linalg.norm(rows, axis=-1)


def scaled_eigh(matrix: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return eigenvalues (k,) and eigenvectors (k, k) of a symmetric matrix scaled to a unit diagonal, and the scale.

    The scale (k,) is the root of the diagonal, 1 where the diagonal is not positive.
    """
    scale = np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
    values, vectors = np.linalg.eigh(matrix / scale / scale[:, None])
    return values, vectors, scale


def half_inverse(normal: NDArray, tolerance: float = MOTION_RANK_TOLERANCE**2) -> NDArray:
    """Return H (k, r) whose product H Hᵀ is the inverse of normal equations (k, k) within the determined space.

    Args:
        normal: normal equations.
        tolerance: fraction of the largest eigenvalue, with columns of unit norm, below which an eigenvalue is zero.
    """
    values, axes, scale = scaled_eigh(normal)
    kept = values > tolerance * values[-1]
    return axes[:, kept] / np.sqrt(values[kept]) / scale[:, None]


def gram_factor(gram: NDArray) -> NDArray:
    """Return R (r, k) with RᵀR = gram (k, k); combinations of columns that rounding hides are zero in it."""
    values, vectors, scale = scaled_eigh(gram)
    kept = values > GRAM_ROUNDING * len(values)
    return np.sqrt(values[kept])[:, None] * vectors[:, kept].T * scale


MIN_SHARE = 1e-4
"""Smallest coefficient in a combination, for columns of unit norm; no sensor sees the effect of a smaller one."""


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Identifiability of k parameters.

    Attributes:
        singular_values: (k,) singular values of the weighted regressor with columns of unit norm, descending.
        rank: number of singular values above `MOTION_RANK_TOLERANCE` times the largest.
        unscaled: condition number of the regressor without scaling of its columns; infinite if rank-deficient.
        identifiable: (k,) mask of the parameters that are determined individually.
        covariance: (k, k) covariance of the parameters; NaN in rows and columns of undetermined ones.
        inflation: (k,) ratio of the standard error to its value if all other parameters were known, which is the
            square root of the variance inflation factor; infinite if undetermined.
        norms: (k,) norms of the columns of the weighted regressor; zero for negligible columns.
        null_space: (k, k − rank) orthonormal basis of the null space. Its coordinates are parameter times norm.
    """

    singular_values: NDArray
    rank: int
    unscaled: float
    identifiable: NDArray
    covariance: NDArray
    inflation: NDArray
    norms: NDArray
    null_space: NDArray

    @classmethod
    def of(cls, information: NDArray, reference: NDArray) -> Identifiability:
        """Return the identifiability of parameters from normal equations.

        Args:
            information: (k, k) normal equations of the motion, for noise of unit variance.
            reference: (k, k) normal equations of a motion that excites all parameters. A column whose norm is below
                `NEGLIGIBLE_COLUMN` of its norm in this motion counts as zero.
        """
        norms = np.sqrt(np.diag(information))
        is_excited = norms > NEGLIGIBLE_COLUMN * np.sqrt(np.diag(reference))
        norms = np.where(is_excited, norms, 0.0)
        scale = np.where(is_excited, norms, 1.0)
        # The eigenvalues of the scaled XᵀX are the squared singular values of X with columns of unit norm.
        values, vectors = np.linalg.eigh(information * np.outer(is_excited, is_excited) / np.outer(scale, scale))
        singular = np.sqrt(np.maximum(values, 0.0))
        kept = singular > MOTION_RANK_TOLERANCE * singular[-1]
        null_space = vectors[:, ~kept]
        # A unit change of an identifiable parameter has no part in the null space.
        identifiable = is_excited & (np.linalg.norm(null_space, axis=1) < UNDETERMINED_FRACTION)
        root = vectors[:, kept] / singular[kept]
        scaled_covariance = root @ root.T  # pseudoinverse of the scaled normal equations
        covariance = np.where(np.outer(identifiable, identifiable), scaled_covariance / np.outer(scale, scale), np.nan)
        # With all others known, the standard error of a parameter with a unit column is 1.
        inflation = np.where(identifiable, np.sqrt(np.diag(scaled_covariance)), np.inf)
        unscaled = np.inf
        if kept.all():
            eigenvalues = np.linalg.eigvalsh(information)
            unscaled = float(np.sqrt(eigenvalues[-1] / eigenvalues[0])) if eigenvalues[0] > 0 else np.inf
        rank = int(np.count_nonzero(kept))
        return cls(singular[::-1], rank, unscaled, identifiable, covariance, inflation, norms, null_space)

    @property
    def condition_number(self) -> float:
        """Condition number of the regressor with columns of unit norm; infinite if it is rank-deficient."""
        if self.rank < len(self.singular_values):
            return np.inf
        return float(self.singular_values[0] / self.singular_values[-1])

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (k,) of the parameters; infinite for undetermined ones."""
        return np.sqrt(np.where(self.identifiable, np.diag(self.covariance), np.inf))

    def partner(self, parameter: int) -> tuple[int, float]:
        """Return the index of the parameter whose error correlates most with that of `parameter`, and how much."""
        errors = self.standard_errors
        with np.errstate(invalid="ignore"):
            correlation = np.nan_to_num(self.covariance[parameter] / errors / errors[parameter])
        correlation[parameter] = 0.0
        other = int(np.argmax(np.abs(correlation)))
        return other, float(correlation[other])

    def combinations(self) -> NDArray:
        """Return the identifiable combinations (r, k) of parameters that are not identifiable individually.

        Each row has a leading parameter with coefficient 1, and multiples of the parameters that cannot be separated
        from it.
        """
        candidates = np.flatnonzero(~self.identifiable & (self.norms > 0))
        basis = self.null_space[candidates]
        size = (
            int(np.count_nonzero(np.linalg.svd(basis, compute_uv=False) > UNDETERMINED_FRACTION)) if basis.size else 0
        )
        if not size:
            return np.zeros((0, len(self.norms)))
        # Pivoting selects `size` parameters whose rows of the basis are independent. The row of each leading parameter
        # is a sum of their rows. Subtracting this sum leaves a combination orthogonal to the null space: identifiable.
        _, _, order = qr(basis.T, mode="economic", pivoting=True)
        dependent = np.sort(order[:size])
        leading = np.sort(order[size:])
        shares = -np.linalg.lstsq(basis[dependent].T, basis[leading].T, rcond=UNDETERMINED_FRACTION)[0].T
        shares[np.abs(shares) < MIN_SHARE] = 0.0
        # Shares belong to parameters times norms. The ratio of norms makes them coefficients of the parameters.
        norm_ratios = self.norms[candidates[dependent]] / self.norms[candidates[leading], None]
        combinations = np.zeros((len(leading), len(self.norms)))
        combinations[np.arange(len(leading)), candidates[leading]] = 1.0
        combinations[:, candidates[dependent]] = shares * norm_ratios
        return combinations
