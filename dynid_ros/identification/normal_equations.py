"""Normal equations of every joint, summed as samples come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-14
"""Eigenvalues of normal equations of k unit columns are zero but for rounding below k times this."""


class JointGrams:
    """[Y_j τ_j]ᵀ [Y_j τ_j] of each joint: all that least squares needs of any number of samples.

    The condition number of unit columns squares in them. Motion that is good for identification has tens to hundreds,
    which costs four of sixteen digits. A combination that rounding hides, at 1e6 and more, has a standard error of as
    many times the noise of a sample: noise hides it long before. QR of the rows instead takes four times as long.

    Args:
        sizes: (n,) numbers k_j of columns.
        n_groups: G, of samples that are summed apart, to leave some out.

    Attributes:
        counts: (G,) samples of each group.
        sums: for each joint (G, k_j + 1, k_j + 1), the torque last.

    """

    def __init__(self, sizes: Sequence[int], n_groups: int = 1):
        self.counts = np.zeros(n_groups, dtype=int)
        self.sums = [np.zeros((n_groups, size + 1, size + 1)) for size in sizes]
        self._factors: dict[int, NDArray] = {}

    def add(self, group: int, rows: Sequence[NDArray], torque: NDArray) -> None:
        """Add samples to a group.

        Args:
            group: 0 … G−1.
            rows: for each joint (M, k_j); quickest where samples of a column are next to each other in memory.
            torque: (M, n).

        """
        self._factors.clear()
        self.counts[group] += len(torque)
        for matrix, right, sums in zip(rows, torque.T, self.sums, strict=True):
            total, moment = sums[group], matrix.T @ right
            total[:-1, :-1] += matrix.T @ matrix
            total[:-1, -1] += moment
            total[-1, :-1] += moment
            total[-1, -1] += right @ right

    def factor(self, joint: int, groups: Sequence[int] | NDArray | None = None) -> NDArray:
        """R (r, k_j + 1) that stands for all rows of a joint in these groups (None: in all): RᵀR is their sum."""
        if groups is not None:
            return gram_factor(self.sums[joint][np.asarray(groups, dtype=int)].sum(axis=0))
        if joint not in self._factors:
            self._factors[joint] = gram_factor(self.sums[joint].sum(axis=0))
        return self._factors[joint]


def gram_factor(gram: NDArray) -> NDArray:
    """R (r, k) with RᵀR = gram (k, k); combinations of columns that rounding hides are zero in it."""
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(gram / scale / scale[:, None])
    kept = values > ROUNDING * len(values)
    return np.sqrt(values[kept])[:, None] * vectors[:, kept].T * scale
