"""Least squares over positive definite 4x4 matrices and non-negative numbers, with the entropy of the matrices.

minimise f(S, w) = ½ ‖A svec(S) + B w − z‖² + γ Σ (−log det S_i + tr S_i − 4) over S_i ≻ 0, w ≥ 0

This is a primal-dual interior-point method. The optimum has slacks Z_i = γ S_i⁻¹ and v ≥ 0 with w ∘ v = 0. It is the
point of the central path where the products S Z have decreased to γ and w v to zero. Both start high, which is a
continuation in the weight. Nesterov-Todd scaling makes primal and dual equal and diagonal in each iteration, and
Mehrotra's predictor chooses the decrease (Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers"). S
and Z are stored as factors, which keeps them positive definite under rounding. Each Newton step is a least-squares
problem solved by QR, which does not square the condition number of A.

Problems of equal size, such as the folds of a cross-validation, are solved together: arrays have a leading axis for
them, so that a step costs as many calls of numpy as for one problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtpmqrt, dtpqrt, dtrtrs
from scipy.optimize import nnls

SYMMETRIC = 10
"""Dimension of the symmetric 4x4 matrices."""

_MAX_ITERATIONS = 150
SMALLEST_GAP = 1e-13
"""Duality gap, as a fraction of the objective, at which the iteration ends; rounding allows little less."""

_PATIENCE = 8
"""Iterations at the end of the path without halving the gap, after which rounding is taken to be the limit."""

_TO_BOUNDARY = 0.98
"""Fraction of the way to the boundary that a step may go."""

_CENTRALITY = 0.02
"""Fraction of its target below which a step may not let a product of primal and dual fall."""

_USEFUL_STEP = 0.05
"""Length below which a step is not shortened further, and a more careful direction is tried."""

_SMALLEST_IMAGE = 1e-6
"""Effect of the prior, as a fraction of the data, below which the data do not determine its scale."""

_RIDGE = 1e-8
"""Ridge on w (columns of unit length): it bounds undetermined coefficients and has no visible effect otherwise."""


def _basis() -> NDArray:
    """Orthonormal basis (10, 4, 4) of the symmetric matrices: svec are the coordinates in it."""
    basis = np.zeros((SYMMETRIC, 4, 4))
    for k, (i, j) in enumerate(zip(*np.triu_indices(4), strict=True)):
        basis[k, i, j] = basis[k, j, i] = 1.0 if i == j else np.sqrt(0.5)
    return basis


BASIS = _basis()
_FLAT = BASIS.reshape(SYMMETRIC, 16)


_QR_BLOCK = 8
"""Columns that LAPACK's QR eliminates together."""


def svec(matrices: NDArray) -> NDArray:
    """Return the coordinates (..., 10 n) of symmetric matrices (..., n, 4, 4), with equal inner products."""
    *shape, n, _, _ = matrices.shape
    return (matrices.reshape(-1, 16) @ _FLAT.T).reshape(*shape, n * SYMMETRIC)


def smat(coordinates: NDArray) -> NDArray:
    """Return the symmetric matrices (..., n, 4, 4) of coordinates (..., 10 n)."""
    return (coordinates.reshape(-1, SYMMETRIC) @ _FLAT).reshape(*coordinates.shape[:-1], -1, 4, 4)


@dataclass(frozen=True)
class Point:
    """Primal and dual points of F problems inside the cones.

    Attributes:
        factor: (F, n, 4, 4) L with S = L Lᵀ.
        dual_factor: (F, n, 4, 4) K with Z = K Kᵀ.
        w: (F, k).
        v: (F, k) slacks of w.
    """

    factor: NDArray
    dual_factor: NDArray
    w: NDArray
    v: NDArray

    @property
    def coordinates(self) -> NDArray:
        """svec(S) (F, 10 n)."""
        return svec(self.factor @ _transposed(self.factor))

    def of(self, problems: NDArray | slice) -> Point:
        """Return the points of some problems, by their indices, a mask or a slice."""
        return Point(self.factor[problems], self.dual_factor[problems], self.w[problems], self.v[problems])


@dataclass(frozen=True)
class Optimum:
    """The best point found for one problem and weight.

    Attributes:
        weight: γ.
        point: where the search for another weight may start, with F = 1.
        w: (k,) the best for S, exactly zero where the bound is active.
        gap: f here is at most this far above the minimum; infinite before anything is known.
        iterations: Newton steps.
    """

    weight: float
    point: Point
    w: NDArray
    gap: float
    iterations: int


