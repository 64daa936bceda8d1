"""Cross-validation: folds of held-out samples, and the prediction errors of models on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.normal_equations import NormalEquations

ROUNDING_LOSS = 1e-12
"""Smallest squared error as a fraction of the squared torque; anything below is rounding of the normal equations."""
RIDGE_FRACTION = 1e-10
"""Ridge added to the normal equations of unit columns, so that collinear columns share their effect."""
N_KIND_FOLDS = 4
"""Number of folds that hold out kinds of motion; a kind is a region of positions and the motion there."""
FOLD_SHARES = {"parts": 0.34, "fast": 0.2, "slow": 0.13, "kinds": 0.33}
"""Total weight of the folds that hold out parts in time, fast samples, slow samples and kinds of motion."""


@dataclass(frozen=True, eq=False)
class Fold:
    """One division of the samples into training and test groups.

    Attributes:
        train, test: Indices of groups of `NormalEquations`; kinds of motion are numbered after the last group.
        share: Weight of the fold in a mean over folds.
    """

    train: NDArray
    test: NDArray
    share: float


def folds(factors: NormalEquations) -> list[Fold]:
    """Return the folds; their shares sum to one. Without two parts that contain samples, there are no folds.

    Neighbouring samples are correlated, so whole parts of the recordings are held out: the same part of every
    recording, since recordings often repeat each other. These folds judge the prediction of the same motion. The other
    folds judge extrapolation: to fast samples from slow ones, to slow samples (where joints start and stop) from fast
    ones, and to kinds of motion from other kinds.
    """
    counts = factors.counts
    groups = np.arange(len(counts))
    kinds = len(counts) + np.arange(len(factors.kinds))
    # Groups 2 s and 2 s + 1 are the slow and the fast samples of stretch s.
    part_of_group = np.repeat(factors.parts, 2)
    parts = [part for part in np.unique(part_of_group) if counts[part_of_group == part].sum()]
    if len(parts) < 2:
        return []
    splits = {"parts": [(groups[part_of_group != part], groups[part_of_group == part]) for part in parts]}
    slow = groups[groups % 2 == 0]
    fast = groups[groups % 2 == 1]
    if counts[slow].sum() and counts[fast].sum():
        splits |= {"fast": [(slow, fast)], "slow": [(fast, slow)]}
    if len(kinds) >= N_KIND_FOLDS:
        fold_of_kind = np.arange(len(kinds)) % N_KIND_FOLDS
        splits["kinds"] = [(kinds[fold_of_kind != k], kinds[fold_of_kind == k]) for k in range(N_KIND_FOLDS)]
    total = sum(FOLD_SHARES[name] for name in splits)
    return [Fold(*pair, FOLD_SHARES[name] / len(pairs) / total) for name, pairs in splits.items() for pair in pairs]


class FoldGrams:
    """Normal equations of every fold, from which any subset of columns is fitted and tested without the samples.

    They square the condition number, which is accurate enough to compare models.

    Args:
        factors: Normal equations of all columns.
        noise: Standard deviation (n,) of each joint's torque noise, N m.
    """

    def __init__(self, factors: NormalEquations, noise: NDArray):
        self.factors = factors
        self.noise = noise
        self.folds = folds(factors)
        of_joint = factors.columns.of_joint
        self._size = int(max(map(np.max, of_joint))) + 1
        self._columns = [np.append(columns, self._size) for columns in of_joint]  # the last one is the torque
        self._counts = np.array([factors.count(fold.test) for fold in self.folds])
        self._shares = np.array([fold.share for fold in self.folds])

    @cached_property
    def _train(self) -> NDArray:
        """Normal equations (F, k, k + 1) of the training samples of all joints, each over its noise squared."""
        train = np.zeros((len(self.folds), self._size, self._size + 1))
        grams = self._grams([fold.train for fold in self.folds])
        for columns, gram, s in zip(self._columns, grams, self.noise, strict=True):
            train[:, columns[:-1, None], columns] += gram[:, :-1] / s**2
        return train

    @cached_property
    def _test(self) -> list[NDArray]:
        """Normal equations (F, k_j + 1, k_j + 1) of each joint's test samples."""
        return self._grams([fold.test for fold in self.folds])

    def _grams(self, groups_by_fold: Sequence[NDArray]) -> list[NDArray]:
        """Return each joint's normal equations (F, k_j + 1, k_j + 1), summed over the groups of each fold."""
        joints = range(len(self.noise))
        return [np.array([self.factors.gram_sum(j, groups) for groups in groups_by_fold]) for j in joints]

    def losses(self, chosen: NDArray, penalty: NDArray, center: NDArray, nonnegative: NDArray) -> NDArray:
        """Return the mean squared prediction error on test samples over noise squared (F, n), per fold and joint.

        The fit of a fold minimizes the squared error over noise squared, plus (x - center)ᵀ penalty (x - center).

        Args:
            chosen: Indices (k,) of the columns of the model.
            penalty: Matrix (k, k) of the penalty.
            center: Coefficients (k,) at which the penalty is zero.
            nonnegative: Mask (k,) of coefficients that cannot be negative; columns that would be negative are dropped.
        """
        normal = self._train[:, chosen[:, None], chosen] + penalty
        right = self._train[:, chosen, -1] + penalty @ center
        solution = np.zeros((len(self.folds), 1, self._size))
        solution[:, 0, chosen] = _solve(normal, right, nonnegative)
        return self._test_losses(solution)[0]

    def _test_losses(self, solutions: NDArray) -> NDArray:
        """Return the losses (M, F, n) of M models with coefficients (F, M, k), zero for columns that are not chosen."""
        # |τ − Y x|² = zᵀ [Y τ]ᵀ [Y τ] z with z = (x, −1).
        z = np.concatenate([solutions, np.full((*solutions.shape[:2], 1), -1.0)], axis=2)
        losses = []
        for columns, gram, s in zip(self._columns, self._test, self.noise, strict=True):
            z_joint = z[:, :, columns]
            squares = np.einsum("fmk,fmk->fm", z_joint @ gram, z_joint)
            losses.append(np.maximum(squares, ROUNDING_LOSS * gram[:, -1:, -1]) / (self._counts * s**2)[:, None])
        return np.transpose(losses, (2, 1, 0))

    def mean(self, losses: NDArray) -> float:
        """Return the mean over joints of the logarithm of the mean loss over folds.

        The logarithm gives each joint the same weight, even if its noise is poorly known.
        """
        return float(np.mean(np.log(np.maximum(self._shares @ losses, 1e-300))))

    def gain(self, losses: NDArray, other: NDArray) -> tuple[float, float]:
        """Return the gain of a model with losses `other` (F, n) over one with `losses` (F, n), and its standard error.

        The gain is the decrease of `mean`, summed instead of averaged over joints; a positive gain favours `other`. The
        standard error is estimated from the scatter of the gain between folds.
        """
        ratios = np.log(np.maximum(losses, 1e-300) / np.maximum(other, 1e-300)).sum(axis=1)
        mean = self._shares @ ratios
        error = np.sqrt(self._shares @ (ratios - mean) ** 2 / max(len(ratios) - 1, 1))
        return (self.mean(losses) - self.mean(other)) * losses.shape[1], float(error)


