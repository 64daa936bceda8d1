"""Least squares over positive definite 4x4 matrices and non-negative numbers, with the entropy of the matrices.

minimise f(S, w) = ½ ‖A svec(S) + B w − z‖² + γ Σ (−log det S_i + tr S_i − 4) over S_i ≻ 0, w ≥ 0

This is a primal-dual interior-point method. The optimum has slacks Z_i = γ S_i⁻¹ and v ≥ 0 with w ∘ v = 0. It is the
point of the central path where the products S Z have decreased to γ and w v to zero. Both start high, which is a
continuation in the weight. Nesterov-Todd scaling makes primal and dual equal and diagonal in each iteration, and
Mehrotra's predictor chooses the decrease (Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers"). S
and Z are stored as factors, which keeps them positive definite under rounding. Each Newton step is a least-squares
problem solved by QR, which does not square the condition number of A.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
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


def svec(matrices: NDArray) -> NDArray:
    """Coordinates (10 n,) of symmetric matrices (n, 4, 4), with equal inner products."""
    return (matrices.reshape(-1, 16) @ _FLAT.T).ravel()


def smat(coordinates: NDArray) -> NDArray:
    """Symmetric matrices (n, 4, 4) of coordinates (10 n,)."""
    return (coordinates.reshape(-1, SYMMETRIC) @ _FLAT).reshape(-1, 4, 4)


@dataclass(frozen=True)
class Point:
    """Primal and dual point inside the cones.

    Attributes:
        factor: (n, 4, 4) L with S = L Lᵀ.
        dual_factor: (n, 4, 4) K with Z = K Kᵀ.
        w: (k,).
        v: (k,) slacks of w.
    """

    factor: NDArray
    dual_factor: NDArray
    w: NDArray
    v: NDArray

    @property
    def coordinates(self) -> NDArray:
        """svec(S) (10 n,)."""
        return svec(self.factor @ _transposed(self.factor))


@dataclass(frozen=True)
class Optimum:
    """The best point found for one weight.

    Attributes:
        weight: γ.
        point: where the search for another weight may start.
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
    """The problem without its weight.

    Attributes:
        A: (m, 10 n).
        B: (m, k); columns of unit length, or zero.
        z: (m,).
    """

    A: NDArray
    B: NDArray
    z: NDArray

    def solve(self, weight: float, start: Optimum | None = None, goal: float = SMALLEST_GAP) -> Optimum:
        """Minimise for one weight γ > 0, from S = 1 or from the optimum for another weight.

        Args:
            weight: γ.
            start: optimum for another weight; None: S = 1.
            goal: duality gap, as a fraction of the objective, at which the iteration ends.
        """
        k = self.B.shape[1]
        data = np.block([[self.A, self.B], [np.zeros((k, self.A.shape[1])), _RIDGE * np.eye(k)]])
        right = np.concatenate([self.z, np.zeros(k)])
        point, level = self._first(weight, start)
        best = Optimum(weight, point, self._best_w(point), np.inf, 0)
        progress = 0
        for iteration in range(1, _MAX_ITERATIONS + 1):
            residual = data @ np.concatenate([point.coordinates, point.w]) - right
            point, level = _Scaled(data, residual, point, weight, level).step()
            w = self._best_w(point)
            value, gap = self._value_and_gap(point, w, weight)
            if gap < 0.5 * best.gap or level > goal * value:
                progress = iteration
            if gap <= best.gap:
                best = Optimum(weight, point, w, gap, iteration)
            if best.gap <= goal * value or iteration - progress > _PATIENCE:
                break
        return best

    def _first(self, weight: float, start: Optimum | None) -> tuple[Point, float]:
        """Return the start and its level, from which w v, and S Z above the weight, decrease."""
        if start is not None:
            point = start.point
            level = max(weight, start.weight)
        else:
            n = self.A.shape[1] // SYMMETRIC
            k = self.B.shape[1]
            ones = np.tile(np.eye(4), (n, 1, 1))
            image = self.A @ svec(ones)
            # Interior-point methods come down well and climb badly: start no smaller than the data's scale.
            scale = np.linalg.norm(self.z)
            known = np.linalg.norm(image)
            size = max(1.0, scale / known) if known > _SMALLEST_IMAGE * scale else 1.0
            residual = size * image - self.z
            slope = np.abs(np.linalg.eigvalsh(smat(self.A.T @ residual))).max()
            pull = np.max(np.abs(self.B.T @ residual), initial=0.0)
            level = max(weight, size * slope, pull**2)
            point = Point(np.sqrt(size) * ones, np.sqrt(level / size) * ones, np.zeros(k), np.zeros(k))
        # The point with the same w − v for which w v equals the level.
        half = 0.5 * np.abs(point.w - point.v)
        large = half + np.hypot(half, np.sqrt(level))
        w = np.where(point.w > point.v, large, level / large)
        return Point(point.factor, point.dual_factor, w, level / w), level

    def _best_w(self, point: Point) -> NDArray:
        """Return the best w (k,) for the S of a point."""
        return nnls(self.B, self.z - self.A @ point.coordinates)[0] if self.B.shape[1] else np.zeros(0)

    def _value_and_gap(self, point: Point, w: NDArray, weight: float) -> tuple[float, float]:
        """Return the objective at S and its best w, and an upper bound of its distance to the minimum.

        The dual is max −½ νᵀν − νᵀz + γ Σ log det(1 + smat(Aᵀν)_i / γ) over ν with Bᵀν ≥ 0. The residual r of the best
        w fulfils the constraint. With ν = τ r, τ = 1 or as large as the logarithm allows, primal minus dual is the sum
        of the positive terms below, free of cancellation.
        """
        residual = self.A @ point.coordinates + self.B @ w - self.z
        squares = float(residual @ residual)
        slope = smat(self.A.T @ residual) / weight
        lowest = np.min(np.linalg.eigvalsh(slope))
        tau = 1.0 if lowest > -1 else -(1 - 1e-9) / lowest
        own = _transposed(point.factor) @ point.factor
        products = np.linalg.eigvalsh(own + tau * _transposed(point.factor) @ slope @ point.factor)
        value = 0.5 * squares + weight * _entropy(np.linalg.svd(point.factor, compute_uv=False) ** 2)
        if np.min(products) <= 0:
            return value, np.inf
        active = tau * float((self.B.T @ residual) @ w)
        return value, 0.5 * (1 - tau) ** 2 * squares + weight * _entropy(products) + max(active, 0.0)


