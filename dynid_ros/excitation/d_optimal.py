"""The most informative of many poses: exchange algorithms for D-optimal designs (Fedorov 1972, chapter 3)."""

import numpy as np
from numpy.typing import NDArray

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