class SharedColumnLosses:
    """Held-out losses of models that share their first columns, which are eliminated once for all of these models.

    Args:
        penalty: matrix (s, s) of the penalty on the coefficients of the first s columns.
        center: coefficients (s,) at which it is zero.
    """

    def __init__(self, grams: FoldGrams, penalty: NDArray, center: NDArray):
        size = len(center)
        shared = grams._train[:, :size, :size] + penalty
        across = grams._train[:, :size, size:].copy()
        across[:, :, -1] += penalty @ center
        scale = np.sqrt(np.maximum(np.einsum("fkk->fk", shared), np.finfo(float).tiny))
        shared = shared / (scale[:, :, None] * scale[:, None, :]) + RIDGE_FRACTION * np.eye(size)
        self._grams = grams
        self._size = size
        self._eliminated = np.linalg.solve(shared, across / scale[:, :, None]) / scale[:, :, None]
        self._power = np.einsum("fkk->fk", grams._train[:, size:, size:-1])
        self._normal = grams._train[:, size:, size:] - np.swapaxes(across[:, :, :-1], 1, 2) @ self._eliminated

    def losses(self, models: Sequence[tuple[NDArray, NDArray, NDArray]]) -> NDArray:
        """Return the losses (M, F, n) as `FoldGrams.losses` does.

        Args:
            models: of each model the indices (k,) of its further columns, the penalty (k,) on their squares, and a
                mask (k,) of those that cannot be negative.
        """
        solutions = np.zeros((len(self._normal), len(models), self._grams._size))
        for number, (chosen, penalty, nonnegative) in enumerate(models):
            own = chosen - self._size
            normal = self._normal[:, own[:, None], own]
            # The ridge is that of columns which have unit length before the elimination. A column of zeros, as of a
            # joint at standstill, gets a coefficient of zero.
            power = self._power[:, own] + penalty
            ridge = np.where(power > np.finfo(float).tiny, RIDGE_FRACTION * power, 1.0)
            normal[:, range(len(own)), range(len(own))] += penalty + ridge
            x = _solve(normal, self._normal[:, own, -1], nonnegative, ridge=0.0)
            solutions[:, number, chosen] = x
            shared = self._eliminated[:, :, -1] - (self._eliminated[:, :, own] @ x[:, :, None])[:, :, 0]
            solutions[:, number, : self._size] = shared
        return self._grams._test_losses(solutions)


