"""Weighted least squares that report which combinations of parameters the data determine, and damped ones."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError, ModelError
from dynid_ros.estimation.rank import (
    ROUNDING_RANK_TOLERANCE,
    STRUCTURE_RANK_TOLERANCE,
    decompose,
    within,
    without_rounding,
)
from dynid_ros.progress import advance

MIN_GROUP_DOF = 4
"""Degrees of freedom below which the noise of a group is not estimated again."""
MAX_GROUP_ITERATIONS = 20
VARIANCE_TOLERANCE = 1e-6
"""Relative change of the groups' standard deviations at which their estimation ends."""


def standard_errors_of(combinations: NDArray, covariance: NDArray) -> NDArray:
    """Return the standard errors (...) of combinations (..., k) of parameters with a covariance (k, k)."""
    return np.sqrt(np.maximum(np.einsum("...k,kl,...l->...", combinations, covariance, combinations), 0.0))


def triangular_factor(regressors: Iterable[NDArray]) -> NDArray:
    """Return R (at most p rows, p) of the QR decomposition of stacked regressors (..., p), in flat memory.

    Raises:
        ModelError: there are no regressors.
    """
    factor: NDArray | None = None
    for regressor in regressors:
        rows = regressor.reshape(-1, regressor.shape[-1])
        # The result is an array, which numpy's type hints do not declare for this mode.
        factor = np.asarray(np.linalg.qr(rows if factor is None else np.concatenate([factor, rows]), mode="r"))
    if factor is None:
        raise ModelError("motion: it has no samples")
    return factor


@dataclass(frozen=True)
class LinearFit:
    """Estimate of k parameters.

    Attributes:
        solution: (k,) complete solution, to compute torques of motions like those of the data. It means nothing along
            undetermined directions, see `values`.
        covariance: (k, k) of the solution within the determined space, zero along the null space.
        determined: (r, k) orthonormal rows that span the determined space, in columns divided by `scale`.
        scale: (k,) norms of the columns, 1 for an empty column.
        condition_number: condition number of the scaled columns within the determined space.
        singular_values: descending singular values of the inverted matrix.
    """

    solution: NDArray
    covariance: NDArray
    determined: NDArray
    scale: NDArray
    condition_number: float
    singular_values: NDArray

    @property
    def rank(self) -> int:
        """Number r of independent combinations that the data determine."""
        return len(self.determined)

    @property
    def values(self) -> NDArray:
        """Solution (k,), NaN for each parameter that the data do not determine by itself."""
        return self.combine(np.eye(len(self.solution)))[0]

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (k,) of `values`."""
        return self.combine(np.eye(len(self.solution)))[1]

    def combine(self, combinations: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return values and standard errors, (s,) each, of combinations (s, k); NaN where undetermined."""
        rows = np.asarray(combinations, dtype=float)
        determined = self.determines(rows)
        values = np.where(determined, rows @ self.solution, np.nan)
        return values, np.where(determined, standard_errors_of(rows, self.covariance), np.nan)

    def determines(self, combinations: ArrayLike) -> NDArray:
        """Return a mask (s,) of the combinations (s, k) that the data determine."""
        return within(np.asarray(combinations, dtype=float) / self.scale, self.determined)


