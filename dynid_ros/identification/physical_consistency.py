"""Physically consistent inertial parameters: least squares with an entropic prior.

minimise ½ ‖R x − z‖² + γ Σ d(P_i ‖ P_i⁰) over x, with pseudo-inertias P_i ≻ 0 and friction and rotor inertia ≥ 0

d is the entropic divergence −log det(P P⁰⁻¹) + tr(P⁰⁻¹ P) − 4 of a link from its prior P⁰, which is usually its URDF
(Lee, Wensing and Park 2019, "Geometric robot dynamic identification: a convex programming approach"). It is convex,
keeps P positive definite, depends neither on frames nor on units, and keeps undetermined parameters at the prior. With
P⁰ = L Lᵀ and P = L S Lᵀ, d is the divergence of S from the identity, and the problem is solved for S.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.interior_point import BASIS, SMALLEST_GAP, EntropicLeastSquares, Optimum
from dynid_ros.estimation.least_squares import triangular_factor
from dynid_ros.estimation.rank import column_norms
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, divergence, inertial_parameters, is_possible, pseudo_inertia

_RANK_TOLERANCE = 1e-12
_ROUNDING = 1e-14
"""Fraction of the largest eigenvalue, or of the data's cost, below which a value may be a rounding error."""

_LARGEST_GAP = 1e-4
"""Largest duality gap of a solution, as a fraction of the objective."""


@dataclass(frozen=True)
class ConsistentFit:
    """Physically possible parameters, with a duality gap that proves them optimal.

    Attributes:
        weight: weight γ of the prior.
        solution: (p,) the 10 n inertial parameters, then friction and rotor parameters. Those of `nonnegative` are
            exactly zero where the bound is active; others that the data do not determine have minimum norm.
        objective: ½ ‖R x − z‖² + γ Σ divergence of each link from its prior.
        optimum: last point of the interior-point iteration, with its duality gap.
    """

    weight: float
    solution: NDArray
    objective: float
    optimum: Optimum = field(repr=False)


