"""Noise of readings, learned from the first samples of each joint."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import solve


class NoiseLearner:
    """Standard deviation of what a linear model leaves of a joint's first readings.

    Args:
        n_joints: n.
        needed: samples of a joint from which its noise is learned.
        given: (n,) known noise; None: to be learned.

    Attributes:
        noise: (n,) infinite until it is known.

    """

    def __init__(self, n_joints: int, needed: int, given: ArrayLike | None = None) -> None:
        self._needed = needed
        self._seen: list[list[NDArray]] = [[] for _ in range(n_joints)]
        self.noise = np.full(n_joints, np.inf)
        if given is not None:
            self.noise = np.array(given, dtype=float)
            if self.noise.shape != (n_joints,) or not np.all(self.noise > 0):
                raise IdentificationError(f"noise is {given}; expected {n_joints} positive numbers, in readings")

    def add(self, rows: NDArray, error: NDArray) -> None:
        """Take up a sample: rows (n, k) and errors (n,); a row of zeros says nothing."""
        for joint in np.flatnonzero(np.isinf(self.noise) & rows.any(axis=1)):
            seen = self._seen[joint]
            seen.append(np.append(rows[joint], error[joint]))
            if len(seen) == self._needed:
                found = np.array(seen)
                fit = solve(found[:, :-1], found[:, -1])
                floor = 1e-9 * max(float(np.abs(found).max()), 1e-9)
                self.noise[joint] = max(np.sqrt(fit.residual @ fit.residual / (len(seen) - fit.rank)), floor)
                seen.clear()
