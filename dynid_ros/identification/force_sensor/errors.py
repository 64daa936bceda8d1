"""Standard errors of a static calibration, whose residuals are no noise: a sensor drifts as it warms up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from dynid_ros.estimation.least_squares import LeastSquaresFit, solve

RANK_TOLERANCE = 1e-4
"""Of singular values of unit columns: poses alike to a hundredth of a degree count as one."""
BLOCKS = 10
"""Stretches of neighbouring poses, left out in turn."""
DEGREES = (1, 2)
"""Of the drift that is looked for."""
DRIFTS = 1e-3
"""Probability with which noise feigns as much drift in an axis."""
NORMAL = 1e6
"""Degrees of freedom that are as good as infinite."""
FEWEST = 8
"""Poses that show a drift beside all else."""


@dataclass(frozen=True, eq=False)
class WeightedPoses:
    """A fit of the readings of M poses.

    Attributes:
        matrix: (6 M, k), pose by pose.
        wrench: (M, 6).
        sigma: (6 M,) noise of each row.
        course: (M,) time from −1 to 1.

    """

    matrix: NDArray
    wrench: NDArray
    sigma: NDArray
    course: NDArray

    @cached_property
    def fit(self) -> LeastSquaresFit:
        """Weighted."""
        return self._solve(self.matrix)

    def covariance(self, known: NDArray) -> tuple[NDArray, NDArray]:
        """Covariance (k, k) and degrees of freedom (k,) of its variances.

        From fits without one stretch of poses after the other (jackknife), so that residuals may be alike in
        neighbouring poses. Where axes drift, how far an estimate of the drift moves the solution is an error too.

        Args:
            known: (6 M, r) standard deviations of errors that no residual shows, each a column of readings. They are
                known themselves, and leave the more degrees of freedom, the more they add (Satterthwaite 1946).

        """
        covariance, freedom = self.fit.covariance, float(max(self.wrench.size - self.fit.rank, 1))
        groups = np.array_split(np.argsort(self.course, kind="stable"), min(BLOCKS, len(self.wrench)))
        parts = [self._without(group) for group in groups]
        if all(part.rank == self.fit.rank for part in parts):
            moves = np.array([part.solution for part in parts]) - self.fit.solution
            covariance, freedom = moves.T @ moves * (len(groups) - 1) / len(groups), len(groups) - 1.0
        if self.drifts:
            covariance = covariance + np.outer(self.change_by_drift, self.change_by_drift)
        moved = self.fit.covariance @ (self.matrix / self.sigma[:, None] ** 2).T @ known
        total = covariance + moved @ moved.T
        with np.errstate(divide="ignore", invalid="ignore"):
            return total, np.fmin(freedom * (np.diag(total) / np.diag(covariance)) ** 2, NORMAL)

    @cached_property
    def drifts(self) -> dict[int, float]:
        """Of each axis that drifts, counted from 0, how far, N or N m."""
        poses, axes = self.wrench.shape
        wanted = self.fit.rank + len(DEGREES) * axes
        if poses < FEWEST or self._drifting.rank < wanted:
            return {}
        before, after = (
            np.sum(np.reshape(fit.residual, (poses, axes)) ** 2, axis=0) for fit in (self.fit, self._drifting)
        )
        freedom = poses - wanted / axes
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (before - after) / len(DEGREES) / (after / freedom)
        seen = f_distribution.sf(ratio, len(DEGREES), freedom) < DRIFTS
        courses = self._courses @ self._drifting.solution[self.matrix.shape[1] :].reshape(len(DEGREES), axes)
        return {int(axis): float(np.ptp(courses[:, axis])) for axis in np.flatnonzero(seen)}

    @property
    def change_by_drift(self) -> NDArray:
        """(k,) how far an estimate of the drift moves the solution."""
        return self._drifting.solution[: len(self.fit.solution)] - self.fit.solution

    @cached_property
    def _drifting(self) -> LeastSquaresFit:
        """With a polynomial of time in each axis besides."""
        poses, axes = self.wrench.shape
        own = self._courses[:, None, :, None] * np.eye(axes)[None, :, None, :]
        return self._solve(np.hstack([self.matrix, own.reshape(poses * axes, -1)]))

    @property
    def _courses(self) -> NDArray:
        return self.course[:, None] ** np.array(DEGREES)

    def _without(self, poses: NDArray) -> LeastSquaresFit:
        kept = np.repeat(~np.isin(np.arange(len(self.wrench)), poses), self.wrench.shape[1])
        return solve(self.matrix[kept], self.wrench.ravel()[kept], 1 / self.sigma[kept] ** 2, RANK_TOLERANCE)

    def _solve(self, matrix: NDArray) -> LeastSquaresFit:
        return solve(matrix, self.wrench.ravel(), 1 / self.sigma**2, RANK_TOLERANCE)
