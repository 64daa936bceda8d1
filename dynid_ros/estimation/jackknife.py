"""Standard errors under correlated residuals: one block of time after the other is left out (Quenouille, Tukey).

What a model lacks is correlated in neighbouring samples, so samples are no independent evidence; blocks that are longer
than that correlation nearly are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BLOCKS = 10
"""Few enough to be long, enough for Student's quantile to be below 2.3."""


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Estimates without each of B blocks.

    Attributes:
        estimates: (B, p).
    """

    estimates: NDArray

    @property
    def covariance(self) -> NDArray:
        """(p, p) of the estimate from everything."""
        return jackknife_covariance(self.estimates - self.estimates.mean(axis=0))

    @property
    def standard_errors(self) -> NDArray:
        """(p,) square roots of the variances."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def dof(self) -> int:
        """Degrees of freedom of the covariance."""
        return len(self.estimates) - 1


def jackknife_covariance(moves: NDArray) -> NDArray:
    """(p, p) covariance of an estimate that leaving out each of B blocks moves by (B, p)."""
    return (len(moves) - 1) / len(moves) * moves.T @ moves


def jackknife_variance(moves: NDArray) -> NDArray:
    """(...) variances, as `jackknife_covariance`, of moves (B, ...)."""
    return (len(moves) - 1) / len(moves) * np.sum(np.square(moves), axis=0)


def left_out_steps(normals: NDArray, gradients: NDArray, rcond: float | None = None) -> NDArray:
    """(B, p) moves to first order: a Gauss-Newton step without each block (Miller 1974, "The jackknife: a review").

    Args:
        normals: (B, p, p) normal matrix of each block.
        gradients: (B, p) and its right-hand side at the estimate.
        rcond: see `numpy.linalg.lstsq`.
    """
    rest = np.sum(normals, axis=0) - normals
    return np.array([np.linalg.lstsq(a, b, rcond=rcond)[0] for a, b in zip(rest, gradients, strict=True)])


def time_blocks(runs: NDArray) -> NDArray:
    """(N,) block of each sample: about `BLOCKS` contiguous stretches of equal length.

    None goes across two runs, each of which has two at least.

    Args:
        runs: (N,) run of each sample, those of a run together and in order of time.
    """
    blocks, start = np.empty(len(runs), dtype=int), 0
    for run in np.unique(runs):
        rows = np.flatnonzero(runs == run)
        own = max(2, round(BLOCKS * len(rows) / len(runs)))
        blocks[rows] = start + np.arange(len(rows)) * own // len(rows)
        start += own
    return blocks


def jackknife(estimate: Callable[[NDArray], NDArray], blocks: NDArray) -> Jackknife:
    """Estimates (p,) of the samples (N,) bool without each block in turn."""
    return Jackknife(np.array([estimate(blocks != block) for block in np.unique(blocks)]))
