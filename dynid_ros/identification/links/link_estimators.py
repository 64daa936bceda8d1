"""Estimates of the base parameters by the data alone, and of links that reproduce them.

From tip to base, each joint is estimated from its own torque (Khosla and Kanade 1987, section 3).
Links before joint j do not act on its torque. So the last joint is fitted first, and its parameters are known when the
joint before it is fitted. The paper locks the joints before j (off-line) or lets them move (on-line); both are data of
joint j here. A joint seldom determines single parameters, so the knowledge so far is an affine space

    x = x₀ + N y,   N a basis of the undetermined directions,

and joint j is fitted for y alone: R_j N y = z_j − R_j x₀. Fitted to the torques minus those of nominal parameters this
is the paper's error model (eq. 11). Determined combinations never change again; a fit of all joints at once uses the
data better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import gain_shifts, robust_covariance, white_covariance, widened
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.estimation.least_squares import LinearFit, fit_with_prior
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.rank import STRUCTURE_RANK_TOLERANCE, column_norms, without_rounding
from dynid_ros.estimation.robust import solve_robust
from dynid_ros.identification.equations import EquationBlock
from dynid_ros.identification.gravity_direction import direction_of_fit, turn_covariance
from dynid_ros.identification.links.link_regularization import FullProblem, PriorWeight, choose_weight
from dynid_ros.identification.links.link_result import beyond_the_arm
from dynid_ros.identification.links.link_structure import LinkStructure
from dynid_ros.identified.gravity_direction import GravityDirection
from dynid_ros.model.base_parameters import IDENTIFIABLE, UNIDENTIFIABLE, BaseParameters


@dataclass(frozen=True)
class SequentialFit(LinearFit):
    """Sequential fit; `singular_values` are those of the joints, in the order in which they were fitted.

    Attributes:
        ranks: per joint, the number of combinations that it determines, given those of the joints after it.
        noise: per joint, the standard deviation of its torque by the residual, including errors of the joints after it;
            NaN if it was not measured.
        reasons: reason why each parameter that is NaN in `values` is undetermined, by name.
    """

    ranks: tuple[int, ...]
    noise: tuple[float, ...]
    reasons: Mapping[str, str]


def sequential(factors: Sequence[ArrayLike], names: Sequence[str], counts: Sequence[int]) -> SequentialFit:
    """Fit each joint's torque in turn, from the last to the first; undetermined parts have minimum norm.

    Args:
        factors: per joint, the rows (m_j, k + 1) of [Y_j τ_j], or their triangular factor; no rows if it was not
            measured.
        names: names of the k parameters.
        counts: per joint, the number of rows that were compressed.

    Raises:
        IdentificationError: factors of other shapes or not finite, all zero, or with too few rows to estimate their
            noise.
    """
    problems = [_checked(factor, joint, len(names)) for joint, factor in enumerate(factors)]
    if len(counts) != len(problems):
        raise IdentificationError(f"{len(counts)} row counts for the factors of {len(problems)} joints")
    scale = column_norms(np.array([np.linalg.norm(problem[:, :-1], axis=0) for problem in problems]))
    known = _Known(scale)
    steps = [known.fit(problems[joint], int(counts[joint]), joint) for joint in reversed(range(len(problems)))]
    if not any(step.singular.size for step in steps):
        raise IdentificationError("No joint's torque determines any combination of parameters; record motion")
    determined = known.determined()
    solution, covariance = known.nearest()
    return SequentialFit(
        solution=solution,
        covariance=covariance,
        determined=determined,
        scale=scale,
        condition_number=max(step.condition_number for step in steps if step.singular.size),
        singular_values=np.concatenate([step.singular for step in steps]),
        ranks=tuple(step.singular.size for step in reversed(steps)),
        noise=tuple(step.noise for step in reversed(steps)),
        reasons=_reasons(BaseParameters(determined * scale, names)),
    )


@dataclass(frozen=True)
class _Step:
    singular: NDArray
    condition_number: float
    noise: float


class _Known:
    """The affine space x₀ + N y with the covariance of x₀; N has orthonormal columns, scaled."""

    def __init__(self, scale: NDArray):
        self.point = np.zeros(scale.size)
        self.scale = scale
        self.open = np.eye(scale.size)
        self.covariance = np.zeros((scale.size, scale.size))

    def fit(self, problem: NDArray, count: int, joint: int) -> _Step:
        """Narrow the space by the equations [R z] of one joint."""
        R = problem[:, :-1]
        z = problem[:, -1]
        if not R.any() or not self.open.size:
            return self._residual(problem, count, np.zeros(0), 1.0, joint)
        scale = column_norms(R)
        matrix = R / scale
        largest = float(np.linalg.norm(matrix, ord=2))
        basis, _ = np.linalg.qr(self.open * (scale / self.scale)[:, None])
        left, singular, right = np.linalg.svd(matrix @ basis)
        rank = int(np.sum(singular > STRUCTURE_RANK_TOLERANCE * largest))
        directions = basis @ right.T / scale[:, None]
        gain = (directions[:, :rank] / singular[:rank]) @ left[:, :rank].T
        for _ in range(2):  # the second step takes the rounding errors of the first away
            self.point += gain @ (z - R @ self.point)
        step = self._residual(problem, count, singular[:rank], largest, joint)
        passed = np.eye(len(self.point)) - gain @ R
        self.covariance = passed @ self.covariance @ passed.T + step.noise**2 * gain @ gain.T
        self.open, _ = np.linalg.qr(directions[:, rank:] * self.scale[:, None])
        return step

    def _residual(self, problem: NDArray, count: int, singular: NDArray, largest: float, joint: int) -> _Step:
        squares = float(np.sum((problem[:, -1] - problem[:, :-1] @ self.point) ** 2))
        dof = count - singular.size
        if singular.size and dof < 1:
            raise IdentificationError(
                f"Joint {joint + 1}: {count} samples for {singular.size} unknown combinations do not determine "
                "their noise; record longer"
            )
        condition = float(largest / singular[-1]) if singular.size else np.nan
        return _Step(singular, condition, float(np.sqrt(squares / dof)) if dof > 0 else np.nan)

    def determined(self) -> NDArray:
        """Return orthonormal rows (r, k) orthogonal to the undetermined directions, in scaled columns."""
        complete, _ = np.linalg.qr(self.open, mode="complete")
        return complete[:, self.open.shape[1] :].T

    def nearest(self) -> tuple[NDArray, NDArray]:
        """Return the point of the space nearest to zero, and its covariance."""
        basis, _ = np.linalg.qr(self.open / self.scale[:, None])
        closed = np.eye(len(basis)) - basis @ basis.T
        return closed @ self.point, closed @ self.covariance @ closed.T


def _checked(factor: ArrayLike, joint: int, size: int) -> NDArray:
    array = np.asarray(factor, dtype=float)
    if array.ndim != 2 or array.shape[1] != size + 1:
        raise IdentificationError(
            f"Joint {joint + 1}: equations of shape {array.shape}; expected (m, {size + 1}), a column per parameter "
            "and one of torques"
        )
    if not np.isfinite(array).all():
        raise IdentificationError(
            f"Joint {joint + 1}: its equations are not finite; remove such samples before the fit"
        )
    return np.column_stack([without_rounding(array[:, :-1]), array[:, -1]])


def _reasons(found: BaseParameters) -> dict[str, str]:
    reasons = {}
    for column, (name, category) in enumerate(zip(found.names, found.categories, strict=True)):
        if category == UNIDENTIFIABLE:
            reasons[name] = "no effect on any torque of these data"
        elif category != IDENTIFIABLE:
            parts = [text for row, text in enumerate(found.expressions) if found.combinations[row, column]]
            reasons[name] = f"only in combination: {', '.join(parts)}"
    return reasons


UNBIASED = ("weighted", "ordinary", "sequential", "huber")
"""Estimators of base parameters, by the data alone."""
REGULARIZED = ("consistent", "error_model", "ridge", "minimum_norm")
"""Estimators of all parameters of the links; base parameters are then by "weighted"."""
ESTIMATORS = (*REGULARIZED, *UNBIASED)
ERROR_KINDS = ("robust", "white")

RIDGE_WEIGHT = 10.0
"""Weight of ridge regression in Atkeson, An and Hollerbach 1986."""


@dataclass(frozen=True)
class ErrorModel:
    """Errors that standard errors allow for.

    Attributes:
        kind: key of `ERROR_KINDS`: "robust" for residuals that are correlated in time and where the motion repeats,
            "white" for independent samples.
        torque_gain_error: standard deviation of the relative error of each joint's torque gain.
    """

    kind: str
    torque_gain_error: float

    def covariance(
        self, problem: WeightedProblem, weights: NDArray, noise: NDArray, solution: NDArray, noise_factor: float
    ) -> tuple[NDArray, NDArray]:
        """Return the covariance (k, k) of a solution (k,), and the degrees of freedom (k,) of the variances."""
        if self.kind == "robust":
            return robust_covariance(problem, weights, noise, solution, self.torque_gain_error)
        return white_covariance(problem, weights, noise * noise_factor, self.torque_gain_error)


@dataclass(frozen=True, eq=False)
class BaseFit:
    """Least-squares fit of the base parameters.

    Attributes:
        estimate: values, covariance and degrees of freedom of the base parameters.
        solution: (k,) complete solution, to compute torques like those of the data.
        noise: (n,) standard deviation of each joint's equations, N m (N).
        links: (10 n,) parameters with the torques of the base parameters, all other parameters zero.
        condition_number: condition number of the columns scaled to unit norm; infinite if rank-deficient.
        direction: direction of gravity with its covariance; None: it was given.
        remarks: sentences of the estimator.
    """

    estimate: BaseEstimate
    solution: NDArray
    noise: NDArray
    links: NDArray
    condition_number: float
    direction: GravityDirection | None
    remarks: tuple[str, ...]


def estimate_base_parameters(structure: LinkStructure, estimator: str, error_model: ErrorModel) -> BaseFit:
    """Estimate the base parameters by the data alone, and the turns of gravity with them.

    Args:
        structure: columns of the equations.
        estimator: key of `ESTIMATORS`; regularized estimators use "weighted" here.
        error_model: errors that the covariance allows for.
    """
    base = structure.base
    problem = structure.fitted_problem
    columns = structure.columns
    kind = estimator if estimator in UNBIASED else "weighted"
    fit, noise = solve_unbiased(kind, problem, base, lambda: structure.data.equations.blocks(columns))
    weights = np.ones_like(noise) if estimator == "ordinary" else noise
    noise_factor = structure.data.equations.noise_factor
    covariance, dof = error_model.covariance(problem, weights, noise, fit.solution, noise_factor)
    direction = structure.imu_direction
    if direction is not None:
        covariance += turn_covariance(structure.turned_problem, weights, direction)
    elif structure.estimates_gravity:
        direction = direction_of_fit(structure.robot, fit.solution, covariance, dof)
    size = len(structure.independent)
    covariance = covariance[:size, :size]
    estimate = BaseEstimate(
        names=tuple(base.names[column] for column in base.columns),
        expressions=base.expressions,
        values=fit.values[:size],
        covariance=covariance if fit.covariance is None else widened(fit.covariance, covariance),
        nominal=_nominal_values(structure),
        dof=dof[:size],
        gain_shifts=gain_shifts(problem, weights)[:, :size],
        gain_error=error_model.torque_gain_error,
    )
    unknown = beyond_the_arm(columns, structure.joints, estimate, problem.torque_rms())
    links = np.zeros(structure.robot.parameters.size)
    inertial = base.columns[base.columns < links.size]
    links[inertial] = fit.solution[: len(inertial)]
    return BaseFit(
        replace(estimate, values=np.where(unknown, np.nan, estimate.values)),
        fit.solution[:size],
        noise,
        links,
        fit.condition_number,
        direction,
        fit.remarks,
    )


def _nominal_values(structure: LinkStructure) -> NDArray:
    """Return the base parameters (k,) of the URDF; NaN for combinations with a rotor or friction."""
    base = structure.base
    nominal = structure.robot.parameters
    parameters = np.pad(nominal, (0, len(base.names) - nominal.size))
    mixed = np.any(base.combinations[:, nominal.size :] != 0.0, axis=1)
    return np.where(mixed, np.nan, base.project(parameters))


@dataclass(frozen=True, eq=False)
class UnbiasedSolution:
    """Solution of one of the `UNBIASED` estimators.

    Attributes:
        solution: (k,) complete solution.
        values: (k,) solution, NaN where the data do not determine it.
        covariance: (k, k) if the estimator has a covariance of its own, otherwise None.
        condition_number: as in `BaseFit`.
        remarks: sentences of the estimator.
    """

    solution: NDArray
    values: NDArray
    covariance: NDArray | None
    condition_number: float
    remarks: tuple[str, ...] = ()


def solve_unbiased(
    kind: str, problem: WeightedProblem, base: BaseParameters, blocks: Callable[[], Iterable[EquationBlock]]
) -> tuple[UnbiasedSolution, NDArray]:
    """Estimate base parameters by the data alone.

    Args:
        kind: key of `UNBIASED`.
        problem: equations of the unknowns.
        base: base parameters, for their names.
        blocks: function that returns the equations, once per pass.

    Returns:
        The solution, and the noise (n,) of each joint, N m (N).
    """
    fit, noise = problem.weighted()
    if kind in ("weighted", "ordinary"):
        fit = fit if kind == "weighted" else problem.ordinary()
        values = np.where(np.isfinite(fit.inflation), fit.solution, np.nan)
        return UnbiasedSolution(fit.solution, values, None, fit.condition_number), noise
    if kind == "huber":
        robust = solve_robust(lambda: _dense(problem, blocks()))
        share = ", ".join(f"{share:.1%}" for share in robust.outliers)
        remark = f"Huber: share of samples per joint that count less than half: {share}"
        solution = UnbiasedSolution(
            robust.solution, robust.values, robust.covariance, robust.condition_number, (remark,)
        )
        return solution, robust.noise
    names = [base.names[column] for column in base.columns]
    factors = [np.column_stack(problem.joint(j)) for j in range(problem.n_joints)]
    steps = sequential(factors, names, [problem.count()] * problem.n_joints)
    remarks = tuple(f"{name}: {reason}" for name, reason in steps.reasons.items())
    condition = steps.condition_number if steps.rank == len(names) else np.inf
    return UnbiasedSolution(steps.solution, steps.values, steps.covariance, condition, remarks), noise


def _dense(problem: WeightedProblem, blocks: Iterable[EquationBlock]) -> Iterator[tuple[NDArray, NDArray]]:
    for block in blocks:
        regressor = np.zeros((*block.torque.shape, problem.n_unknowns))
        for j, rows in enumerate(block.rows):
            regressor[:, j, problem.places[j]] = rows[:, problem.kept[j]]
        yield regressor, block.torque


@dataclass(frozen=True, eq=False)
class LinkFit:
    """Parameters of all links and friction, and the URDF's links with friction that fits them best.

    Attributes:
        solution: (10 n + f,) parameters of the links, then friction coefficients.
        urdf_solution: (10 n + f,) parameters of the URDF, then friction coefficients.
        weight: weight of the URDF, with the held-out loss of each weight that was tried.
        residual_rms: (n,) RMS residual of `solution`, N m (N).
        urdf_residual_rms: (n,) RMS residual of `urdf_solution`, N m (N).
        covariance: (10 n, 10 n) covariance of the links of "consistent"; None: other estimators.
    """

    solution: NDArray
    urdf_solution: NDArray
    weight: PriorWeight
    residual_rms: NDArray
    urdf_residual_rms: NDArray
    covariance: NDArray | None


def estimate_links(structure: LinkStructure, base: BaseFit, estimator: str, prior_weight: float | None) -> LinkFit:
    """Estimate the parameters of all links and friction.

    Args:
        structure: columns of the equations.
        base: fit of the base parameters.
        estimator: key of `ESTIMATORS`. "consistent": physically consistent links; "error_model": least change of the
            nominal parameters (Khosla and Kanade 1987, ε = φᵀ Δψ); "ridge": Atkeson, An and Hollerbach 1986, about the
            nominal parameters; "minimum_norm": their pseudo-inverse, about zero; an `UNBIASED` estimator: the links
            nearest to the prior that have the torques of the base parameters.
        prior_weight: weight of the URDF in "consistent" (None: chosen by cross-validation) and "ridge" (None: 10).

    Raises:
        IdentificationError: no physically consistent links have such torques.
    """
    robot = structure.robot
    columns = structure.columns
    chosen = columns.chosen(structure.joints)
    nonnegative = columns.nonnegative(structure.joints)
    independent = np.isin(chosen, structure.independent)
    full = FullProblem(structure.base_problem.of(chosen), base.noise, structure.prior, nonnegative, independent)
    weight = PriorWeight(0.0, {})
    covariance = None
    if estimator == "consistent":
        weight = PriorWeight(prior_weight, {}) if prior_weight else choose_weight(full)
        solution = _consistent_solution(full, weight.weight, structure.data.sources)
        covariance = full.covariance(weight.weight, base.estimate.covariance)
    elif estimator in REGULARIZED:
        solution = solve_regularized(estimator, full, robot.parameters, prior_weight)
    else:
        identifiable = FullProblem(structure.base_problem, base.noise, structure.prior, nonnegative[independent])
        n_links = robot.parameters.size
        friction = structure.base.columns[structure.base.columns >= n_links]
        solution = np.zeros(full.to_base.shape[1])
        solution[[*range(n_links), *friction]] = identifiable.nearest(base.solution)
    urdf_solution = full.with_links(robot.parameters)
    residual_rms, urdf_residual_rms = full.problem.residual_rms([full.reduce(x) for x in (solution, urdf_solution)])
    return LinkFit(solution, urdf_solution, weight, residual_rms, urdf_residual_rms, covariance)


def _consistent_solution(full: FullProblem, weight: float, sources: Iterable[str]) -> NDArray:
    try:
        return full.consistent().solve(weight).solution
    except IdentificationError as error:
        raise IdentificationError(
            f"{', '.join(sources)}: no links of about the URDF's size have such torques ({error}); look at units, "
            "signs and the order of the joints"
        ) from error


def solve_regularized(kind: str, full: FullProblem, nominal: NDArray, weight: float | None) -> NDArray:
    """Return all parameters (10 n + f,) by a regularization towards nominal parameters (10 n,), or towards zero."""
    center = np.zeros(full.to_base.shape[1])
    if kind != "minimum_norm":
        center[: len(nominal)] = nominal
    if kind == "ridge":
        matrix, right = full.problem.stacked(np.ones_like(full.noise))
        ridge_weight = RIDGE_WEIGHT if weight is None else weight
        return fit_with_prior(matrix @ full.to_base, right, center, weight=ridge_weight).solution
    matrix, right = full.problem.stacked(full.noise)
    return fit_with_prior(matrix @ full.to_base, right, center).solution
