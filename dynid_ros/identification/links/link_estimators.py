"""Estimators of base parameters, and of all parameters of the links, from the same equations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.least_squares import minimum_norm, ridge
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.robust import solve_robust
from dynid_ros.identification.equations import EquationBlock
from dynid_ros.identification.links.link_regularization import FullProblem
from dynid_ros.identification.links.sequential import sequential
from dynid_ros.model.base_parameters import BaseParameters

UNBIASED = ("weighted", "ordinary", "sequential", "huber")
"""Estimators of base parameters, by the data alone."""
REGULARIZED = ("consistent", "error_model", "ridge", "minimum_norm")
"""Estimators of all parameters of the links; base parameters are then by "weighted"."""
ESTIMATORS = (*REGULARIZED, *UNBIASED)

RIDGE = 10.0
"""Weight of ridge regression in Atkeson, An and Hollerbach 1986."""


@dataclass(frozen=True, eq=False)
class LinkEstimate:
    """Base parameters and friction.

    Attributes:
        solution: (k,) complete, to compute torques like those of the data.
        values: (k,) NaN where the data do not determine it.
        covariance: (k, k) if the estimator has one of its own, else None.
        condition_number: of the columns scaled to unit norm; infinite where the rank is short.
        remarks: what the estimator has to say.
    """

    solution: NDArray
    values: NDArray
    covariance: NDArray | None
    condition_number: float
    remarks: tuple[str, ...] = ()


def estimate_base(
    kind: str, problem: WeightedProblem, base: BaseParameters, blocks: Callable[[], Iterable[EquationBlock]]
) -> tuple[LinkEstimate, NDArray]:
    """Estimate by the data alone.

    Args:
        kind: one of UNBIASED.
        problem: in base parameters.
        base: its structure.
        blocks: the equations anew, for estimators that need several passes.

    Returns:
        The estimate and the noise (n,) of each joint, N m.
    """
    fit, noise = problem.weighted()
    if kind == "ordinary":
        fit = problem.ordinary()
    if kind in ("weighted", "ordinary"):
        values = np.where(np.isfinite(fit.inflation), fit.solution, np.nan)
        return LinkEstimate(fit.solution, values, None, fit.condition_number), noise
    if kind == "huber":
        robust = solve_robust(lambda: _dense(problem, blocks()))
        share = ", ".join(f"{s:.1%}" for s in robust.outliers)
        remark = f"Huber: share of samples per joint that count less than half: {share}"
        found = LinkEstimate(robust.solution, robust.values, robust.covariance, robust.condition_number, (remark,))
        return found, robust.noise
    names = [base.names[column] for column in base.columns]
    factors = [np.column_stack(problem.joint(j)) for j in range(problem.n_joints)]
    step = sequential(factors, names, [problem.count()] * problem.n_joints)
    remarks = tuple(f"{name}: {reason}" for name, reason in step.reasons.items())
    condition = step.condition_number if step.rank == len(names) else np.inf
    return LinkEstimate(step.solution, step.values, step.covariance, condition, remarks), noise


def estimate_all(kind: str, full: FullProblem, nominal: NDArray, weight: float | None) -> NDArray:
    """All parameters of the links and friction (10 n + f,) by regularisation.

    Args:
        kind: "error_model": least change of the nominal parameters (Khosla and Kanade 1987, ε = φᵀ Δψ); "ridge": as
            Atkeson, An and Hollerbach 1986, about the nominal parameters; "minimum_norm": their pseudo-inverse, about
            zero.
        full: the equations in all parameters.
        nominal: (10 n,) of the URDF.
        weight: of ridge, whose joints are weighted alike; None: 10.
    """
    center = np.zeros(full.to_base.shape[1])
    if kind != "minimum_norm":
        center[: len(nominal)] = nominal
    if kind == "ridge":
        matrix, right = full.problem.stacked(np.ones_like(full.noise))
        return ridge(matrix @ full.to_base, right, RIDGE if weight is None else weight, center).solution
    matrix, right = full.problem.stacked(full.noise)
    return minimum_norm(matrix @ full.to_base, right, center).solution


def _dense(problem: WeightedProblem, blocks: Iterable[EquationBlock]) -> Iterator[tuple[NDArray, NDArray]]:
    for block in blocks:
        regressor = np.zeros((*block.torque.shape, problem.n_unknowns))
        for j, rows in enumerate(block.rows):
            regressor[:, j, problem.places[j]] = rows[:, problem.kept[j]]
        yield regressor, block.torque