def fit_with_prior(
    R: ArrayLike, z: ArrayLike, prior: ArrayLike | None = None, *, weight: float = 0.0, scaled: bool = False
) -> LinearFit:
    """Minimise ‖R θ − z‖² + d ‖θ − θ₀‖² for a rank-deficient regressor R.

    With nominal parameters θ₀ this is the error model of Khosla and Kanade (1987, eq. 11), ε = τ − Y θ₀ = Y Δθ with
    θ = θ₀ + Δθ: undetermined combinations stay nominal. Without a prior they are zero. For d = 0 the solution is the
    one nearest to the prior (Atkeson, An and Hollerbach 1986, section 2.2.1). For d > 0 it is their ridge regression
    (eq. 20), θ = θ₀ + (RᵀR + d 1)⁻¹ Rᵀ (z − R θ₀), which pulls every combination to the prior by d / (s² + d). Its
    covariance is that of a prior with standard deviation 1/√d in each parameter, so it covers the pull as far as the
    prior is that good; along the null space it is zero.

    Args:
        R: (m, k) regressor with rows of unit variance, tall or its triangular factor.
        z: (m,) right-hand side, compressed alike.
        prior: (k,) nominal parameters θ₀; None: zero.
        weight: d; the paper's 10 is for rows in N m and parameters in SI units.
        scaled: whether the distance to the prior is measured in columns of unit norm, so that it does not depend on
            units; otherwise in SI units. The rank is that of scaled columns in either case.
    """
    if not (np.isfinite(weight) and weight >= 0):
        raise IdentificationError(f"Weight of the ridge is {weight:g}; expected a positive number")
    R, z, start = _checked_problem(R, z, prior)
    parts = decompose(R, STRUCTURE_RANK_TOLERANCE)
    singular = parts.singular if scaled else np.linalg.svd(R, compute_uv=False)
    if weight:
        left, singular, right = np.linalg.svd(R, full_matrices=False)
        known = right[: len(parts.right)].T
        solution = start + right.T @ (singular / (singular**2 + weight) * (left.T @ (z - R @ start)))
        covariance = (known / (singular[: len(parts.right)] ** 2 + weight)) @ known.T
    else:
        gain = (parts.right.T * parts.inverse) @ parts.left.T / parts.scale[:, None]
        if not scaled:
            # The shortest step of all steps that have the same effect.
            basis, _ = np.linalg.qr((parts.right * parts.scale).T)
            gain = basis @ (basis.T @ gain)
        solution = start + gain @ (z - R @ start)
        covariance = gain @ gain.T
    return LinearFit(solution, covariance, parts.right, parts.scale, parts.condition_number, singular)


def _checked_problem(R: ArrayLike, z: ArrayLike, prior: ArrayLike | None) -> tuple[NDArray, NDArray, NDArray]:
    """Return matrix (m, k), right-hand side (m,) and prior (k,), compressed to at most k + 1 rows."""
    R = np.asarray(R, dtype=float)
    z = np.asarray(z, dtype=float)
    start = np.zeros(R.shape[-1]) if prior is None else np.asarray(prior, dtype=float)
    if R.ndim != 2 or z.shape != R.shape[:1] or start.shape != R.shape[1:]:
        raise IdentificationError(
            f"Regressor {R.shape}, right-hand side {z.shape} and prior {start.shape} do not fit; expected (m, k), (m,) "
            f"and (k,)"
        )
    for name, values in (("Regressor", R), ("Right-hand side", z), ("Prior", start)):
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise IdentificationError(f"{name}: row {row} is not finite; remove such samples before the fit")
    if not R.any():
        raise IdentificationError("Regressor: all entries are zero, so the data determine nothing; record motion")
    if len(R) > R.shape[1] + 1:
        factor = triangular_factor([np.column_stack([R, z])])
        R = factor[:, :-1]
        z = factor[:, -1]
    return without_rounding(R), z, start


@dataclass(frozen=True)
class LeastSquaresFit:
    """Solution of min Σ w (A x − b)² with k columns and m rows.

    Attributes:
        solution: (k,) of minimum norm in the scaled columns if the matrix is rank-deficient.
        covariance: (k, k) for weights that are inverse variances; within the determined space.
        residual: (m,) b − A x.
        leverage: (m,) diagonal of the hat matrix.
        rank: number of determined combinations.
        condition_number: condition number of the column-scaled weighted matrix; infinite if rank-deficient.
        inflation: (k,) factor by which collinearity with the other columns inflates each standard error (square root of
            the variance inflation factor); infinite for a column of an undetermined combination.
    """

    solution: NDArray
    covariance: NDArray
    residual: NDArray
    leverage: NDArray
    rank: int
    condition_number: float
    inflation: NDArray


def solve(
    matrix: NDArray, right: NDArray, weights: NDArray | None = None, tolerance: float = ROUNDING_RANK_TOLERANCE
) -> LeastSquaresFit:
    """Solve by singular value decomposition of the weighted matrix with unit columns.

    Args:
        matrix: (m, k), with m ≥ 1.
        right: (m,).
        weights: (m,) inverse variances; None: ones.
        tolerance: fraction of the largest singular value below which a singular value counts as zero.
    """
    root = np.ones(len(right)) if weights is None else np.sqrt(weights)
    parts = decompose(matrix * root[:, None], tolerance)
    half = (parts.right.T * parts.inverse) / parts.scale[:, None]
    solution = half @ (parts.left.T @ (root * right))
    rank = len(parts.right)
    in_null_space = np.sum(parts.right**2, axis=0) < 1 - 1e-6
    inflation = np.where(in_null_space, np.inf, np.linalg.norm(parts.right.T * parts.inverse, axis=1))
    return LeastSquaresFit(
        solution=solution,
        covariance=half @ half.T,
        residual=right - matrix @ solution,
        leverage=np.sum(parts.left**2, axis=1),
        rank=rank,
        condition_number=parts.condition_number if rank == matrix.shape[1] else np.inf,
        inflation=inflation,
    )


