"""Normal equations of every joint, summed as samples come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.estimation.least_squares import LeastSquaresFit, solve
from dynid_ros.estimation.rank import MOTION_RANK_TOLERANCE, ROUNDING_COLUMN, gram_factor


class GroupedNormalEquations:
    """[Y_j τ_j]ᵀ [Y_j τ_j] of each joint: all that least squares needs of any number of samples.

    The condition number of unit columns squares in them. Motion that is good for identification has tens to hundreds,
    which costs four of sixteen digits. A combination that rounding hides, at 1e6 and more, has a standard error of as
    many times the noise of a sample: noise hides it long before. QR of the rows instead takes four times as long.

    Args:
        sizes: (n,) numbers k_j of columns.
        n_groups: G, of samples that are summed apart, to leave some out.

    Attributes:
        counts: (G,) samples of each group.
        sums: for each joint (G, k_j + 1, k_j + 1), the torque last.
    """

    def __init__(self, sizes: Sequence[int], n_groups: int = 1):
        self.counts = np.zeros(n_groups, dtype=int)
        self.sums = [np.zeros((n_groups, size + 1, size + 1)) for size in sizes]
        self._factors: dict[int, NDArray] = {}

    def add(self, group: int, rows: Sequence[NDArray], torque: NDArray) -> None:
        """Add samples to a group.

        Args:
            group: 0 … G−1.
            rows: for each joint (M, k_j); fastest if the samples of a column are adjacent in memory.
            torque: (M, n).
        """
        self._factors.clear()
        self.counts[group] += len(torque)
        for matrix, right, sums in zip(rows, torque.T, self.sums, strict=True):
            total = sums[group]
            moment = matrix.T @ right
            total[:-1, :-1] += matrix.T @ matrix
            total[:-1, -1] += moment
            total[-1, :-1] += moment
            total[-1, -1] += right @ right

    def factor(self, joint: int, groups: Sequence[int] | NDArray | None = None) -> NDArray:
        """Return R (r, k_j + 1) with RᵀR the sum over all rows of a joint in these groups (None: in all groups)."""
        if groups is not None:
            return gram_factor(self.sums[joint][np.asarray(groups, dtype=int)].sum(axis=0))
        if joint not in self._factors:
            self._factors[joint] = gram_factor(self.sums[joint].sum(axis=0))
        return self._factors[joint]


# All equations of a fit, summed as they come: memory does not grow with the number of samples.


N_PARTS = 5
"""Parts of a recording that are left out in turn."""
MAX_STRETCHES = 20
"""Largest number of stretches of a recording."""
SAMPLES_PER_STRETCH = 25


class Columns(Protocol):
    """Columns of the equations of several channels, such as the joints' torques.

    Attributes:
        of_joint: for each channel the (k_j,) columns that it can depend on.
    """

    of_joint: list[NDArray]

    def memory(self, q: NDArray) -> Mapping[Any, NDArray]:
        """Return the state (N,) of columns with a memory at consecutive positions (N, n)."""

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray, memory: Any = None) -> list[NDArray]:
        """Return for each channel the matrix (N, k_j) of a motion (N, n), given the state of columns with a memory."""


AnyColumns = TypeVar("AnyColumns", bound=Columns)


class NormalEquations(GroupedNormalEquations, Generic[AnyColumns]):
    """Sums of [Y_j τ_j]ᵀ [Y_j τ_j] and their factors, by groups of samples.

    Groups can be left out for cross-validation, and compared for errors that are correlated in time. Group 2 s has the
    slow and group 2 s + 1 the fast samples of stretch s.

    Args:
        recordings: rough number of samples of each recording.
        share: (n,) weight of each joint's equations relative to full weight, or one number for all joints.

    Attributes:
        columns, share: arguments.
        stretches: number of stretches of time of each recording; S in all.
        parts: (S,) part of its recording that each stretch belongs to.
    """

    def __init__(self, columns: AnyColumns, recordings: Sequence[int] | NDArray, share: float | NDArray = 1.0):
        self.columns = columns
        self.share = share
        self.stretches = [int(np.clip(size // SAMPLES_PER_STRETCH, 1, MAX_STRETCHES)) for size in recordings]
        self.parts = np.concatenate([_parts(i, count) for i, count in enumerate(self.stretches)])
        self._widths = [len(own) for own in columns.of_joint]
        super().__init__(self._widths, 2 * len(self.parts))
        self._kinds: dict[int, GroupedNormalEquations] = {}

    def add_kind(self, kind: int, rows: Sequence[NDArray], torque: NDArray) -> None:
        """Add samples to a kind of motion; other arguments as in `add`."""
        if kind not in self._kinds:
            self._kinds[kind] = GroupedNormalEquations(self._widths)
        self._kinds[kind].add(0, rows, torque)

    @property
    def kinds(self) -> list[int]:
        """Kinds of motion that there are samples of."""
        return sorted(self._kinds)

    def kind_gram(self, kind: int, joint: int) -> NDArray:
        """[Y_j τ_j]ᵀ [Y_j τ_j], (k_j + 1, k_j + 1), of one kind of motion."""
        return self._kinds[kind].sums[joint][0]

    def norms(self, joint: int) -> NDArray:
        """Return the norms (k_j,) of a joint's columns over all samples."""
        return np.sqrt(np.einsum("gkk->k", self.sums[joint])[:-1])

    def relative_power(self, size: int) -> NDArray:
        """Return the power (size,) of each column relative to its channels' power, summed over channels."""
        found = np.zeros(size)
        for own, sums in zip(self.columns.of_joint, self.sums, strict=True):
            power = np.einsum("gkk->k", sums)
            found[own] += power[:-1] / max(power[-1], np.finfo(float).tiny)
        return found

    def gram(self, group: int, joint: int) -> NDArray:
        """[Y_j τ_j]ᵀ [Y_j τ_j], (k_j + 1, k_j + 1), of one group; kinds of motion count on from the last group."""
        beyond = group - len(self.counts)
        return self.sums[joint][group] if beyond < 0 else self.kind_gram(self.kinds[beyond], joint)

    def gram_sum(self, joint: int, groups: Sequence[int] | NDArray) -> NDArray:
        """[Y_j τ_j]ᵀ [Y_j τ_j], (k_j + 1, k_j + 1), of several groups together; kinds of motion as of `gram`."""
        numbers = np.asarray(groups, dtype=int)
        total = self.sums[joint][numbers[numbers < len(self.counts)]].sum(axis=0)
        for group in numbers[numbers >= len(self.counts)]:
            total += self.gram(int(group), joint)
        return total

    def count(self, groups: Sequence[int] | NDArray) -> int:
        """Add samples in these groups; kinds of motion count on from the last group."""
        kinds = [self._kinds[kind].counts[0] for kind in self.kinds]
        return int(np.concatenate([self.counts, kinds]).astype(int)[np.asarray(groups, dtype=int)].sum())


