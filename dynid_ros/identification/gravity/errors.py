"""How uncertain moments are, where residuals are friction that the model lacks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.rotations import HOLD_TOLERANCE

ALONE = 1e-6
"""Part of what is left of a combination without an angle that counts as none: that angle alone decides it."""


@dataclass(frozen=True)
class LinearEstimate:
    """x = gain b from b = matrix x + noise; k unknowns, m rows.

    Attributes:
        matrix: (m, k).
        gain: (k, m).
        residual: (m,).
        group: (m,) which noise each row has.
        sigma: (G,) standard deviation of each noise.

    """

    matrix: NDArray
    gain: NDArray
    residual: NDArray
    group: NDArray
    sigma: NDArray

    def freedom(self) -> NDArray:
        """(k,) degrees of freedom of each variance: its noises are known by a few rows each (Satterthwaite 1946)."""
        leverage = np.einsum("mk,km->m", self.matrix, self.gain)
        own = np.maximum(np.bincount(self.group, 1 - leverage, len(self.sigma)), 1.0)
        parts = self._squares() * self.sigma**2
        total = parts.sum(axis=1)
        return np.where(total > 0, total**2 / np.maximum((parts**2 / own).sum(axis=1), 1e-300), own.sum())

    def covariance(self, joint: NDArray, angle: NDArray) -> NDArray:
        """(k, k) by leaving out one angle of a joint after the other (jackknife by groups, Efron 1982).

        What friction has that no model holds hangs on the angle of its joint, and stays as long as the joint does. So
        all rows (m,) of a joint at one angle count once. What hangs on a single angle has the errors of noise alone.
        """
        scale = np.linalg.norm(self.matrix, axis=0)
        total = np.zeros((len(scale), len(scale)))
        kinds = _angles(joint, angle)
        count = int(kinds.max()) + 1
        for rows in np.split(np.argsort(kinds, kind="stable"), np.cumsum(np.bincount(kinds))[:-1]):
            gain = self.gain[:, rows] * scale[:, None]
            rest = np.eye(len(scale)) - gain @ (self.matrix[rows] / scale)
            inverse = np.linalg.pinv(rest, ALONE)
            moved = inverse @ (gain @ self.residual[rows])
            alone = (gain - inverse @ (rest @ gain)) * self.sigma[self.group[rows]]
            total += (1 - 1 / count) * np.outer(moved, moved) + alone @ alone.T
        return total / np.outer(scale, scale)

    def _squares(self) -> NDArray:
        return np.array([np.bincount(self.group, row**2, len(self.sigma)) for row in self.gain])


def _angles(joint: NDArray, angle: NDArray) -> NDArray:
    """(m,) number of the joint and angle of each row."""
    found = np.zeros(len(joint), int)
    number = -1
    for j in np.unique(joint):
        first = -np.inf
        rows = np.flatnonzero(joint == j)
        for row in rows[np.argsort(angle[rows])]:
            if angle[row] - first > HOLD_TOLERANCE:
                first, number = angle[row], number + 1
            found[row] = number
    return found