@dataclass(frozen=True)
class EntropicLeastSquares:
    """F problems of equal size without their weight.

    Attributes:
        A: (F, m, 10 n).
        B: (F, m, k); columns of unit length, or zero.
        z: (F, m).
    """

    A: NDArray
    B: NDArray
    z: NDArray

    @classmethod
    def stack(cls, problems: Sequence[EntropicLeastSquares]) -> EntropicLeastSquares:
        """Return all problems as one; rows of zeros fill up those with fewer rows."""
        rows = max(problem.z.shape[1] for problem in problems)

        def filled(parts: Sequence[NDArray]) -> NDArray:
            return np.concatenate(
                [np.pad(part, ((0, 0), (0, rows - part.shape[1]), *[(0, 0)] * (part.ndim - 2))) for part in parts]
            )

        return cls(*(filled([getattr(problem, name) for problem in problems]) for name in ("A", "B", "z")))

    def solve(
        self, weight: float, starts: Sequence[Optimum | None] | None = None, goal: float = SMALLEST_GAP
    ) -> list[Optimum]:
        """Minimise for one weight γ > 0, from S = 1 or from the optima for another weight.

        Args:
            weight: γ.
            starts: optimum of each problem for another weight; None: S = 1.
            goal: duality gap, as a fraction of the objective, at which the iteration ends.
        """
        count, _, k = self.B.shape
        ridge = np.concatenate([np.zeros((k, self.A.shape[2])), _RIDGE * np.eye(k)], axis=1)
        data = np.concatenate([np.concatenate([self.A, self.B], axis=2), np.tile(ridge, (count, 1, 1))], axis=1)
        right = np.concatenate([self.z, np.zeros((count, k))], axis=1)
        firsts = [self._first(i, weight, start) for i, start in enumerate(starts or [None] * count)]
        point = _joined([first for first, _ in firsts])
        level = np.array([first_level for _, first_level in firsts])
        best = [
            Optimum(weight, point.of(slice(i, i + 1)), w, np.inf, 0)
            for i, w in enumerate(self._best_w(point.coordinates))
        ]
        progress = [0] * count
        active = np.arange(count)
        for iteration in range(1, _MAX_ITERATIONS + 1):
            part = EntropicLeastSquares(self.A[active], self.B[active], self.z[active])
            step_data = data[active]
            residual = _times(step_data, np.concatenate([point.coordinates, point.w], axis=1)) - right[active]
            point, level = _Scaled(step_data, residual, point, weight, level).step()
            w = part._best_w(point.coordinates)
            values, gaps = part._values_and_gaps(point, w, weight)
            is_open = np.ones(len(active), dtype=bool)
            for place, i in enumerate(active):
                value = values[place]
                gap = float(gaps[place])
                if gap < 0.5 * best[i].gap or level[place] > goal * value:
                    progress[i] = iteration
                if gap <= best[i].gap:
                    best[i] = Optimum(weight, point.of(slice(place, place + 1)), w[place], gap, iteration)
                is_open[place] = best[i].gap > goal * value and iteration - progress[i] <= _PATIENCE
            active = active[is_open]
            if not len(active):
                break
            point = point.of(is_open)
            level = level[is_open]
        return best

    def _first(self, number: int, weight: float, start: Optimum | None) -> tuple[Point, float]:
        """Return the start and its level, from which w v, and S Z above the weight, decrease, of one problem."""
        if start is not None:
            point = start.point
            level = max(weight, start.weight)
        else:
            A = self.A[number]
            B = self.B[number]
            z = self.z[number]
            n = A.shape[1] // SYMMETRIC
            k = B.shape[1]
            ones = np.tile(np.eye(4), (n, 1, 1))
            image = A @ svec(ones)
            # Interior-point methods come down well and climb badly: start no smaller than the data's scale.
            scale = np.linalg.norm(z)
            known = np.linalg.norm(image)
            size = max(1.0, scale / known) if known > _SMALLEST_IMAGE * scale else 1.0
            residual = size * image - z
            slope = np.abs(np.linalg.eigvalsh(smat(A.T @ residual))).max()
            pull = np.max(np.abs(B.T @ residual), initial=0.0)
            level = max(weight, size * slope, pull**2)
            point = Point(
                np.sqrt(size) * ones[None],
                np.sqrt(level / size) * ones[None],
                np.zeros((1, k)),
                np.zeros((1, k)),
            )
        # The point with the same w − v for which w v equals the level.
        half = 0.5 * np.abs(point.w - point.v)
        large = half + np.hypot(half, np.sqrt(level))
        w = np.where(point.w > point.v, large, level / large)
        return Point(point.factor, point.dual_factor, w, level / w), level

    def _best_w(self, coordinates: NDArray) -> NDArray:
        """Return the best w (F, k) for given svec(S) (F, 10 n)."""
        rest = self.z - _times(self.A, coordinates)
        if not self.B.shape[2]:
            return np.zeros((len(rest), 0))
        return np.array([nnls(B, right)[0] for B, right in zip(self.B, rest, strict=True)])

    def _values_and_gaps(self, point: Point, w: NDArray, weight: float) -> tuple[NDArray, NDArray]:
        """Return the objectives (F,) at S and its best w, and upper bounds (F,) of their distances to the minimum.

        The dual is max −½ νᵀν − νᵀz + γ Σ log det(1 + smat(Aᵀν)_i / γ) over ν with Bᵀν ≥ 0. The residual r of the best
        w fulfils the constraint. With ν = τ r, τ = 1 or as large as the logarithm allows, primal minus dual is the sum
        of the positive terms below, free of cancellation.
        """
        residual = _times(self.A, point.coordinates) + _times(self.B, w) - self.z
        squares = np.einsum("fm,fm->f", residual, residual)
        slope = smat(_times(_transposed(self.A), residual)) / weight
        lowest = np.linalg.eigvalsh(slope).min(axis=(1, 2))
        tau = np.where(lowest > -1, 1.0, -(1 - 1e-9) / np.minimum(lowest, -1.0))
        own = _transposed(point.factor) @ point.factor
        scaled = _transposed(point.factor) @ slope @ point.factor
        products = np.linalg.eigvalsh(own + tau[:, None, None, None] * scaled)
        values = 0.5 * squares + weight * _entropy(np.linalg.svd(point.factor, compute_uv=False) ** 2)
        is_bounded = products.min(axis=(1, 2)) > 0
        entropy = _entropy(np.where(is_bounded[:, None, None], products, 1.0))
        active = tau * np.einsum("fk,fk->f", _times(_transposed(self.B), residual), w)
        gaps = 0.5 * (1 - tau) ** 2 * squares + weight * entropy + np.maximum(active, 0.0)
        return values, np.where(is_bounded, gaps, np.inf)


