"""Rank of a matrix of equations, and every tolerance that decides it.

Columns are scaled to unit norm first, so that the rank does not depend on the units of the parameters. A singular value
that is smaller than a tolerance, as a fraction of the largest, counts as zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