def _solve(normal: NDArray, right: NDArray, nonnegative: NDArray, ridge: float = RIDGE_FRACTION) -> NDArray:
    """Return solutions (F, k) of normal equations (F, k, k) with right sides (F, k) and a ridge on unit columns.

    Columns whose coefficients have the wrong sign are dropped, fold by fold, until all signs are right.
    """
    scale = np.sqrt(np.maximum(np.einsum("fkk->fk", normal), np.finfo(float).tiny))
    scaled = normal / (scale[:, :, None] * scale[:, None, :]) + ridge * np.eye(right.shape[1])
    target = right / scale
    x = np.linalg.solve(scaled, target[..., None])[..., 0]
    kept = np.ones(right.shape, dtype=bool)
    while (wrong := nonnegative & (x < 0)).any():
        kept &= ~wrong
        # Rows and columns of the unit matrix replace those of dropped columns.
        fewer = np.where(kept[:, :, None] & kept[:, None, :], scaled, np.eye(right.shape[1]))
        x = np.linalg.solve(fewer, np.where(kept, target, 0.0)[..., None])[..., 0]
    return x / scale


Model = TypeVar("Model")


class ForwardSelection(Generic[Model]):
    """Model that changes step by step while held-out samples support the change.

    Args:
        losses_of: function that returns the held-out losses (F, n) of each of several models, per fold and joint.
        model: first model.

    Attributes:
        model: model so far.
        losses: (F, n) held-out losses of the model.
    """

    def __init__(
        self, grams: FoldGrams, losses_of: Callable[[Sequence[Model]], Sequence[NDArray] | NDArray], model: Model
    ):
        self._grams = grams
        self._losses_of = losses_of
        self.model = model
        self.losses = losses_of([model])[0]

    def try_models(
        self,
        models: Sequence[Model],
        required_gain: Callable[[Model, float], float],
        judged_joints: Callable[[Model], Sequence[Sequence[int]]] | None = None,
    ) -> tuple[list[NDArray], int | None]:
        """Take the best of several models if its gain exceeds the required gain.

        Args:
            models: candidates.
            required_gain: function of a candidate and of the standard error of its gain.
            judged_joints: function that returns groups of joints, each of which must gain; None: all joints together.

        Returns:
            Gains of each group for each candidate, and the index of the candidate that was taken, or None.
        """
        every_joint = [range(self.losses.shape[1])]
        trials = []
        for model, losses in zip(models, self._losses_of(models) if models else [], strict=True):
            groups = every_joint if judged_joints is None else judged_joints(model)
            gains, errors = np.transpose([self._grams.gain(self.losses[:, j], losses[:, j]) for j in map(list, groups)])
            margin = min(gain - required_gain(model, error) for gain, error in zip(gains, errors, strict=True))
            trials.append((gains, margin, losses))
        best = max(range(len(trials)), key=lambda k: trials[k][1], default=None)
        if best is None or trials[best][1] <= 0.0:
            best = None
        else:
            self.model = models[best]
            self.losses = trials[best][2]
        return [gains for gains, *_ in trials], best
