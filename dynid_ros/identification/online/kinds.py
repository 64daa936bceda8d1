"""Equations summed by kinds of motion as they arrive, for standard errors under correlated residuals.

Friction that a model lacks is similar in neighbouring samples, and again when the motion repeats. The scatter between
kinds of motion therefore gives the error of a parameter (`estimation.covariance`). A batch fit finds the kinds when it
has seen the whole motion. Here equations join the nearest of a few dozen small kinds. The two nearest kinds are merged
when a new one is needed, and the small kinds are merged when errors are requested (clustering features: Zhang,
Ramakrishnan and Livny 1996, "BIRCH"; the nearest kind adds least to the sum of squares, Ward 1963).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.equations import MAX_KINDS

N_SMALL_KINDS = 40

MAX_WAITING = 16
"""Number of equations that are multiplied together, at a third of the cost of single equations."""

REFRESH_BLOCKS = 16
"""Equations after which it is looked up how far the joints move."""

MIN_WEIGHT = 1e-100
"""Remaining share of the oldest sums at which all sums are rescaled."""


class KindSums:
    """Normal equations of each joint in each kind of motion.

    Args:
        n_joints: n.
        size: number k of parameters.
        considered: number c of other right-hand sides, as of `SquareRootInformation`.
    """

    def __init__(self, n_joints: int, size: int, considered: int = 0):
        self._n_states = 2 * n_joints
        self._counts = np.zeros(N_SMALL_KINDS)
        self._middles = np.zeros((N_SMALL_KINDS, self._n_states))
        self._grams = np.zeros((N_SMALL_KINDS, n_joints, size + 1, size + 1 + considered))
        # Equations wait until there are some of the same kinds, and are multiplied together.
        self._waiting = np.empty((MAX_WAITING, n_joints, size + 1 + considered))
        self._labels = np.empty(MAX_WAITING, dtype=int)
        self._n_waiting = 0
        self._weights = np.zeros((N_SMALL_KINDS, n_joints))
        # All sums are forgotten alike, so they are kept in units that shrink instead.
        self._kept = 1.0
        self._total = 0.0
        self._mean = np.zeros(self._n_states)
        self._square = np.zeros(self._n_states)
        self._scale = np.ones(self._n_states)
        self._used = 0
        self._nearest = 0.0

    def add(
        self, state: NDArray, rows: NDArray, weights: NDArray, keep: float = 1.0, considered: NDArray | None = None
    ) -> None:
        """Add the equations of one instant.

        Args:
            state: (2 n,) positions and velocities.
            rows: (n, k + 1) matrix [A b].
            weights: (n,) relative weights of the joints' equations.
            keep: share of all earlier equations that remains.
            considered: (n, c) other right-hand sides; None: there are none.
        """
        self._total += 1.0
        change = state - self._mean
        self._mean += change / self._total
        self._square += change * (state - self._mean)
        if self._total % REFRESH_BLOCKS == 1.0:
            deviation = np.sqrt(self._square / self._total)
            self._scale = np.where(deviation > 0.0, deviation, 1.0)
        kind = self._place(state)
        self._kept *= keep
        if self._kept < MIN_WEIGHT:
            self._level()
        self._counts[kind] += 1.0
        self._middles[kind] += (state - self._middles[kind]) / self._counts[kind]
        self._weights[kind] += weights / self._kept
        waiting = self._waiting[self._n_waiting]
        scale = 1.0 / math.sqrt(self._kept)
        np.multiply(rows, scale, out=waiting[:, : rows.shape[1]])
        if considered is not None:
            np.multiply(considered, scale, out=waiting[:, rows.shape[1] :])
        self._labels[self._n_waiting] = kind
        self._n_waiting += 1
        if self._n_waiting == MAX_WAITING:
            self._multiply()

    def forget(self, first: int, R: NDArray, z: NDArray, considered: NDArray | None = None) -> None:
        """Free the first parameters, as `SquareRootInformation.forget` does; arguments are those before that call.

        Args:
            first: number of parameters.
            R: (k, k) triangular factor.
            z: (k,) right-hand side.
            considered: (k, c) other right-hand sides; None: there are none.
        """
        self._multiply()
        others = R[:, :0] if considered is None else considered
        rest = np.column_stack([R[:, first:], z, others])[:first]
        T = np.eye(self._grams.shape[-1])
        T[:, :first] = 0.0
        T[:first, first:] = -np.linalg.solve(R[:first, :first], rest)
        used = self._grams[: self._used]
        own = slice(0, len(z) + 1)
        used[:] = T[own, own].T @ used @ T

    def kinds(self) -> tuple[NDArray, NDArray]:
        """Return the sums of each joint in each of at most ten kinds, and their weights (K, n).

        Returns:
            Sums (K, n, k + 1, k + 1 + c) of [A b]ᵀ [A b C], where C are the other right-hand sides, and the weights.
        """
        self._level()
        used = slice(0, self._used)
        counts = self._counts[used].copy()
        middles = self._middles[used].copy()
        grams = self._grams[used].copy()
        weights = self._weights[used].copy()
        while len(counts) > MAX_KINDS:
            one, other, _ = _closest(counts, middles / self._scale)
            total = counts[one] + counts[other]
            middles[one] = (counts[one] * middles[one] + counts[other] * middles[other]) / total
            counts[one] = total
            grams[one] += grams[other]
            weights[one] += weights[other]
            counts, middles, grams, weights = (np.delete(x, other, axis=0) for x in (counts, middles, grams, weights))
        return grams, weights

    def _place(self, state: NDArray) -> int:
        """Return the index of the kind of a state."""
        if self._used < N_SMALL_KINDS:
            self._used += 1
            if self._used == N_SMALL_KINDS:
                self._nearest = _closest(self._counts + 1e-9, self._middles / self._scale)[2]
            return self._used - 1
        distance = (((self._middles - state) / self._scale) ** 2).sum(axis=1)
        cost = distance * self._counts / (self._counts + 1.0)
        kind = int(cost.argmin())
        if cost[kind] <= self._nearest:
            return kind
        one, other, self._nearest = _closest(self._counts, self._middles / self._scale)
        if cost[kind] <= self._nearest:
            return kind
        total = self._counts[one] + self._counts[other]
        self._middles[one] = (
            self._counts[one] * self._middles[one] + self._counts[other] * self._middles[other]
        ) / total
        self._counts[one] = total
        labels = self._labels[: self._n_waiting]
        labels[labels == other] = one
        self._grams[one] += self._grams[other]
        self._weights[one] += self._weights[other]
        self._counts[other] = self._middles[other] = self._grams[other] = self._weights[other] = 0.0
        return other

    def _multiply(self) -> None:
        """Add the waiting equations to the sums of their kinds."""
        labels = self._labels[: self._n_waiting]
        size = self._grams.shape[2]
        for kind in set(labels.tolist()):
            own = self._waiting[: self._n_waiting][labels == kind].transpose(1, 0, 2)
            self._grams[kind] += own[:, :, :size].transpose(0, 2, 1) @ own
        self._n_waiting = 0

    def _level(self) -> None:
        self._multiply()
        self._grams *= self._kept
        self._weights *= self._kept
        self._kept = 1.0


def _closest(counts: NDArray, middles: NDArray) -> tuple[int, int, float]:
    """Return the two kinds whose merger adds least to the sum of squares, and the added sum."""
    squares = (middles**2).sum(axis=1)
    distance = np.maximum(squares[:, None] + squares - 2.0 * middles @ middles.T, 0.0)
    cost = distance * counts[:, None] * counts / (counts[:, None] + counts)
    cost[np.diag_indices(len(counts))] = np.inf
    one, other = divmod(int(cost.argmin()), len(counts))
    return one, other, float(cost[one, other])