def solve_grouped(matrix: NDArray, right: NDArray, group: NDArray) -> tuple[LeastSquaresFit, NDArray]:
    """Solve feasible weighted least squares: one noise variance per group of rows, estimated with the solution.

    The variance of a group is its residual sum of squares over its degrees of freedom (rows less their leverage),
    iterated. A group with fewer than `MIN_GROUP_DOF` keeps the variance of the first, unweighted fit: with so few, the
    iteration can end in a solution that passes through all its rows and calls them exact.

    Args:
        matrix: (m, k).
        right: (m,).
        group: (m,) integers 0 … G−1.

    Returns:
        The fit, with its covariance in physical units, and the standard deviations (G,) of a row.
    """
    count = np.bincount(group)
    floor = 1e-12 * max(float(np.max(np.abs(right))), 1e-12)
    fit = solve(matrix, right)
    sigma = _group_deviation(fit, group, count, floor)
    for _ in range(MAX_GROUP_ITERATIONS):
        fit = solve(matrix, right, 1 / sigma[group] ** 2)
        dof = count - np.bincount(group, fit.leverage, len(count))
        updated = np.where(dof < MIN_GROUP_DOF, sigma, _group_deviation(fit, group, count, floor))
        converged = np.allclose(updated, sigma, rtol=VARIANCE_TOLERANCE, atol=0)
        sigma = updated
        if converged:
            break
    return solve(matrix, right, 1 / sigma[group] ** 2), sigma


def _group_deviation(fit: LeastSquaresFit, group: NDArray, count: NDArray, floor: float) -> NDArray:
    """Return the standard deviation (G,) of a row; a group that is fitted exactly has that of all rows together."""
    squares = np.bincount(group, fit.residual**2, len(count))
    dof = count - np.bincount(group, fit.leverage, len(count))
    pooled = squares.sum() / max(dof.sum(), 1e-9)
    return np.maximum(np.sqrt(np.where(dof > 0.5, squares / np.maximum(dof, 0.5), pooled)), floor)


# Damped least squares (Levenberg 1944, Marquardt 1963) with lower bounds, for costs that need not be smooth, as of
# simulated links with dry friction, which stick and slip.


State = TypeVar("State")

MAX_ITERATIONS = 30
MAX_SMALL_GAINS = 2
"""Successive decreases of the cost below the tolerance that end a search: where the cost is not smooth, predicted
decreases are too large."""
FIRST_DAMPING = 1e-3
"""Damping of the first trial step, relative to the diagonal of the information matrix."""
DAMPING_FACTOR = 10.0
"""Factor by which damping falls after a step, and rises after the first refused one; every further one is ten times as
large, so that few trial steps lead from a full step to a short one along the gradient."""
MIN_DAMPING = 1e-8


@dataclass(frozen=True)
class Minimum(Generic[State]):
    """Result of a search.

    Attributes:
        values: Parameters (p,) with the smallest cost found.
        state: State of the evaluation at these parameters.
        gain: Decrease of the cost.
    """

    values: NDArray
    state: State
    iterations: int
    gain: float


class Trial(NamedTuple):
    """Parameters (p,) whose cost a search needs next, and the finished part of the search, 0 to 1."""

    values: NDArray
    progress: float


Search = Generator[Trial, tuple[State, float], Minimum[State]]
"""Search that yields trials, receives the state and the cost of each, and returns its minimum."""


