"""Criteria of optimal experiment design, and the D-optimal choice of poses.

A criterion is a function of the information matrix, the inverse of the covariance of the parameters. All criteria are
smooth, and smaller for better motions.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# The choice of poses: exchange algorithms for D-optimal designs (Fedorov 1972, chapter 3).


RANK_TOLERANCE = 1e-6
"""Singular value, relative to the largest, below which a combination of parameters is not determined."""
PRIOR_INFORMATION = 1e-6
"""Prior information relative to that of an average pose; it ranks poses while parameters are still undetermined."""
MIN_GAIN = 1e-9
"""Smallest gain in log-determinant for which a pose is exchanged."""
N_RANDOM_STARTS = 4
"""Random choices that are improved as well as the greedy choice."""


def whitening_axes(rows: NDArray) -> NDArray:
    """Return axes (k, r) of the r combinations of k parameters that poses determine, to be used as rows @ axes.

    Columns are scaled to unit norm first. In these axes the information of an average pose is the identity, so the
    determinants of different choices do not depend on units.

    Args:
        rows: (P, m, k) regressor of the poses.
    """
    flat = rows.reshape(-1, rows.shape[2])
    norms = np.linalg.norm(flat, axis=0)
    moving = norms > RANK_TOLERANCE * norms.max(initial=0.0)
    scale = np.where(moving, 1.0 / np.where(moving, norms, 1.0), 0.0)
    _, values, axes = np.linalg.svd(flat * scale, full_matrices=False)
    kept = values > RANK_TOLERANCE * values.max(initial=0.0)
    return scale[:, np.newaxis] * axes[kept].T / values[kept] * np.sqrt(len(rows))


def condition_number(rows: NDArray) -> float:
    """Return the condition number of rows (K, m, r) with columns of unit norm; infinite if they are rank-deficient."""
    flat = rows.reshape(-1, rows.shape[2])
    norms = np.linalg.norm(flat, axis=0)
    if not np.all(norms > RANK_TOLERANCE * norms.max(initial=0.0)) or len(flat) < len(norms):
        return np.inf
    values = np.linalg.svd(flat / norms, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > RANK_TOLERANCE * values[0] else np.inf


def rank(rows: NDArray) -> int:
    """Return the rank of rows (K, m, r)."""
    values = np.linalg.svd(rows.reshape(-1, rows.shape[2]), compute_uv=False)
    return int(np.sum(values > RANK_TOLERANCE * values.max(initial=0.0)))


def log_determinant(rows: NDArray) -> float:
    """Return the log-determinant of the information of rows (K, m, r); minus infinity if they are rank-deficient."""
    information = np.einsum("pmi,pmj->ij", rows, rows)
    values = np.linalg.eigvalsh(information)
    return float(np.log(values).sum()) if values[0] > RANK_TOLERANCE**2 * values[-1] else -np.inf


def d_optimal(rows: NDArray, count: int, seed: int = 0) -> NDArray:
    """Choose different poses with the largest determinant of the information that exchanges lead to.

    The greedy choice and some random choices are improved by the best exchange of a chosen pose for another, until no
    exchange helps.

    Args:
        rows: (P, m, r) regressor of all poses; see `whitening_axes`.
        count: number of chosen poses, at most P.
        seed: seed of the random choices.

    Returns:
        Indices (count,) of the poses of the best choice.
    """
    poses, _, size = rows.shape
    prior = PRIOR_INFORMATION * np.einsum("pmi,pmi->", rows, rows) / (poses * max(size, 1)) * np.eye(size)
    rng = np.random.default_rng(seed)
    greedy: list[int] = []
    for _ in range(count):
        gains = _gains(prior + _information(rows[greedy]), rows)
        gains[greedy] = -np.inf
        greedy.append(int(np.argmax(gains)))
    starts = [greedy, *(list(rng.choice(poses, count, replace=False)) for _ in range(N_RANDOM_STARTS))]
    improved = [_exchange_poses(rows, start, prior) for start in starts]
    best = max(improved, key=lambda chosen: float(np.linalg.slogdet(prior + _information(rows[chosen])).logabsdet))
    return np.array(best, dtype=int)


def _exchange_poses(rows: NDArray, chosen: list[int], prior: NDArray) -> list[int]:
    chosen = list(chosen)
    helped = True
    while helped:
        helped = False
        for place, old in enumerate(chosen):
            rest = chosen[:place] + chosen[place + 1 :]
            gains = _gains(prior + _information(rows[rest]), rows)
            gains[rest] = -np.inf
            new = int(np.argmax(gains))
            if gains[new] > gains[old] + MIN_GAIN:
                chosen[place] = new
                helped = True
    return chosen


def _information(rows: NDArray) -> NDArray:
    return np.einsum("pmi,pmj->ij", rows, rows)


def _gains(information: NDArray, rows: NDArray) -> NDArray:
    """Return the gains (P,) in log-determinant by each pose."""
    whitened = rows @ np.linalg.inv(np.linalg.cholesky(information)).T
    size = rows.shape[1]
    return np.linalg.slogdet(np.eye(size) + whitened @ whitened.transpose(0, 2, 1)).logabsdet


EIGENVALUE_TOLERANCE = 1e-14
"""Smallest eigenvalue, relative to the largest, that is distinguished from zero."""


class Criterion(Protocol):
    """Rating of information matrices (p, p)."""

    name: str

    def value(self, information: NDArray) -> float:
        """Return the rating to report; infinite if a parameter is not determined."""

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """Return a smooth rating, closer to the true one for larger `sharpness`, and its gradient (p, p)."""


class Condition:
    """Condition number of the regressor (Lightcap and Banks 2007, eq. 8).

    The largest and the smallest eigenvalue have no gradient where eigenvalues are equal. The smooth rating replaces
    them by the norms (Σ λ^s)^(1/s) and (Σ λ^-s)^(1/s), which depend on all eigenvalues and tend to the extremes.

    Args:
        scaled: whether the columns of the regressor are scaled to unit norm first. The number then does not depend on
            units, and is close to the minimum over all scalings (van der Sluis 1969).
    """

    def __init__(self, *, scaled: bool = True) -> None:
        self.scaled = scaled
        self.name = "condition" if scaled else "condition_unscaled"

    def value(self, information: NDArray) -> float:
        """Return the condition number."""
        norms = np.sqrt(np.diag(information))
        if not norms.all():
            return np.inf
        values = np.linalg.eigvalsh(self._scaled(information, norms))
        return float(np.sqrt(values[-1] / values[0])) if values[0] > EIGENVALUE_TOLERANCE * values[-1] else np.inf

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """Return twice the logarithm of the condition number, smoothed, and its gradient (p, p)."""
        norms = np.sqrt(np.maximum(np.diag(information), EIGENVALUE_TOLERANCE * np.trace(information)))
        matrix = self._scaled(information, norms)
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(values, EIGENVALUE_TOLERANCE * values[-1])
        logs = np.log(values)
        large = np.exp(sharpness * (logs - logs[-1]))
        small = np.exp(sharpness * (logs[0] - logs))
        rating = logs[-1] - logs[0] + (np.log(large.sum()) + np.log(small.sum())) / sharpness
        gradient = (vectors * ((large / large.sum() - small / small.sum()) / values)) @ vectors.T
        if self.scaled:
            by_norms = np.einsum("ij,ji->i", gradient, matrix) / norms**2
            gradient = gradient / np.outer(norms, norms)
            gradient[np.diag_indices_from(gradient)] -= by_norms
        return float(rating), gradient

    def _scaled(self, information: NDArray, norms: NDArray) -> NDArray:
        return information / np.outer(norms, norms) if self.scaled else information


class Determinant:
    """D-optimality: the volume of the confidence ellipsoid of the parameters (Calafiore, Indri and Bona 2001).

    It depends on the noise of each torque, but not on the choice of base parameters or of units.
    """

    name = "determinant"

    def value(self, information: NDArray) -> float:
        """Return the mean logarithm of the ellipsoid's half axes; a decrease by 0.7 halves the errors."""
        sign, logarithm = np.linalg.slogdet(information)
        return float(-0.5 * logarithm / len(information)) if sign > 0 else np.inf

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:  # noqa: ARG002
        """Return the negative log-determinant per parameter, times 10, and its gradient (p, p)."""
        values, vectors = np.linalg.eigh(information)
        values = np.maximum(values, EIGENVALUE_TOLERANCE * values[-1])
        share = 10.0 / len(values)
        return float(-share * np.log(values).sum()), -share * (vectors / values) @ vectors.T


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion for criterion in (Condition(), Condition(scaled=False), Determinant())
}
"""Criteria by name."""