class _Scaled:
    """The Newton system at one point in Nesterov-Todd scaling: S = C Λ Cᵀ, Z = C⁻ᵀ Λ C⁻¹."""

    def __init__(self, data: NDArray, residual: NDArray, point: Point, weight: float, level: float):
        self.weight = weight
        self.level = level
        self.residual = residual
        left, self.spread, right = np.linalg.svd(_transposed(point.dual_factor) @ point.factor)
        root = np.sqrt(self.spread)[:, None, :]
        self.outer = root * _transposed(root)
        self.scaling = point.factor @ _transposed(right) / root
        self.dual_scaling = point.dual_factor @ left / root
        self.scaling_w = np.sqrt(point.w / point.v)
        self.spread_w = np.sqrt(point.w * point.v)
        self.diagonal = self.spread[:, :, None] * np.eye(4)
        self.trace = weight * _transposed(self.scaling) @ self.scaling

        self.size = self.spread.size // 4 * SYMMETRIC
        images = self.scaling[:, None] @ BASIS @ _transposed(self.scaling)[:, None]
        maps = _FLAT @ _transposed(images.reshape(-1, SYMMETRIC, 16))
        blocks = np.split(data[:, : self.size], len(maps), axis=1)
        jacobian = np.hstack([block @ to for block, to in zip(blocks, maps, strict=True)])
        stacked = np.vstack([np.hstack([jacobian, data[:, self.size :] * self.scaling_w]), np.eye(data.shape[1])])
        self.orthogonal, self.triangle = qr(stacked, mode="economic", check_finite=False)

    def step(self) -> tuple[Point, float]:
        """Predictor and corrector; where they lead astray, less ambitious ones without the second-order term."""
        still = np.zeros_like(self.diagonal), np.zeros_like(self.spread_w)
        affine = self._direction(0.0, *still)
        reach = self._reach(affine)
        # The second-order term holds as far as the predictor can be followed.
        product = 0.5 * reach**2 * (affine[0] @ affine[1] + affine[1] @ affine[0])
        sigma = max((1 - reach) ** 3, 1e-9)
        for goal, second in (
            (sigma, (product, reach**2 * affine[2] * affine[3])),
            (max(sigma, 0.5), still),
            (1.0, still),
        ):
            point, level, length = self._follow(self._direction(goal * self.level, *second), goal)
            if length >= _USEFUL_STEP:
                break
        return point, level

    def _direction(self, level: float, product: NDArray, product_w: NDArray) -> tuple[NDArray, ...]:
        """Scaled steps of S, Z, w, v towards S Z = max(γ, level), w v = level, for given second-order products."""
        mean = 0.5 * (self.spread[:, :, None] + self.spread[:, None, :])
        both = (max(self.weight, level) * np.eye(4) - self.diagonal**2 - product) / mean
        both_w = (level - self.spread_w**2 - product_w) / self.spread_w
        barrier = np.concatenate([svec(self.diagonal + both - self.trace), self.spread_w + both_w])
        right = self.orthogonal.T @ np.concatenate([-self.residual, barrier])
        step = solve_triangular(self.triangle, right, check_finite=False)
        matrices = smat(step[: self.size])
        w = step[self.size :]
        return matrices, both - matrices, w, both_w - w

    def _reach(self, steps: tuple[NDArray, ...]) -> float:
        """Length, up to one, that stays inside the cones."""
        lowest = np.min(np.linalg.eigvalsh(np.stack(steps[:2]) / self.outer))
        lowest = np.min(np.stack(steps[2:]) / self.spread_w, initial=lowest)
        return min(1.0, -_TO_BOUNDARY / lowest) if lowest < 0 else 1.0

    def _follow(self, steps: tuple[NDArray, ...], sigma: float) -> tuple[Point, float, float]:
        """Return the point along a direction with all products near their target, its level, and the step length."""
        lowest = min(_CENTRALITY, self._centrality(self.spread, self.spread_w**2, self.level))
        length = self._reach(steps)
        while True:
            level = self.level * (1 - length * (1 - sigma))
            factor, dual_factor = np.linalg.cholesky(self.diagonal + length * np.stack(steps[:2]))
            w, v = self.spread_w + length * np.stack(steps[2:])
            spread = np.linalg.svd(_transposed(dual_factor) @ factor, compute_uv=False)
            if self._centrality(spread, w * v, level) >= lowest or length < _USEFUL_STEP:
                break
            length *= 0.7
        point = Point(self.scaling @ factor, self.dual_scaling @ dual_factor, self.scaling_w * w, v / self.scaling_w)
        return point, level, length

    def _centrality(self, spread: NDArray, products: NDArray, level: float) -> float:
        """Return the smallest product of primal and dual, as a fraction of its target."""
        return float(np.min(products / level, initial=np.min(spread**2) / max(self.weight, level)))


def _transposed(matrices: NDArray) -> NDArray:
    return np.swapaxes(matrices, -1, -2)


def _entropy(values: NDArray) -> float:
    return float(np.sum(values - 1 - np.log(values)))
