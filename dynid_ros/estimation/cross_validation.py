"""How samples are divided to see how well a model predicts motion that it was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.normal_equations import NormalEquations, WeightedProblem

ROUNDING = 1e-12
"""Smallest squared error, in parts of the squared torque: less is rounding of the normal equations."""
RIDGE = 1e-10
"""Ridge, in parts of a column's norm: terms that the samples do not distinguish share their effect."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Groups to fit to, groups to predict, and what it counts in a mean over all folds."""

    train: NDArray
    test: NDArray
    share: float


def folds(factors: NormalEquations) -> list[Fold]:
    """Five parts of each recording, left out at a time, and the fast samples predicted from the slow.

    Samples next to each other in time are correlated, so whole parts are left out: the same part of every recording,
    since recordings often repeat each other. Fast motion says how the model extrapolates, which it will have to, and
    counts as much as all the others.
    """
    counts = factors.counts
    groups = np.arange(len(counts))
    owner = np.repeat(factors.parts, 2)
    present = [part for part in np.unique(owner) if counts[owner == part].sum()]
    if len(present) < 2:
        return []
    found = [Fold(groups[owner != part], groups[owner == part], 0.5 / len(present)) for part in present]
    slow, fast = groups[groups % 2 == 0], groups[groups % 2 == 1]
    if counts[slow].sum() and counts[fast].sum():
        found.append(Fold(slow, fast, 0.5))
    return found


class FoldGrams:
    """Normal equations of every fold: quick to solve for any columns, and good enough to compare models.

    Args:
        problem: with all columns of its factors.
        noise: (n,) of each joint, N m.
    """

    def __init__(self, problem: WeightedProblem, noise: NDArray):
        self.problem, self.noise = problem, noise
        self.folds = folds(problem.factors)

    @cached_property
    def _train(self) -> list[tuple[NDArray, NDArray]]:
        found = []
        for fold in self.folds:
            parts = [self.problem.gram(j, fold.train) for j in range(self.problem.n_joints)]
            found.append(
                (
                    sum(p[0] / s**2 for p, s in zip(parts, self.noise, strict=True)),
                    sum(p[1] / s**2 for p, s in zip(parts, self.noise, strict=True)),
                )
            )
        return found

    @cached_property
    def _test(self) -> list[list[tuple[NDArray, NDArray, float]]]:
        return [[self.problem.gram(j, fold.test) for j in range(self.problem.n_joints)] for fold in self.folds]

    def losses(self, chosen: NDArray, penalty: NDArray, center: NDArray, nonnegative: NDArray) -> NDArray:
        """(F, n) mean squared prediction error over noise squared, per fold and joint.

        Args:
            chosen: (k,) columns.
            penalty: (k, k), added to the normal equations.
            center: (k,) where the penalty draws to.
            nonnegative: (k,) bool, coefficients that cannot be negative: they are left out where they would be.
        """
        square = np.ix_(chosen, chosen)
        table = []
        for fold, (matrix, right), tests in zip(self.folds, self._train, self._test, strict=True):
            normal = matrix[square] + penalty
            x = _solve(normal, right[chosen] + penalty @ center, nonnegative)
            count = self.problem.count(fold.test)
            table.append(
                [
                    max(x @ gram[square] @ x - 2 * x @ moment[chosen] + power, ROUNDING * power) / (count * s**2)
                    for (gram, moment, power), s in zip(tests, self.noise, strict=True)
                ]
            )
        return np.array(table)

    def loss(self, chosen: NDArray, penalty: NDArray, center: NDArray, nonnegative: NDArray) -> float:
        """One number: the mean over joints of the logarithm of the mean over folds.

        The logarithm lets each joint count alike, however badly its noise is known.
        """
        shares = np.array([fold.share for fold in self.folds])
        means = shares @ self.losses(chosen, penalty, center, nonnegative) / shares.sum()
        return float(np.mean(np.log(np.maximum(means, 1e-300))))


def _solve(normal: NDArray, right: NDArray, nonnegative: NDArray) -> NDArray:
    """Solution (k,) of the normal equations, without the columns whose coefficients would have the wrong sign."""
    scale = np.sqrt(np.maximum(np.diag(normal), np.finfo(float).tiny))
    scaled = normal / np.outer(scale, scale) + RIDGE * np.eye(len(right))
    kept = np.ones(len(right), dtype=bool)
    while True:
        x = np.zeros(len(right))
        x[kept] = np.linalg.solve(scaled[np.ix_(kept, kept)], (right / scale)[kept])
        wrong = nonnegative & (x < 0)
        if not wrong.any():
            return x / scale
        kept &= ~wrong
