"""Identifiability of parameters by normal equations: which are determined, how well, and in which combinations."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from dynid_ros.estimation.rank import MOTION_RANK_TOLERANCE, NEGLIGIBLE_COLUMN, UNDETERMINED_FRACTION

MIN_SHARE = 1e-4
"""Share of a parameter in a combination below which no sensor sees its effect."""


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Identifiability of k parameters by normal equations.

    Attributes:
        singular_values: (k,) of the weighted regressor with unit columns, descending.
        rank: number of singular values above the tolerance.
        unscaled: condition number of the unscaled columns; infinite if rank-deficient.
        identifiable: (k,) mask of the determined parameters.
        covariance: (k, k); rows and columns of undetermined parameters are NaN.
        inflation: (k,) standard error relative to that with all other parameters known; infinite if undetermined.
        norms: (k,) norms of the columns; zero for columns without effect.
        null_space: (k, k − rank) orthonormal changes without effect, of parameters times their norms.
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
        """Judge normal equations (k, k) for unit noise, in comparison with those of a `reference` motion."""
        norms = np.sqrt(np.diag(information))
        acts = norms > NEGLIGIBLE_COLUMN * np.sqrt(np.diag(reference))
        norms = np.where(acts, norms, 0.0)
        scale = np.where(acts, norms, 1.0)
        values, vectors = np.linalg.eigh(information * np.outer(acts, acts) / np.outer(scale, scale))
        singular = np.sqrt(np.maximum(values, 0.0))
        kept = singular > MOTION_RANK_TOLERANCE * singular[-1]
        null_space = vectors[:, ~kept]
        identifiable = acts & (np.linalg.norm(null_space, axis=1) < UNDETERMINED_FRACTION)
        own = vectors[:, kept] / singular[kept]
        scaled = own @ own.T
        covariance = np.where(np.outer(identifiable, identifiable), scaled / np.outer(scale, scale), np.nan)
        inflation = np.where(identifiable, np.sqrt(np.diag(scaled)), np.inf)
        unscaled = np.inf
        if kept.all():
            raw = np.linalg.eigvalsh(information)
            unscaled = float(np.sqrt(raw[-1] / raw[0])) if raw[0] > 0 else np.inf
        rank = int(np.count_nonzero(kept))
        return cls(singular[::-1], rank, unscaled, identifiable, covariance, inflation, norms, null_space)

    @property
    def condition_number(self) -> float:
        """Condition number of the regressor with columns of unit norm; infinite where the rank is short."""
        if self.rank < len(self.singular_values):
            return np.inf
        return float(self.singular_values[0] / self.singular_values[-1])

    @property
    def standard_errors(self) -> NDArray:
        """(k,) infinite where not determined."""
        return np.sqrt(np.where(self.identifiable, np.diag(self.covariance), np.inf))

    def partner(self, parameter: int) -> tuple[int, float]:
        """Return the parameter with the error most correlated with that of an identifiable one, and the correlation."""
        errors = self.standard_errors
        with np.errstate(invalid="ignore"):
            correlation = np.nan_to_num(self.covariance[parameter] / errors / errors[parameter])
        correlation[parameter] = 0.0
        other = int(np.argmax(np.abs(correlation)))
        return other, float(correlation[other])

    def combinations(self) -> NDArray:
        """Return the identifiable combinations (r, k) of parameters that are not identifiable by themselves."""
        candidates = np.flatnonzero(~self.identifiable & (self.norms > 0))
        among = self.null_space[candidates]
        size = (
            int(np.count_nonzero(np.linalg.svd(among, compute_uv=False) > UNDETERMINED_FRACTION)) if among.size else 0
        )
        if not size:
            return np.zeros((0, len(self.norms)))
        # These parameters represent the null space; the others are identifiable together with them.
        _, _, order = qr(among.T, mode="economic", pivoting=True)
        lost = np.sort(order[:size])
        kept = np.sort(order[size:])
        shares = -np.linalg.lstsq(among[lost].T, among[kept].T, rcond=UNDETERMINED_FRACTION)[0].T
        shares[np.abs(shares) < MIN_SHARE] = 0.0
        found = np.zeros((len(kept), len(self.norms)))
        found[np.arange(len(kept)), candidates[kept]] = 1.0
        found[:, candidates[lost]] = shares * self.norms[candidates[lost]] / self.norms[candidates[kept], None]
        return found
