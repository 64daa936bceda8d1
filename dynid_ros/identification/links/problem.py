"""The link equations as one weighted least-squares problem, for a choice of columns and any groups of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.identification.least_squares import LeastSquaresFit, solve
from dynid_ros.identification.links.factors import LinkFactors

ROUNDS = 20
SETTLED = 1e-6
ROUNDING = 1e-9
"""Columns below this share of a joint's largest are rounding: brought to unit norm they would count."""
RANK_TOLERANCE = 1e-4
"""Of singular values of unit columns. What motion decides has more than 1e-3; noise of positions feigns 1e-5."""
SMALLEST_NOISE = 1e-12
"""Of a joint's RMS torque: noise below is rounding."""


class LinkProblem:
    """min Σ_j ‖Y_j x − τ_j‖² / σ_j² over x, whose columns are base parameters first and friction after.

    Args:
        factors: compressed equations.
        chosen: (k,) columns of `factors.columns` that x consists of.

    Attributes:
        factors, chosen: as given.
        n_joints: n.
        places: for each joint, where in x its columns are.
        kept: for each joint, which of its columns x has, but for those without effect on its torque in these data.

    """

    def __init__(self, factors: LinkFactors, chosen: NDArray):
        self.factors, self.chosen = factors, np.asarray(chosen, dtype=int)
        place = {int(column): i for i, column in enumerate(self.chosen)}
        own = factors.columns.of_joint
        self.n_joints = len(own)
        self._factors: dict[int, NDArray] = {}
        self.kept = [
            np.array([i for i, c in enumerate(columns) if int(c) in place and effect[i]], dtype=int)
            for columns, effect in zip(own, self._effects(), strict=True)
        ]
        self.places = [
            np.array([place[int(c)] for c in columns[kept]], dtype=int)
            for columns, kept in zip(own, self.kept, strict=True)
        ]

    @property
    def n_unknowns(self) -> int:
        """Length k of x."""
        return len(self.chosen)

    def joint(self, joint: int, groups: Sequence[int] | NDArray | None = None) -> tuple[NDArray, NDArray]:
        """Matrix (r, k) and right-hand side (r,) of one joint, not weighted; groups None: all."""
        factor = self._whole(joint) if groups is None else self.factors.factor(joint, groups)
        matrix = np.zeros((len(factor), self.n_unknowns))
        matrix[:, self.places[joint]] = factor[:, self.kept[joint]]
        return matrix, factor[:, -1]

    def _effects(self) -> Iterator[NDArray]:
        for joint in range(self.n_joints):
            norms = self.factors.norms(joint)
            yield norms > ROUNDING * norms.max(initial=0.0)

    def _whole(self, joint: int) -> NDArray:
        if joint not in self._factors:
            self._factors[joint] = self.factors.factor(joint)
        return self._factors[joint]

    def stacked(self, noise: NDArray, groups: Sequence[int] | NDArray | None = None) -> tuple[NDArray, NDArray]:
        """Matrix (r, k) and right-hand side (r,) of all joints, divided by the (n,) noise of each."""
        parts = [self.joint(j, groups) for j in range(self.n_joints)]
        return (
            np.vstack([matrix / s for (matrix, _), s in zip(parts, noise, strict=True)]),
            np.concatenate([right / s for (_, right), s in zip(parts, noise, strict=True)]),
        )

    def gram(self, joint: int, groups: Sequence[int] | NDArray) -> tuple[NDArray, NDArray, float]:
        """YᵀY (k, k), Yᵀτ (k,) and τᵀτ of one joint in these groups."""
        width = len(self.factors.columns.of_joint[joint]) + 1
        return self._embedded(joint, sum((self.factors.gram(g, joint) for g in groups), np.zeros((width, width))))

    def kind_gram(self, joint: int, kind: int) -> tuple[NDArray, NDArray]:
        """YᵀY (k, k) and Yᵀτ (k,) of one joint in one kind of motion."""
        return self._embedded(joint, self.factors.kind_gram(kind, joint))[:2]

    def _embedded(self, joint: int, gram: NDArray) -> tuple[NDArray, NDArray, float]:
        own = np.append(self.kept[joint], -1)
        total = gram[np.ix_(own, own)]
        matrix, right = np.zeros((self.n_unknowns, self.n_unknowns)), np.zeros(self.n_unknowns)
        matrix[np.ix_(self.places[joint], self.places[joint])] = total[:-1, :-1]
        right[self.places[joint]] = total[:-1, -1]
        return matrix, right, float(total[-1, -1])

    def count(self, groups: Sequence[int] | NDArray | None = None) -> int:
        """Samples in these groups."""
        return int(self.factors.counts.sum() if groups is None else self.factors.counts[list(groups)].sum())

    def residual_rms(self, x: ArrayLike, groups: Sequence[int] | NDArray | None = None) -> NDArray:
        """(..., n) RMS of τ − Y x per joint, N m, of one or several x (..., k)."""
        x = np.asarray(x, dtype=float)
        parts = (self.joint(j, groups) for j in range(self.n_joints))
        squares = [np.sum((right - x @ matrix.T) ** 2, axis=-1) for matrix, right in parts]
        return np.sqrt(np.stack(squares, axis=-1) / np.maximum(self.count(groups) * self.factors.share, 1.0))

    def torque_rms(self) -> NDArray:
        """(n,) RMS of the torque per joint, N m."""
        return self.residual_rms(np.zeros(self.n_unknowns))

    def ordinary(self) -> LeastSquaresFit:
        """All joints weighted alike; the covariance is for a noise of 1 N m."""
        return solve(*self.stacked(np.ones(self.n_joints)), tolerance=RANK_TOLERANCE)

    def weighted(self) -> tuple[LeastSquaresFit, NDArray]:
        """Each joint weighted by its own noise, which is estimated along (iteratively reweighted least squares).

        Returns:
            The fit, with the covariance for noise that is white, and the noise (n,) of each joint, N m.

        """
        matrix, right = self.stacked(np.ones(self.n_joints))
        owner = np.repeat(np.arange(self.n_joints), [len(self._whole(j)) for j in range(self.n_joints)])
        floor = SMALLEST_NOISE * np.maximum(self.torque_rms(), SMALLEST_NOISE)
        noise = np.ones(self.n_joints)
        for _ in range(ROUNDS):
            used, fit = noise, solve(matrix / noise[owner, None], right / noise[owner], tolerance=RANK_TOLERANCE)
            squares = np.bincount(owner, fit.residual**2, self.n_joints) * noise**2
            freedom = np.maximum(
                self.count() * self.factors.share - np.bincount(owner, fit.leverage, self.n_joints), 1.0
            )
            noise = np.maximum(np.sqrt(squares / freedom), floor)
            if np.allclose(used, noise, rtol=SETTLED, atol=0):
                break
        return fit, used