class _Scaled:
    """The Newton systems at one point of each problem in Nesterov-Todd scaling: S = C Λ Cᵀ, Z = C⁻ᵀ Λ C⁻¹."""

    def __init__(self, data: NDArray, residual: NDArray, point: Point, weight: float, level: NDArray):
        self.weight = weight
        self.level = level
        self.residual = residual
        left, self.spread, right = np.linalg.svd(_transposed(point.dual_factor) @ point.factor)
        root = np.sqrt(self.spread)[..., None, :]
        self.outer = root * _transposed(root)
        self.scaling = point.factor @ _transposed(right) / root
        self.dual_scaling = point.dual_factor @ left / root
        self.scaling_w = np.sqrt(point.w / point.v)
        self.spread_w = np.sqrt(point.w * point.v)
        self.diagonal = self.spread[..., None] * np.eye(4)
        self.trace = weight * _transposed(self.scaling) @ self.scaling

        count, rows, size = data.shape
        n = self.spread.shape[1]
        self.size = n * SYMMETRIC
        images = self.scaling[:, :, None] @ BASIS @ _transposed(self.scaling)[:, :, None]
        maps = _FLAT @ _transposed(images.reshape(count, n, SYMMETRIC, 16))
        scaled = np.empty((count, rows, size))
        blocks = data[:, :, : self.size].reshape(count, rows, n, SYMMETRIC)
        np.matmul(
            blocks.transpose(0, 2, 1, 3),
            maps,
            out=scaled[:, :, : self.size].reshape(count, rows, n, SYMMETRIC).transpose(0, 2, 1, 3),
        )
        scaled[:, :, self.size :] = data[:, :, self.size :] * self.scaling_w[:, None, :]
        # The QR of the unit matrix above the scaled data leaves the zeros of the unit matrix alone.
        self.factors = [dtpqrt(0, min(_QR_BLOCK, size), np.eye(size), matrix)[:3] for matrix in scaled]

    def step(self) -> tuple[Point, NDArray]:
        """Take a predictor and a corrector step; where it is too short, one without the second-order term."""
        still = np.zeros_like(self.diagonal), np.zeros_like(self.spread_w)
        affine = self._direction(np.zeros_like(self.level), *still)
        reach = self._reach(affine)
        # The second-order term holds as far as the predictor can be followed.
        squared = reach[:, None] ** 2
        product = 0.5 * squared[..., None, None] * (affine[0] @ affine[1] + affine[1] @ affine[0])
        sigma = np.maximum((1 - reach) ** 3, 1e-9)
        point, level, length = self._follow(
            self._direction(sigma * self.level, product, squared * affine[2] * affine[3]), sigma
        )
        for careful in (np.maximum(sigma, 0.5), np.ones_like(sigma)):
            is_short = length < _USEFUL_STEP
            if not is_short.any():
                break
            other, other_level, other_length = self._follow(self._direction(careful * self.level, *still), careful)
            point = _joined([(other if short else point).of(slice(i, i + 1)) for i, short in enumerate(is_short)])
            level = np.where(is_short, other_level, level)
            length = np.where(is_short, other_length, length)
        return point, level

    def _direction(self, level: NDArray, product: NDArray, product_w: NDArray) -> tuple[NDArray, ...]:
        """Return the scaled steps of S, Z, w, v towards S Z = max(γ, level), w v = level.

        The products are of second order: their matrices and their numbers.
        """
        mean = 0.5 * (self.spread[..., :, None] + self.spread[..., None, :])
        target = np.maximum(self.weight, level)[:, None, None, None] * np.eye(4)
        both = (target - self.diagonal**2 - product) / mean
        both_w = (level[:, None] - self.spread_w**2 - product_w) / self.spread_w
        barrier = np.concatenate([svec(self.diagonal + both - self.trace), self.spread_w + both_w], axis=1)
        problems = zip(self.factors, barrier, -self.residual, strict=True)
        step = np.array([_least_squares(*problem) for problem in problems])
        matrices = smat(step[:, : self.size])
        w = step[:, self.size :]
        return matrices, both - matrices, w, both_w - w

    def _reach(self, steps: tuple[NDArray, ...]) -> NDArray:
        """Return the step lengths (F,), up to one, that stay inside the cones."""
        lowest = np.linalg.eigvalsh(np.stack(steps[:2]) / self.outer).min(axis=(0, 2, 3))
        lowest = np.minimum(lowest, np.min(np.stack(steps[2:]) / self.spread_w, axis=(0, 2), initial=np.inf))
        return np.minimum(1.0, -_TO_BOUNDARY / np.minimum(lowest, -_TO_BOUNDARY))

    def _follow(self, steps: tuple[NDArray, ...], sigma: NDArray) -> tuple[Point, NDArray, NDArray]:
        """Return the points along directions with all products near their target, their levels, and step lengths."""
        lowest = np.minimum(_CENTRALITY, self._centrality(self.spread, self.spread_w**2, self.level))
        length = self._reach(steps)
        while True:
            level = self.level * (1 - length * (1 - sigma))
            factor, dual_factor = np.linalg.cholesky(self.diagonal + length[:, None, None, None] * np.stack(steps[:2]))
            w, v = self.spread_w + length[:, None] * np.stack(steps[2:])
            spread = np.linalg.svd(_transposed(dual_factor) @ factor, compute_uv=False)
            is_far = (self._centrality(spread, w * v, level) < lowest) & (length >= _USEFUL_STEP)
            if not is_far.any():
                break
            length = np.where(is_far, 0.7 * length, length)
        point = Point(self.scaling @ factor, self.dual_scaling @ dual_factor, self.scaling_w * w, v / self.scaling_w)
        return point, level, length

    def _centrality(self, spread: NDArray, products: NDArray, level: NDArray) -> NDArray:
        """Return the smallest products (F,) of primal and dual, as fractions of their target."""
        of_matrices = spread.min(axis=(1, 2)) ** 2 / np.maximum(self.weight, level)
        return np.minimum(of_matrices, np.min(products / level[:, None], axis=1, initial=np.inf))