def _parts(recording: int, stretches: int) -> NDArray:
    """Return the part of each stretch of a recording; recordings too short to be divided are left out in turn."""
    part = (np.arange(stretches) + 0.5) * N_PARTS / stretches
    return (part.astype(int) + (recording if stretches < N_PARTS else 0)) % N_PARTS


# The link equations as one weighted least-squares problem, for a choice of columns and any groups of samples.


MAX_ITERATIONS = 20
NOISE_TOLERANCE = 1e-6
MIN_NOISE_FRACTION = 1e-12
"""Smallest noise, in parts of a joint's RMS torque: less is rounding."""


class WeightedProblem:
    """Weighted problem min Σ_j ‖Y_j x − τ_j‖² / σ_j², with base parameters first and friction after.

    Args:
        chosen: (k,) columns of `factors.columns` that form x.

    Attributes:
        factors, chosen: arguments.
        n_joints: n.
        places: for each joint, indices of its columns in x.
        kept: for each joint, its columns that are in x and have an effect on its torque in these data.
    """

    def __init__(self, factors: NormalEquations, chosen: NDArray):
        self.factors = factors
        self.chosen = np.asarray(chosen, dtype=int)
        place = {int(column): i for i, column in enumerate(self.chosen)}
        own = factors.columns.of_joint
        self.n_joints = len(own)
        norms = [factors.norms(j) for j in range(self.n_joints)]
        self.kept = [
            np.flatnonzero(np.isin(columns, self.chosen) & (norm > ROUNDING_COLUMN * norm.max(initial=0.0)))
            for columns, norm in zip(own, norms, strict=True)
        ]
        self.places = [
            np.array([place[int(c)] for c in columns[kept]], dtype=int)
            for columns, kept in zip(own, self.kept, strict=True)
        ]

    @property
    def n_unknowns(self) -> int:
        """Length k of x."""
        return len(self.chosen)

    def of(self, chosen: NDArray) -> WeightedProblem:
        """Return the problem in other columns; the problem itself if they are equal."""
        return self if np.array_equal(chosen, self.chosen) else WeightedProblem(self.factors, chosen)

    def joint(self, joint: int, groups: Sequence[int] | NDArray | None = None) -> tuple[NDArray, NDArray]:
        """Matrix (r, k) and right-hand side (r,) of one joint, not weighted; groups None: all."""
        if groups is None:
            return self._joints[joint]
        own = np.append(self.kept[joint], -1)
        return self._placed(joint, gram_factor(self.factors.gram_sum(joint, groups)[np.ix_(own, own)]))

    @cached_property
    def squares(self) -> list[NDArray]:
        """YᵀY (k, k) of each joint over all samples."""
        return [matrix.T @ matrix for matrix, _ in self._joints]

    @cached_property
    def _joints(self) -> list[tuple[NDArray, NDArray]]:
        owns = [np.append(kept, -1) for kept in self.kept]
        return [self._placed(joint, self.factors.factor(joint)[:, own]) for joint, own in enumerate(owns)]

    def _placed(self, joint: int, factor: NDArray) -> tuple[NDArray, NDArray]:
        matrix = np.zeros((len(factor), self.n_unknowns))
        matrix[:, self.places[joint]] = factor[:, :-1]
        return matrix, factor[:, -1]

    def stacked(self, noise: NDArray, groups: Sequence[int] | NDArray | None = None) -> tuple[NDArray, NDArray]:
        """Matrix (r, k) and right-hand side (r,) of all joints, divided by the (n,) noise of each."""
        parts = [self.joint(j, groups) for j in range(self.n_joints)]
        return (
            np.vstack([matrix / s for (matrix, _), s in zip(parts, noise, strict=True)]),
            np.concatenate([right / s for (_, right), s in zip(parts, noise, strict=True)]),
        )

    def gram(self, joint: int, groups: Sequence[int] | NDArray) -> tuple[NDArray, NDArray, float]:
        """YᵀY (k, k), Yᵀτ (k,) and τᵀτ of one joint in these groups."""
        return self._embedded(joint, self.factors.gram_sum(joint, groups))

    def kind_gram(self, joint: int, kind: int) -> tuple[NDArray, NDArray]:
        """YᵀY (k, k) and Yᵀτ (k,) of one joint in one kind of motion."""
        return self._embedded(joint, self.factors.kind_gram(kind, joint))[:2]

    def _embedded(self, joint: int, gram: NDArray) -> tuple[NDArray, NDArray, float]:
        own = np.append(self.kept[joint], -1)
        total = gram[np.ix_(own, own)]
        matrix = np.zeros((self.n_unknowns, self.n_unknowns))
        right = np.zeros(self.n_unknowns)
        matrix[np.ix_(self.places[joint], self.places[joint])] = total[:-1, :-1]
        right[self.places[joint]] = total[:-1, -1]
        return matrix, right, float(total[-1, -1])

    def count(self, groups: Sequence[int] | NDArray | None = None) -> int:
        """Add samples in these groups."""
        return int(self.factors.counts.sum()) if groups is None else self.factors.count(groups)

    def residual_rms(self, x: ArrayLike, groups: Sequence[int] | NDArray | None = None) -> NDArray:
        """Return the RMS (..., n) of τ − Y x per joint, N m, for one or several x (..., k)."""
        x = np.asarray(x, dtype=float)
        parts = (self.joint(j, groups) for j in range(self.n_joints))
        squares = [np.sum((right - x @ matrix.T) ** 2, axis=-1) for matrix, right in parts]
        return np.sqrt(np.stack(squares, axis=-1) / np.maximum(self.count(groups) * self.factors.share, 1.0))

    def torque_rms(self) -> NDArray:
        """Return the RMS (n,) of the torque per joint, N m."""
        return self.residual_rms(np.zeros(self.n_unknowns))

    def ordinary(self) -> LeastSquaresFit:
        """Solve with equal weights of all joints; the covariance is for a noise of 1 N m."""
        return solve(*self.stacked(np.ones(self.n_joints)), tolerance=MOTION_RANK_TOLERANCE)

    def weighted(self) -> tuple[LeastSquaresFit, NDArray]:
        """Solve with each joint weighted by its own noise, estimated by iteratively reweighted least squares.

        Returns:
            The fit, with the covariance for white noise, and the noise (n,) of each joint, N m.
        """
        return self._weighted

    @cached_property
    def _weighted(self) -> tuple[LeastSquaresFit, NDArray]:
        matrix, right = self.stacked(np.ones(self.n_joints))
        owner = np.repeat(np.arange(self.n_joints), [len(self.factors.factor(j)) for j in range(self.n_joints)])
        floor = MIN_NOISE_FRACTION * np.maximum(self.torque_rms(), MIN_NOISE_FRACTION)
        noise = np.ones(self.n_joints)
        for _ in range(MAX_ITERATIONS):
            used = noise
            fit = solve(matrix / noise[owner, None], right / noise[owner], tolerance=MOTION_RANK_TOLERANCE)
            squares = np.bincount(owner, fit.residual**2, self.n_joints) * noise**2
            dof = np.maximum(self.count() * self.factors.share - np.bincount(owner, fit.leverage, self.n_joints), 1.0)
            noise = np.maximum(np.sqrt(squares / dof), floor)
            if np.allclose(used, noise, rtol=NOISE_TOLERANCE, atol=0):
                break
        return fit, used
