"""How much the prior counts: the weight that predicts best what was not fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.cross_validation import Fold, folds
from dynid_ros.identification.links.full_problem import FullProblem
from dynid_ros.progress import each

WEIGHTS = tuple(10.0**k for k in range(5, -2, -1))
TOLERATED = 0.05
"""In the mean logarithm of the squared error, 2.5 % of the error: of the weights that predict so nearly as well as the
best, the largest reaches furthest beyond the samples."""
DEFAULT_WEIGHT = 10.0
"""Where samples are too few to leave some out."""


@dataclass(frozen=True)
class PriorWeight:
    """The weight and the scores it was chosen by.

    Attributes:
        weight: γ.
        scores: mean logarithm of the squared prediction error over noise, by weight, without weights so small that
            rounding hides the fit; empty if none was compared.

    """

    weight: float
    scores: dict[float, float]


def choose_weight(full: FullProblem) -> PriorWeight:
    """The largest weight whose mean score over the folds is next to the best."""
    parts = folds(full.problem.factors)
    if not parts:
        return PriorWeight(DEFAULT_WEIGHT, {})
    losses = np.array([_losses(full, fold) for fold in each(parts)])
    shares = np.array([fold.share for fold in parts])
    shares /= shares.sum()
    scores = np.mean(np.log(np.einsum("f,fwn->wn", shares, losses)), axis=1)
    chosen = int(np.argmax(scores <= scores.min() + TOLERATED))
    compared = {w: float(score) for w, score in zip(WEIGHTS, scores, strict=True) if np.isfinite(score)}
    return PriorWeight(WEIGHTS[chosen], compared)


def _losses(full: FullProblem, fold: Fold) -> NDArray:
    """(W, n) mean squared prediction error over noise squared, by weight; infinite where rounding hides the fit."""
    losses = np.full((len(WEIGHTS), len(full.noise)), np.inf)
    problem, fit = full.consistent(fold.train), None
    for row, weight in zip(losses, WEIGHTS, strict=True):
        try:
            fit = problem.solve(weight, fit)
        except IdentificationError:
            break  # smaller weights are harder still
        row[:] = (full.problem.residual_rms(full.reduce(fit.solution), fold.test) / full.noise) ** 2
    return np.maximum(losses, np.finfo(float).tiny)
