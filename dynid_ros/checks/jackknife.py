"""Estimate and standard error of a small change of the torque model, by the delete-a-group jackknife.

Unmodelled friction correlates the residuals of neighbouring samples, so standard errors from single samples would be
too small. The jackknife omits each of a few blocks of samples in turn, and compares the estimates from the others.
Errors that are equal in all blocks, as of a torque gain, do not show in it. Their effect on the estimate is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.torque_model import RIDGE, TorqueEquations, TorqueFit, TorqueTerms, fit_together

N_JACKKNIFE_BLOCKS = 8
"""Number of blocks of samples that are omitted in turn."""
MIN_SIGMAS = 5.0
"""Smallest ratio of a significant change to its standard error, which is uncertain with so few blocks."""
MIN_COLUMN_FRACTION = 1e-6
"""Smallest column with an effect, as a fraction of the torque, per rad, s or m."""


@dataclass(frozen=True, eq=False)
class Change:
    """Estimated coefficients of columns that are added to a torque model.

    Attributes:
        values: (k,) estimated coefficients.
        covariance: (k, k) covariance of the coefficients, by the jackknife and by systematic errors.
        gain: decrease of the misfit by the added columns.
    """

    values: NDArray
    covariance: NDArray
    gain: float

    @property
    def sigma(self) -> float:
        """Standard error of the first coefficient; infinite if its column has no effect."""
        return float(np.sqrt(self.covariance[0, 0]))

    @property
    def smallest_certain(self) -> float:
        """Smallest magnitude of the first coefficient that would be significant."""
        return MIN_SIGMAS * self.sigma

    @property
    def certain(self) -> bool:
        """Whether the coefficients differ significantly from zero (Hotelling's T²)."""
        if not np.all(np.isfinite(self.covariance)):
            return False
        return bool(self.values @ np.linalg.lstsq(self.covariance, self.values, rcond=None)[0] > MIN_SIGMAS**2)


class Jackknife:
    """Torque equations with candidate columns that can be added to the model.

    Args:
        terms: terms of the model.
        columns: (M, n, c) derivatives of the torques with respect to c candidate changes.
        disturbed: torques (M, n) with one systematic error each, of one standard deviation.
    """

    def __init__(self, terms: TorqueTerms, columns: NDArray, disturbed: Sequence[NDArray] = ()):
        size = np.sqrt(np.mean(columns**2, axis=(0, 1)))
        self.without_effect = size <= MIN_COLUMN_FRACTION * np.sqrt(np.mean(terms.torque**2))
        self._n_rigid = terms.rigid.shape[2]
        extended = terms.with_rigid(columns)
        self._whole = extended.equations
        self._disturbed = [self._whole.explaining(torque) for torque in disturbed]
        self._others = []
        for rows in np.array_split(np.arange(len(terms.torque)), N_JACKKNIFE_BLOCKS):
            part = extended.rows(rows).equations
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
        if np.any(self.without_effect[list(chosen)]):
            return Change(np.zeros(count), np.full((count, count), np.inf), 0.0)
        fit, *disturbed = fit_together(self._with(equations, chosen) for equations in (self._whole, *self._disturbed))
        jackknifed = fit_together(self._with(others, chosen) for others in self._others)
        values = np.array([other.rigid[-count:] for other in jackknifed])
        covariance = np.atleast_2d((N_JACKKNIFE_BLOCKS - 1) * np.cov(values, rowvar=False, bias=True))
        covariance = covariance + self._white_covariance(chosen, fit)
        for other in disturbed:
            change = other.rigid[-count:] - fit.rigid[-count:]
            covariance += np.outer(change, change)
        return Change(fit.rigid[-count:], covariance, self._without.misfit - fit.misfit)

    def _white_covariance(self, chosen: Sequence[int], fit: TorqueFit) -> NDArray:
        """Return the covariance (k, k) for independent residuals.

        It is large if other columns have nearly the same effect, which a comparison of similar blocks cannot show.
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
        fewer.normal = equations.normal[:, kept][:, :, kept]
        fewer.right = equations.right[:, :, kept]
        return fewer
