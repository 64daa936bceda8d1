"""All equations of a fit, compressed as they come: memory does not grow with the number of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.link_columns import LinkColumns

ROWS_PER_COMPRESSION = 6
"""Rows are collected until they are so many times the columns: QR costs least per row for tall blocks."""


PARTS = 5
"""Parts of a recording that are left out in turn."""
STRETCHES = 20
"""Of a recording, at most."""
SAMPLES_PER_STRETCH = 25


class LinkFactors:
    """Triangular factors of [Y_j τ_j], one per group of samples and joint.

    A sum of squared residuals needs no more than the triangular factor of its rows (Golub and Van Loan). Groups make it
    possible to leave samples out, for cross-validation, and to see how far stretches of time agree, for errors that are
    correlated in time.

    Args:
        columns: what the regressor consists of.
        recordings: number of samples of each recording; none has to be known better than to a factor.

    Attributes:
        columns: as given.
        stretches: number of stretches of time of each recording; S in all.
        parts: (S,) which part of its recording each stretch belongs to.
        counts: (2 S,) samples of each group: 2 s holds the slow and 2 s + 1 the fast samples of stretch s.

    """

    def __init__(self, columns: LinkColumns, recordings: Sequence[int] | NDArray):
        self.columns = columns
        self.stretches = [int(np.clip(size // SAMPLES_PER_STRETCH, 1, STRETCHES)) for size in recordings]
        self.parts = np.concatenate([_parts(i, count) for i, count in enumerate(self.stretches)])
        n, n_groups = len(columns.of_joint), 2 * len(self.parts)
        self.counts = np.zeros(n_groups, dtype=int)
        self._rows: list[list[list[NDArray]]] = [[[] for _ in range(n)] for _ in range(n_groups)]

    def add(self, group: int, rows: Sequence[NDArray], torque: NDArray) -> None:
        """Add samples to a group.

        Args:
            group: 0 … G−1.
            rows: for each joint (M, k_j), as `LinkColumns.rows` gives them.
            torque: (M, n).

        """
        self.counts[group] += len(torque)
        for j, (matrix, collected) in enumerate(zip(rows, self._rows[group], strict=True)):
            collected.append(np.column_stack([matrix, torque[:, j]]))
            if sum(map(len, collected)) >= ROWS_PER_COMPRESSION * collected[-1].shape[1]:
                collected[:] = [np.asarray(np.linalg.qr(np.vstack(collected), mode="r"))]

    def factor(self, joint: int, groups: Sequence[int] | NDArray | None = None) -> NDArray:
        """Factor (r, k_j + 1) of all rows of a joint in these groups; None: in all."""
        chosen = range(len(self.counts)) if groups is None else groups
        parts = [part for group in chosen for part in self._rows[group][joint]]
        width = len(self.columns.of_joint[joint]) + 1
        stacked = np.vstack(parts) if parts else np.zeros((0, width))
        return np.asarray(np.linalg.qr(stacked, mode="r")) if len(stacked) > width else stacked

    def norms(self, joint: int) -> NDArray:
        """(k_j,) norms of a joint's columns over all samples."""
        width = len(self.columns.of_joint[joint])
        squares = (np.sum(part[:, :width] ** 2, axis=0) for rows in self._rows for part in rows[joint])
        return np.sqrt(sum(squares, np.zeros(width)))

    def gram(self, group: int, joint: int) -> NDArray:
        """[Y_j τ_j]ᵀ [Y_j τ_j], (k_j + 1, k_j + 1), of one group."""
        width = len(self.columns.of_joint[joint]) + 1
        return sum((part.T @ part for part in self._rows[group][joint]), np.zeros((width, width)))


def _parts(recording: int, stretches: int) -> NDArray:
    """Part of each stretch of a recording; those too short to be divided are left out in turn."""
    part = (np.arange(stretches) + 0.5) * PARTS / stretches
    return (part.astype(int) + (recording if stretches < PARTS else 0)) % PARTS
