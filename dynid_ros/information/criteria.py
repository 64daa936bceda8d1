"""What makes one motion, or one choice of poses, better than another, as functions of the information that it holds.

The information is the matrix of normal equations, the inverse of the covariance of the parameters. Both criteria are
smooth, and smaller for better motions.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# The most informative of many poses: exchange algorithms for D-optimal designs (Fedorov 1972, chapter 3).


RANK = 1e-6
"""Singular value, of the largest, below which a combination of parameters counts as open."""
WEAK = 1e-6
"""Information assumed beforehand, of one pose's mean: it says which pose to take while parameters are still open."""
GAIN = 1e-9
"""Smallest gain in log-determinant for which a pose is exchanged."""
STARTS = 4
"""Choices drawn at random that are improved too, besides the greedy one."""


def whitening_axes(rows: NDArray) -> NDArray:
    """Axes (k, r) of the r combinations of k parameters that poses with rows (P, m, k) determine: use as rows @ axes.

    Columns are brought to unit norm first. In these axes the information of all the poses is the identity, so choices
    compare whatever the units are; it is that of the mean pose times P.
    """
    flat = rows.reshape(-1, rows.shape[2])
    norms = np.linalg.norm(flat, axis=0)
    moving = norms > RANK * norms.max(initial=0.0)
    scale = np.where(moving, 1.0 / np.where(moving, norms, 1.0), 0.0)
    _, values, axes = np.linalg.svd(flat * scale, full_matrices=False)
    kept = values > RANK * values.max(initial=0.0)
    return scale[:, np.newaxis] * axes[kept].T / values[kept] * np.sqrt(len(rows))


def condition_number(rows: NDArray) -> float:
    """Condition number of rows (K, m, r), their columns brought to unit norm; infinite where a combination is open."""
    flat = rows.reshape(-1, rows.shape[2])
    norms = np.linalg.norm(flat, axis=0)
    if not np.all(norms > RANK * norms.max(initial=0.0)) or len(flat) < len(norms):
        return np.inf
    values = np.linalg.svd(flat / norms, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > RANK * values[0] else np.inf


def rank(rows: NDArray) -> int:
    """Number of combinations that rows (K, m, r) determine."""
    values = np.linalg.svd(rows.reshape(-1, rows.shape[2]), compute_uv=False)
    return int(np.sum(values > RANK * values.max(initial=0.0)))


def log_determinant(rows: NDArray) -> float:
    """Logarithm of the determinant of the information of poses with rows (K, m, r); minus infinity if some is open."""
    information = np.einsum("pmi,pmj->ij", rows, rows)
    values = np.linalg.eigvalsh(information)
    return float(np.log(values).sum()) if values[0] > RANK**2 * values[-1] else -np.inf


def d_optimal(rows: NDArray, count: int, seed: int = 0) -> NDArray:
    """Indices (count,) of different poses whose information has the largest determinant that exchanges lead to.

    The greedy choice, and some drawn at random, are improved by the best exchange of a chosen pose for another until
    none helps; the best of them is returned.

    Args:
        rows: (P, m, r) of all poses; see `whitening_axes`.
        count: at most P.
        seed: of the choices drawn.
    """
    poses, _, size = rows.shape
    prior = WEAK * np.einsum("pmi,pmi->", rows, rows) / (poses * max(size, 1)) * np.eye(size)
    rng = np.random.default_rng(seed)
    greedy: list[int] = []
    for _ in range(count):
        gains = _gains(prior + _information(rows[greedy]), rows)
        gains[greedy] = -np.inf
        greedy.append(int(np.argmax(gains)))
    starts = [greedy, *(list(rng.choice(poses, count, replace=False)) for _ in range(STARTS))]
    improved = [_exchanged(rows, start, prior) for start in starts]
    best = max(improved, key=lambda chosen: float(np.linalg.slogdet(prior + _information(rows[chosen])).logabsdet))
    return np.array(best, dtype=int)


def _exchanged(rows: NDArray, chosen: list[int], prior: NDArray) -> list[int]:
    chosen = list(chosen)
    helped = True
    while helped:
        helped = False
        for place, old in enumerate(chosen):
            rest = chosen[:place] + chosen[place + 1 :]
            gains = _gains(prior + _information(rows[rest]), rows)
            gains[rest] = -np.inf
            new = int(np.argmax(gains))
            if gains[new] > gains[old] + GAIN:
                chosen[place] = new
                helped = True
    return chosen


def _information(rows: NDArray) -> NDArray:
    return np.einsum("pmi,pmj->ij", rows, rows)


def _gains(information: NDArray, rows: NDArray) -> NDArray:
    """(P,) what each pose would add to the log-determinant."""
    whitened = rows @ np.linalg.inv(np.linalg.cholesky(information)).T
    size = rows.shape[1]
    return np.linalg.slogdet(np.eye(size) + whitened @ whitened.transpose(0, 2, 1)).logabsdet


FLOOR = 1e-14
"""Least eigenvalue, of the largest, that is distinguished from zero."""


class Criterion(Protocol):
    """Rates information matrices (p, p)."""

    name: str

    def value(self, information: NDArray) -> float:
        """The rating to report; infinite where a parameter stays open."""

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """A smooth rating, nearer to the true one the larger `sharpness`, and its gradient (p, p)."""


class Condition:
    """Condition number of the regressor (Lightcap and Banks 2007, eq. 8).

    Largest and smallest eigenvalues that are equal have no gradient. Instead of them the search sees the norms
    (Σ λ^s)^(1/s) and (Σ λ^-s)^(1/s), which all eigenvalues take part in and which tend to them.

    Args:
        scaled: the columns of the regressor are brought to unit norm first. The number does not depend on units then,
            and is close to the least that scaling can reach (van der Sluis 1969).
    """

    def __init__(self, *, scaled: bool = True) -> None:
        self.scaled = scaled
        self.name = "condition" if scaled else "condition_unscaled"

    def value(self, information: NDArray) -> float:
        """The condition number."""
        norms = np.sqrt(np.diag(information))
        if not norms.all():
            return np.inf
        values = np.linalg.eigvalsh(self._scaled(information, norms))
        return float(np.sqrt(values[-1] / values[0])) if values[0] > FLOOR * values[-1] else np.inf

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """Twice the logarithm of the condition number, smoothly; gradient (p, p)."""
        norms = np.sqrt(np.maximum(np.diag(information), FLOOR * np.trace(information)))
        matrix = self._scaled(information, norms)
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(values, FLOOR * values[-1])
        logs = np.log(values)
        large, small = np.exp(sharpness * (logs - logs[-1])), np.exp(sharpness * (logs[0] - logs))
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
    """The volume that the parameters' errors take: D-optimality (Calafiore, Indri and Bona 2001).

    It weighs noise as it is, and does not depend on the choice of base parameters or of units.
    """

    name = "determinant"

    def value(self, information: NDArray) -> float:
        """The mean of the logarithms of the errors' half axes: lower by 0.7 is twice as good."""
        sign, logarithm = np.linalg.slogdet(information)
        return float(-0.5 * logarithm / len(information)) if sign > 0 else np.inf

    def smooth(self, information: NDArray, sharpness: float) -> tuple[float, NDArray]:  # noqa: ARG002
        """The logarithm of the determinant, negative, over the number of parameters and times 10; gradient (p, p)."""
        values, vectors = np.linalg.eigh(information)
        values = np.maximum(values, FLOOR * values[-1])
        share = 10.0 / len(values)
        return float(-share * np.log(values).sum()), -share * (vectors / values) @ vectors.T


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion for criterion in (Condition(), Condition(scaled=False), Determinant())
}
"""By their names."""
