"""Identifiability analysis: which parameters the normal equations determine, how precisely, and in which combinations.

The normal equations are XᵀX (k, k) of the regressor X, whose rows are divided by the standard deviation of their noise.
Columns are scaled to unit norm before the rank is decided, so that it does not depend on the units of the parameters.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from dynid_ros.estimation.rank import MOTION_RANK_TOLERANCE, NEGLIGIBLE_COLUMN, UNDETERMINED_FRACTION

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
    def of(cls, information: NDArray, reference: NDArray) -> "Identifiability":
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
