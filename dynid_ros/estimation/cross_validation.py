"""Division of samples into folds, and held-out losses of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.normal_equations import NormalEquations

ROUNDING_LOSS = 1e-12
"""Smallest squared error, in parts of the squared torque: less is rounding of the normal equations."""
RIDGE_FRACTION = 1e-10
"""Ridge, in parts of a column's norm: terms that the samples do not distinguish share their effect."""


N_KIND_FOLDS = 4
"""Folds that leave out kinds of motion: where the joints are, and how they move there."""
FOLD_SHARES = {"parts": 0.34, "fast": 0.2, "slow": 0.13, "kinds": 0.33}
"""Total weight of the folds of each kind."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Groups of samples for training and for testing, and the weight of the fold in a mean."""

    train: NDArray
    test: NDArray
    share: float


def folds(factors: NormalEquations) -> list[Fold]:
    """Return the folds; their shares sum to one.

    Neighbouring samples are correlated, so whole parts of the recordings are left out: the same part of every
    recording, since recordings often repeat each other. These folds judge the prediction of the same motion. Fast
    samples from slow ones, slow ones from fast (where joints start and stop) and kinds of motion from others judge
    extrapolation, which a model will need.
    """
    counts = factors.counts
    groups = np.arange(len(counts))
    kinds = len(counts) + np.arange(len(factors.kinds))
    owner = np.repeat(factors.parts, 2)
    present = [part for part in np.unique(owner) if counts[owner == part].sum()]
    if len(present) < 2:
        return []
    sorts = {"parts": [(groups[owner != part], groups[owner == part]) for part in present]}
    slow = groups[groups % 2 == 0]
    fast = groups[groups % 2 == 1]
    if counts[slow].sum() and counts[fast].sum():
        sorts |= {"fast": [(slow, fast)], "slow": [(fast, slow)]}
    if len(kinds) >= N_KIND_FOLDS:
        number = np.arange(len(kinds)) % N_KIND_FOLDS
        sorts["kinds"] = [(kinds[number != k], kinds[number == k]) for k in range(N_KIND_FOLDS)]
    total = sum(FOLD_SHARES[sort] for sort in sorts)
    return [Fold(*pair, FOLD_SHARES[sort] / len(pairs) / total) for sort, pairs in sorts.items() for pair in pairs]


class FoldGrams:
    """Normal equations of every fold: quick to solve for any columns, and good enough to compare models.

    Args:
        factors: of all columns.
        noise: (n,) of each joint, N m.
    """

    def __init__(self, factors: NormalEquations, noise: NDArray):
        self.factors = factors
        self.noise = noise
        self.folds = folds(factors)
        self._counts = np.array([factors.count(fold.test) for fold in self.folds])
        self._shares = np.array([fold.share for fold in self.folds])

    @cached_property
    def _train(self) -> list[NDArray]:
        """Normal equations (F, k_j + 1, k_j + 1) of each joint's training samples over its noise squared."""
        return [own / s**2 for own, s in zip(self._grams([fold.train for fold in self.folds]), self.noise, strict=True)]

    @cached_property
    def _test(self) -> list[NDArray]:
        """Normal equations (F, k_j + 1, k_j + 1) of each joint's test samples."""
        return self._grams([fold.test for fold in self.folds])

    def _grams(self, parts: Sequence[NDArray]) -> list[NDArray]:
        return [np.array([self.factors.gram_sum(j, groups) for groups in parts]) for j in range(len(self.noise))]

    def losses(self, chosen: NDArray, penalty: NDArray, center: NDArray, nonnegative: NDArray) -> NDArray:
        """Return the mean squared prediction error over noise squared (F, n), per fold and joint.

        Args:
            chosen: (k,) columns.
            penalty: (k, k) matrix that is added to the normal equations.
            center: (k,) minimum of the penalty.
            nonnegative: (k,) mask of coefficients that cannot be negative; negative ones are left out.
        """
        place = np.full(int(max(map(np.max, self.factors.columns.of_joint))) + 1, -1)
        place[chosen] = np.arange(len(chosen))
        own = [np.flatnonzero(place[columns] >= 0) for columns in self.factors.columns.of_joint]
        places = [place[columns[kept]] for columns, kept in zip(self.factors.columns.of_joint, own, strict=True)]
        normal = np.repeat(penalty[None], len(self.folds), axis=0)
        right = np.repeat((penalty @ center)[None], len(self.folds), axis=0)
        for kept, there, gram in zip(own, places, self._train, strict=True):
            normal[:, there[:, None], there] += gram[:, kept[:, None], kept]
            right[:, there] += gram[:, kept, -1]
        x = _solve(normal, right, nonnegative)
        table = []
        for kept, there, gram, s in zip(own, places, self._test, self.noise, strict=True):
            part = x[:, there]
            power = gram[:, -1, -1]
            fitted = np.einsum("fi,fij,fj->f", part, gram[:, kept[:, None], kept], part, optimize=True)
            squares = fitted - 2 * np.einsum("fi,fi->f", part, gram[:, kept, -1]) + power
            table.append(np.maximum(squares, ROUNDING_LOSS * power) / (self._counts * s**2))
        return np.transpose(table)

    def mean(self, losses: NDArray) -> float:
        """Return the mean over joints of the logarithm of the mean loss over folds.

        The logarithm gives each joint the same weight, even if its noise is poorly known.
        """
        return float(np.mean(np.log(np.maximum(self._shares @ losses, 1e-300))))

    def gain(self, losses: NDArray, other: NDArray) -> tuple[float, float]:
        """Return the decrease of the log losses by `other` (F, n), summed over joints, and its standard error.

        The error is that of the mean over folds, from the scatter of the gain between them.
        """
        ratios = np.log(np.maximum(losses, 1e-300) / np.maximum(other, 1e-300)).sum(axis=1)
        mean = self._shares @ ratios
        error = np.sqrt(self._shares @ (ratios - mean) ** 2 / max(len(ratios) - 1, 1))
        return (self.mean(losses) - self.mean(other)) * losses.shape[1], float(error)


def _solve(normal: NDArray, right: NDArray, nonnegative: NDArray) -> NDArray:
    """Return solutions (F, k) of normal equations (F, k, k), without columns with coefficients of the wrong sign."""
    scale = np.sqrt(np.maximum(np.einsum("fkk->fk", normal), np.finfo(float).tiny))
    scaled = normal / (scale[:, :, None] * scale[:, None, :]) + RIDGE_FRACTION * np.eye(right.shape[1])
    target = right / scale
    x = np.linalg.solve(scaled, target[..., None])[..., 0]
    for fold in np.flatnonzero((nonnegative & (x < 0)).any(axis=1)):
        kept = np.ones(right.shape[1], dtype=bool)
        while (wrong := nonnegative & (x[fold] < 0)).any():
            kept &= ~wrong
            x[fold] = 0.0
            x[fold, kept] = np.linalg.solve(scaled[fold][np.ix_(kept, kept)], target[fold, kept])
    return x / scale