def minimize(
    searches: Sequence[Search[State]],
    evaluate: Callable[[Sequence[NDArray | None]], Sequence[tuple[State, float] | None]],
) -> list[Minimum[State]]:
    """Return the minima of independent searches whose trials are evaluated together.

    Args:
        searches: See `search`.
        evaluate: Returns the state and the cost of parameters (p,) for each search, in order; both are None for a
            search that has ended. A cost that is not finite rejects the step.
    """
    minima: dict[int, Minimum[State]] = {}
    trials: list[Trial | None] = [None] * len(searches)
    outcomes: Sequence[tuple[State, float] | None] = [None] * len(searches)
    while True:
        for k, (steps, outcome) in enumerate(zip(searches, outcomes, strict=True)):
            if k in minima:
                continue
            try:
                trials[k] = next(steps) if outcome is None else steps.send(outcome)
            except StopIteration as end:
                minima[k] = end.value
                trials[k] = None
        if len(minima) == len(searches):
            return [minima[k] for k in range(len(searches))]
        advance(min(trial.progress for trial in trials if trial))
        outcomes = evaluate([trial and trial.values for trial in trials])


def search(
    start: NDArray,
    state: State,
    cost: float,
    *,
    lower: NDArray,
    tolerance: float,
    relative_tolerance: float = 0.0,
    normal_equations: Callable[[NDArray, State], tuple[NDArray, NDArray]],
    accept: Callable[[], None] = lambda: None,
) -> Search[State]:
    """Search the minimum of a cost: a negative log-likelihood, as half the sum of squared whitened residuals is one.

    The search ends when the predicted decrease is small, no trial step that predicts more reduces the cost, gains stay
    small, or after `MAX_ITERATIONS` steps.

    Args:
        start: Parameters (p,).
        state: State at the start.
        cost: Cost at the start.
        lower: Lower bounds (p,) of the parameters.
        tolerance: Predicted decrease of the cost below which no step is tried. With a decrease of x, the minimum is the
            root of 2 x standard errors away.
        relative_tolerance: The same in parts of the cost, for costs that are far above what noise alone leaves.
        normal_equations: Returns the information matrix (p, p) and the negative gradient (p,) of the cost at parameters
            and state.
        accept: Called after each step that is taken.

    Returns:
        The parameters with the smallest cost found, their state, and the number of steps.
    """
    values = start
    first_cost = cost
    damping = FIRST_DAMPING
    largest_promise = np.nan
    small_gains = 0
    for iteration in range(MAX_ITERATIONS):
        information, gradient = normal_equations(values, state)
        scale = np.sqrt(np.diagonal(information))
        scale[scale == 0] = 1.0
        scaled = information / np.outer(scale, scale)
        at_bound = values <= lower
        # Decrease of the cost that the quadratic model predicts for a step with almost no damping.
        promise = 0.5 * gradient @ _step(scaled, scale, gradient, MIN_DAMPING, at_bound)
        least = max(tolerance, relative_tolerance * cost)
        if promise < least or small_gains == MAX_SMALL_GAINS:
            return Minimum(values, state, iteration, first_cost - cost)
        largest_promise = np.fmax(largest_promise, promise)
        # The predicted decrease falls by about the same factor in each step, so its logarithm measures the progress
        # from the largest one (0) to the tolerance (1).
        log_range = np.log(largest_promise / least)
        progress = float(np.log(largest_promise / promise) / log_range) if log_range > 0.0 else 0.0
        growth = DAMPING_FACTOR
        while True:
            step = _step(scaled, scale, gradient, damping, at_bound)
            # A damped step d predicts a decrease between gᵀd / 2 and gᵀd.
            if gradient @ step < least:
                return Minimum(values, state, iteration, first_cost - cost)
            trial = np.maximum(values + step, lower)
            trial_state, trial_cost = yield Trial(trial, progress)
            if trial_cost < cost:
                break
            damping *= growth
            growth *= DAMPING_FACTOR
        small_gains = small_gains + 1 if cost - trial_cost < least else 0
        values = trial
        state = trial_state
        cost = trial_cost
        damping = max(damping / DAMPING_FACTOR, MIN_DAMPING)
        accept()
    return Minimum(values, state, MAX_ITERATIONS, first_cost - cost)


def _step(scaled: NDArray, scale: NDArray, gradient: NDArray, damping: float, at_bound: NDArray) -> NDArray:
    """Return the damped step (p,) for an information matrix that is scaled to a unit diagonal.

    A parameter that would step below its lower bound is held there, and the step of the other parameters is solved
    again without it.
    """
    matrix = scaled + damping * np.eye(len(scale))
    free = np.ones(len(scale), dtype=bool)
    while True:
        step = np.zeros(len(scale))
        step[free] = np.linalg.solve(matrix[np.ix_(free, free)], (gradient / scale)[free]) / scale[free]
        held = free & at_bound & (step < 0.0)
        if not held.any():
            return step
        free &= ~held