def _joined(points: Sequence[Point]) -> Point:
    """Return the points of all problems as one."""
    return Point(
        np.concatenate([point.factor for point in points]),
        np.concatenate([point.dual_factor for point in points]),
        np.concatenate([point.w for point in points]),
        np.concatenate([point.v for point in points]),
    )


def _least_squares(factors: Sequence[NDArray], barrier: NDArray, data: NDArray) -> NDArray:
    """Return the solution (p,) for the right sides of the unit matrix (p,) and of the scaled data (r,).

    Args:
        factors: QR of both: triangular matrix, reflectors and their scales.
        barrier: right side of the unit matrix.
        data: right side of the scaled data.
    """
    triangle, reflectors, scales = factors
    rotated = dtpmqrt(0, reflectors, scales, barrier[:, None], data[:, None], trans="T")[0]
    return dtrtrs(triangle, rotated)[0][:, 0]


def _times(matrices: NDArray, vectors: NDArray) -> NDArray:
    """Return the products (F, m) of matrices (F, m, p) and vectors (F, p)."""
    return (matrices @ vectors[..., None])[..., 0]


def _transposed(matrices: NDArray) -> NDArray:
    return np.swapaxes(matrices, -1, -2)


def _entropy(values: NDArray) -> NDArray:
    """Return the divergences (F,) from the unit matrix, given eigenvalues (F, n, 4)."""
    return np.sum(values - 1 - np.log(values), axis=(1, 2))