class ConsistentProblem:
    """Least-squares problem with the entropic prior, without the weight γ.

    Args:
        R: (m, p) regressor, whitened so that rows have unit variance; it may be compressed to the R of its QR
            decomposition. The first 10 n columns are those of the inertial parameters.
        z: (m,) right-hand side, whitened and compressed like R.
        prior: (10 n,) inertial parameters of physically possible links.
        nonnegative: columns of friction and rotor parameters that may not be negative.
        link_names: n names for errors; None: link 1 ... link n.

    Attributes:
        R, z, prior, nonnegative: as the arguments.
        n_inertial: number 10 n of inertial parameters.
        free: columns of friction and rotor parameters of any sign.

    Raises:
        IdentificationError: shapes do not fit, numbers are not finite, or the prior is physically impossible.
    """

    def __init__(
        self,
        R: ArrayLike,
        z: ArrayLike,
        prior: ArrayLike,
        nonnegative: Sequence[int] = (),
        link_names: Sequence[str] | None = None,
    ):
        self.R = np.asarray(R, float)
        self.z = np.asarray(z, float)
        self.prior = np.asarray(prior, float)
        self.n_inertial = self.prior.size
        self._check_data()
        links = self.prior.reshape(-1, PARAMETERS_PER_LINK)
        self._check_prior(links, link_names)
        p = self.R.shape[1]
        self.nonnegative = np.unique(np.asarray(nonnegative, int))
        if self.nonnegative.size and (self.nonnegative[0] < self.n_inertial or self.nonnegative[-1] >= p):
            raise IdentificationError(
                f"Non-negative parameters {self.nonnegative.tolist()}: expected columns of friction and rotor "
                f"parameters, {self.n_inertial} to {p - 1}"
            )
        self.free = np.setdiff1d(np.arange(self.n_inertial, p), self.nonnegative)

        self._factor = np.linalg.cholesky(pseudo_inertia(links))
        rotated = self.R
        right = self.z
        if len(right) > p + 1:
            triangle = triangular_factor([np.column_stack([rotated, right])])
            rotated = triangle[:, :-1]
            right = triangle[:, -1]
        # Eliminate the free parameters: project equations onto the complement of their columns.
        free = rotated[:, self.free]
        scale = column_norms(free)
        left, singular, _ = np.linalg.svd(free / scale, full_matrices=False)
        left = left[:, singular > _RANK_TOLERANCE * np.max(singular, initial=0.0)]
        rotated = rotated - left @ (left.T @ rotated)
        right = right - left @ (left.T @ right)
        images = self._factor[:, None] @ BASIS @ np.swapaxes(self._factor, 1, 2)[:, None]
        to_parameters = np.swapaxes(inertial_parameters(images), 1, 2)
        blocks = np.split(rotated[:, : self.n_inertial], len(links), axis=1)
        bounded = rotated[:, self.nonnegative]
        self._scale = column_norms(bounded)
        self._problem = EntropicLeastSquares(
            np.hstack([block @ to for block, to in zip(blocks, to_parameters, strict=True)])[None],
            (bounded / self._scale)[None],
            right[None],
        )

    def solve(self, weight: float, start: ConsistentFit | None = None, goal: float = SMALLEST_GAP) -> ConsistentFit:
        """Return the optimum for one weight γ > 0.

        Args:
            weight: γ, in units of the data's cost ½ ‖R x − z‖².
            start: fit of this problem with another weight, usually a larger one; None: start at the prior.
            goal: relative distance of the objective to its minimum at which the iteration may end.

        Raises:
            IdentificationError: the weight is not positive, or so small for data of this scale that rounding hides the
                optimum.
        """
        fit = solve_together([self], weight, [start], goal)[0]
        if isinstance(fit, IdentificationError):
            raise fit
        return fit

    def _fit(self, optimum: Optimum) -> ConsistentFit:
        """Return the fit of an optimum in the original parameters."""
        solution = np.zeros(self.R.shape[1])
        solution[: self.n_inertial] = links = self._representable(optimum.point.factor[0])
        solution[self.nonnegative] = optimum.w / self._scale
        if self.free.size:
            free = self.R[:, self.free]
            scale = column_norms(free)
            rest = self.z - self.R @ solution
            solution[self.free] = np.linalg.lstsq(free / scale, rest, rcond=_RANK_TOLERANCE)[0] / scale
        residual = self.R @ solution - self.z
        distance = divergence(links.reshape(-1, PARAMETERS_PER_LINK), self.prior.reshape(-1, PARAMETERS_PER_LINK))
        objective = 0.5 * float(residual @ residual) + optimum.weight * float(distance.sum())
        if not optimum.gap <= _LARGEST_GAP * objective + _ROUNDING * float(self.z @ self.z):
            raise IdentificationError(
                f"Consistent parameters for weight {optimum.weight:g}: objective {objective:g} may be {optimum.gap:g} "
                f"above the optimum; rounding hides the rest. Use a larger weight, or scale the data to unit noise"
            )
        return ConsistentFit(optimum.weight, solution, objective, optimum)

    def _representable(self, factor: NDArray) -> NDArray:
        """Return parameters (10 n,) of S = F Fᵀ with the `factor` F, moved to the prior as far as rounding requires."""
        half = self._factor @ factor
        links = inertial_parameters(half @ np.swapaxes(half, 1, 2))
        prior = self.prior.reshape(links.shape)
        for k in np.flatnonzero(~_survive_rounding(links)):
            exact = links[k]
            share = 1e-15
            while not _survive_rounding(links[k]) and share < 1:
                share *= 2
                links[k] = (1 - share) * exact + share * prior[k]
        return links.ravel()

    def _check_data(self) -> None:
        R = self.R
        z = self.z
        size = self.n_inertial
        if R.ndim != 2 or z.shape != R.shape[:1] or self.prior.ndim != 1 or not 0 < size <= R.shape[1]:
            raise IdentificationError(
                f"Regressor {R.shape}, right-hand side {z.shape} and prior {self.prior.shape} do not fit; expected "
                f"(m, p), (m,) and (10 n,) with 10 n ≤ p"
            )
        if size % PARAMETERS_PER_LINK:
            raise IdentificationError(f"Prior has {size} inertial parameters; expected ten for each link")
        for name, values in (("Regressor", R), ("Right-hand side", z)):
            if not np.isfinite(values).all():
                row = int(np.argwhere(~np.isfinite(values))[0, 0])
                raise IdentificationError(f"{name}: row {row} is not finite; remove such samples before the fit")

    def _check_prior(self, links: NDArray, link_names: Sequence[str] | None) -> None:
        names = [f"link {i + 1}" for i in range(len(links))] if link_names is None else list(link_names)
        if len(names) != len(links):
            raise IdentificationError(f"{len(names)} link names for a prior of {len(links)} links")
        possible = is_possible(links)
        if not possible.all():
            worst = [names[i] for i in np.flatnonzero(~possible)]
            raise IdentificationError(
                f"Prior of {', '.join(worst)}: no real body has this mass and inertia (mass and all second moments "
                f"about the centre of mass must be positive); correct the URDF or use possible_prior"
            )


def solve_consistent(
    R: ArrayLike,
    z: ArrayLike,
    prior: ArrayLike,
    weight: float,
    *,
    nonnegative: Sequence[int] = (),
    link_names: Sequence[str] | None = None,
) -> ConsistentFit:
    """Return the fit for one weight; for arguments and errors see `ConsistentProblem` and its `solve`."""
    return ConsistentProblem(R, z, prior, nonnegative, link_names).solve(weight)


def solve_together(
    problems: Sequence[ConsistentProblem],
    weight: float,
    starts: Sequence[ConsistentFit | None],
    goal: float = SMALLEST_GAP,
) -> list[ConsistentFit | IdentificationError]:
    """Return the optimum of each problem, or the error of its `solve`; much faster than one problem after the other.

    Args:
        problems: problems with the same numbers of links and parameters, such as folds of the same data.
        weight: γ of all problems.
        starts: fit of each problem with another weight, or None.
        goal: see `ConsistentProblem.solve`.

    Raises:
        IdentificationError: the weight is not positive.
    """
    if not (np.isfinite(weight) and weight > 0):
        raise IdentificationError(f"Weight of the prior is {weight:g}; expected a positive number")
    stack = EntropicLeastSquares.stack([problem._problem for problem in problems])
    optima = stack.solve(weight, [None if start is None else start.optimum for start in starts], goal)
    fits: list[ConsistentFit | IdentificationError] = []
    for problem, optimum in zip(problems, optima, strict=True):
        try:
            fits.append(problem._fit(optimum))
        except IdentificationError as error:
            fits.append(error)
    return fits


def _survive_rounding(links: NDArray) -> NDArray:
    """Return a mask (...) of the links (..., 10) that remain possible bodies despite rounding errors."""
    eigenvalues = np.linalg.eigvalsh(pseudo_inertia(links))
    return is_possible(links) & (eigenvalues[..., 0] > _ROUNDING * eigenvalues[..., -1])
