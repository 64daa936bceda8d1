"""How certain a small change of the torque model is: its size, and its standard error by leaving out stretches.

What no model has of friction makes neighbouring samples alike, so residuals of single samples would say too much. The
delete-a-group jackknife leaves out each of a few stretches in turn, and compares what the others say.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.checks.torque_fit import RIDGE, Terms, TorqueEquations, TorqueFit

BLOCKS = 8
"""Stretches of the samples that are left out in turn."""
MIN_SIGMAS = 5.0
"""Standard errors, from so few stretches, by which a change must differ from zero to be certain."""

NO_EFFECT = 1e-6
"""A column that is smaller than this part of the torque, per rad, s or m, has no effect."""


@dataclass(frozen=True, eq=False)
class Change:
    """Estimated coefficients of columns that are added to a torque model.

    Attributes:
        values: (k,) coefficients.
        covariance: (k, k) by the jackknife.
        gain: how much better the model fits with them.
    """

    values: NDArray
    covariance: NDArray
    gain: float

    @property
    def sigma(self) -> float:
        """Standard error of the coefficient, of one column; infinite where the column has no effect."""
        return float(np.sqrt(self.covariance[0, 0]))

    @property
    def smallest_certain(self) -> float:
        """Smallest size of the coefficient, of one column, that would be certain."""
        return MIN_SIGMAS * self.sigma

    @property
    def certain(self) -> bool:
        """True where the coefficient of one column differs from zero for certain."""
        return bool(abs(self.values[0]) > self.smallest_certain)


class Jackknife:
    """Torque equations with candidate columns, any of which can be added to the model.

    Args:
        terms: of the model.
        columns: (M, n, c) derivatives of the torques with respect to c candidate changes.
        torque: (M, n) N m.
        prismatic: (n,) mask of the joints.
    """

    def __init__(self, terms: Terms, columns: NDArray, torque: NDArray, prismatic: NDArray):
        rigid = np.concatenate([terms.rigid, columns], axis=2)
        size = np.sqrt(np.mean(columns**2, axis=(0, 1)))
        self._without_effect = size <= NO_EFFECT * np.sqrt(np.mean(torque**2))
        self._n_rigid = terms.rigid.shape[2]
        self._whole = TorqueEquations(Terms(rigid, terms.drive, terms.moving), torque, prismatic)
        self._others = []
        for rows in np.array_split(np.arange(len(torque)), BLOCKS):
            part = TorqueEquations(Terms(rigid[rows], terms.drive[rows], terms.moving[rows]), torque[rows], prismatic)
            others = copy(self._whole)
            others.normal = self._whole.normal - part.normal
            others.right = self._whole.right - part.right
            others.square = self._whole.square - part.square
            others.count = self._whole.count - part.count
            self._others.append(others)
        self._without = self._with(self._whole, []).fit()

    def estimate(self, chosen: Sequence[int]) -> Change:
        """Estimate the coefficients of the chosen candidate columns together."""
        count = len(chosen)
        if np.any(self._without_effect[list(chosen)]):
            return Change(np.zeros(count), np.full((count, count), np.inf), 0.0)
        fit = self._with(self._whole, chosen).fit()
        values = np.array([self._with(others, chosen).fit().rigid[-count:] for others in self._others])
        covariance = np.atleast_2d((BLOCKS - 1) * np.cov(values, rowvar=False, bias=True))
        covariance = covariance + self._white_covariance(chosen, fit)
        return Change(fit.rigid[-count:], covariance, self._without.misfit - fit.misfit)

    def _white_covariance(self, chosen: Sequence[int], fit: TorqueFit) -> NDArray:
        """Return the covariance (k, k) as if residuals were independent.

        It is large where the other columns have nearly the same effect, which stretches that are alike do not show.
        """
        equations = self._with(self._whole, chosen)
        judged = equations.judged
        weight = 1 / (fit.rms[judged] ** 2 + equations.floor[judged] ** 2)
        normal = np.tensordot(weight, equations.normal[judged], 1)
        scale = np.sqrt(np.maximum(np.diag(normal), np.finfo(float).tiny))
        normal = normal / (scale * scale[:, None])
        normal.flat[:: len(scale) + 1] += RIDGE
        size = slice(self._n_rigid, self._n_rigid + len(chosen))
        inverse = np.linalg.inv(normal)[size, size]
        return inverse / (scale[size] * scale[size][:, None])

    def _with(self, equations: TorqueEquations, chosen: Sequence[int]) -> TorqueEquations:
        """Return the equations with the chosen candidate columns only."""
        size = equations.normal.shape[1]
        kept = np.r_[
            np.arange(self._n_rigid), self._n_rigid + np.array(chosen, int), np.arange(equations.n_rigid, size)
        ]
        fewer = copy(equations)
        fewer.n_rigid = self._n_rigid + len(chosen)
        fewer.normal, fewer.right = equations.normal[:, kept][:, :, kept], equations.right[:, :, kept]
        return fewer
