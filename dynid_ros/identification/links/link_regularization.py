"""The link equations in all ten parameters of each link, where bodies are possible or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from dynid_ros.estimation.cross_validation import ROUNDING_LOSS, Fold, folds
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.rank import MOTION_RANK_TOLERANCE, column_norms, decompose, half_inverse
from dynid_ros.identification.physical_consistency import ConsistentFit, ConsistentProblem, solve_together
from dynid_ros.model.inertia import parameter_spread
from dynid_ros.progress import each

FRICTION_WEIGHT = 4.0
"""Weight of friction towards zero, as if it were known to about half of its joint's RMS torque. Without it,
coefficients of terms that a part of the motion does not distinguish have any size, and so have predictions of another
part."""


class FullProblem:
    """Equations of the links' parameters and friction, (10 n + f,) in all.

    Args:
        problem: equations in base parameters and friction (k,).
        noise: (n,) noise of each joint.
        prior: (10 n,) physically possible bodies.
        nonnegative: (k,) mask of the unknowns of `problem` that cannot be negative.
        independent: (k,) mask of the unknowns that are not a combination of others. Dependent friction terms are not
            drawn to zero, or the links would take them over. None: all are independent.

    Attributes:
        problem, noise, prior: arguments.
        to_base: (k, 10 n + f) base parameters and friction = to_base @ all parameters.
    """

    def __init__(
        self,
        problem: WeightedProblem,
        noise: NDArray,
        prior: NDArray,
        nonnegative: NDArray,
        independent: NDArray | None = None,
    ):
        self.problem = problem
        self.noise = noise
        self.prior = prior
        columns = problem.factors.columns
        size = prior.size
        self._n_base = columns.n_inertial
        n_friction = problem.n_unknowns - self._n_base
        self.to_base = np.zeros((problem.n_unknowns, size + n_friction))
        self.to_base[: self._n_base, :size] = columns.base.combinations
        self.to_base[self._n_base :, size:] = np.eye(n_friction)
        self._nonnegative = nonnegative[self._n_base :]
        power = problem.factors.relative_power(columns.size)[problem.chosen]
        self._independent = np.ones(problem.n_unknowns, dtype=bool) if independent is None else independent
        drawn = nonnegative & self._independent
        self._drawn = np.diag(np.sqrt(FRICTION_WEIGHT * power * drawn))[drawn]
        self._links = columns.robot.link_names

    def consistent(self, groups: NDArray | None = None) -> ConsistentProblem:
        """Return the problem with physically consistent links, for some groups of samples or for all."""
        matrix, right = self.problem.stacked(self.noise, groups)
        bounded = [int(i) for i in self.prior.size + np.flatnonzero(self._nonnegative)]
        matrix = np.vstack([matrix, self._drawn])
        right = np.append(right, np.zeros(len(self._drawn)))
        return ConsistentProblem(matrix @ self.to_base, right, self.prior, bounded, self._links)

    def reduce(self, solution: NDArray) -> NDArray:
        """Return base parameters and friction (k,) of all parameters."""
        return self.to_base @ solution

    def covariance(self, weight: float, base_covariance: NDArray) -> NDArray:
        """Return the covariance (10 n, 10 n) of physically consistent links, which the prior draws away from the data.

        To second order the links are x = x₀ + H⁻¹ Aᵀ (z − A x₀) with H = AᵀA + γ S⁻¹ and the prior's covariance S / γ.
        Their errors are those of the base parameters b, H⁻¹ Aᵀ A δb, and those of the prior, γ H⁻¹ S⁻¹ δx₀.

        Args:
            weight: γ.
            base_covariance: (m, m) covariance of the independent unknowns by the data alone.
        """
        matrix, _ = self.problem.stacked(self.noise)
        size = self.prior.size
        data = matrix @ self.to_base
        drawn = self._drawn @ self.to_base
        penalty = np.zeros((data.shape[1], data.shape[1]))
        penalty[:size, :size] = weight * np.linalg.inv(parameter_spread(self.prior))
        half = half_inverse(data.T @ data + drawn.T @ drawn + penalty)
        to_links = half[:size] @ half.T
        shifts = to_links @ (data.T @ matrix[:, self._independent])
        return shifts @ base_covariance @ shifts.T + to_links @ penalty @ to_links.T

    def with_links(self, links: NDArray) -> NDArray:
        """Return all parameters: given links (10 n,) and the friction that fits best to them."""
        matrix, right = self.problem.stacked(self.noise)
        rest = right - matrix[:, : self._n_base] @ (self.to_base[: self._n_base, : links.size] @ links)
        own = matrix[:, self._n_base :]
        if not own.shape[1]:
            return links
        scale = column_norms(own)
        found = np.linalg.lstsq(own / scale, rest, rcond=None)[0]
        if np.any(found[self._nonnegative] < 0):
            lower = np.where(self._nonnegative, 0.0, -np.inf)
            found = lsq_linear(own / scale, rest, (lower, np.inf), method="bvls").x
        return np.concatenate([links, found / scale])

    def nearest(self, unknowns: NDArray) -> NDArray:
        """Return all parameters that predict the data as base parameters and friction (k,) do.

        Among these, the links are nearest to the prior, in units of its own size; the unit of friction is the
        coefficient that explains all torque.
        """
        matrix, right = self.problem.stacked(self.noise)
        found = decompose(matrix, MOTION_RANK_TOLERANCE)
        measured = found.right * found.scale
        size = self.prior.size
        units = np.eye(self.to_base.shape[1])
        units[:size, :size] = np.linalg.cholesky(parameter_spread(self.prior))
        units[size:, size:] *= np.linalg.norm(right) / found.scale[self._n_base :]
        start = np.append(self.prior, np.zeros(len(units) - size))
        rest = measured @ (unknowns - self.reduce(start))
        return start + units @ np.linalg.lstsq(measured @ self.to_base @ units, rest, rcond=None)[0]


# Weight of the prior, chosen by the prediction of held-out samples.


PRIOR_WEIGHTS = tuple(10.0**k for k in range(5, -2, -1))
LOSS_TOLERANCE = 0.05
"""Tolerance in the mean logarithm of the squared error: folds do not distinguish 2.5 % of the error."""
HELD_OUT_GOAL = 1e-10
"""Distance of a fold's objective to its minimum, as a fraction: the loss is then known to 1e-5."""
DEFAULT_WEIGHT = 10.0
"""Weight for samples that are too few for cross-validation."""


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
    """Return the median of the weights whose mean held-out loss is close to the best."""
    parts = folds(full.problem.factors)
    if not parts:
        return PriorWeight(DEFAULT_WEIGHT, {})
    losses = _losses(full, parts)
    shares = np.array([fold.share for fold in parts])
    scores = np.mean(np.log(np.einsum("f,fwn->wn", shares, losses)), axis=1)
    near = np.flatnonzero(scores <= scores.min() + LOSS_TOLERANCE)
    chosen = int(near[(len(near) - 1) // 2])
    compared = {w: float(score) for w, score in zip(PRIOR_WEIGHTS, scores, strict=True) if np.isfinite(score)}
    return PriorWeight(PRIOR_WEIGHTS[chosen], compared)


def _losses(full: FullProblem, parts: Sequence[Fold]) -> NDArray:
    """Return the held-out losses (F, W, n) by fold and weight, relative to the noise; infinite if rounding hides a fit.

    The folds are solved together, each from its optimum for the next larger weight.
    """
    joints = range(len(full.noise))
    losses = np.full((len(parts), len(PRIOR_WEIGHTS), len(joints)), np.inf)
    problems = [full.consistent(fold.train) for fold in parts]
    tests = [[full.problem.gram(j, fold.test) for j in joints] for fold in parts]
    counts = [full.problem.count(fold.test) for fold in parts]
    starts: dict[int, ConsistentFit | None] = dict.fromkeys(range(len(parts)))
    for number, weight in enumerate(each(PRIOR_WEIGHTS)):
        found = solve_together([problems[fold] for fold in starts], weight, list(starts.values()), HELD_OUT_GOAL)
        # Where a fold fails, smaller weights are harder still.
        fits = {fold: fit for fold, fit in zip(starts, found, strict=True) if isinstance(fit, ConsistentFit)}
        starts = dict(fits)
        if not fits:
            break
        for fold, fit in fits.items():
            x = full.reduce(fit.solution)
            squares = [x @ gram @ x - 2 * x @ right + power for gram, right, power in tests[fold]]
            least = [ROUNDING_LOSS * power for *_, power in tests[fold]]
            losses[fold, number] = np.maximum(squares, least) / (counts[fold] * full.noise**2)
    return np.maximum(losses, np.finfo(float).tiny)
