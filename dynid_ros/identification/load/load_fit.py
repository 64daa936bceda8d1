"""Least squares for a load, whatever measures it: joint torques or a wrist sensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import KnownColumns, clustered_covariance, known_errors, known_sides
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.estimation.jackknife import sample_jackknife
from dynid_ros.estimation.least_squares import MIN_GROUP_DOF, LeastSquaresFit, solve_grouped
from dynid_ros.estimation.normal_equations import Columns, WeightedProblem
from dynid_ros.estimation.rank import without_rounding
from dynid_ros.identification.change_point import require_steady
from dynid_ros.identification.equations import Equations

# Problem and result of the fit of a load.


class LoadColumns(Columns, Protocol):
    """Columns of the equations of a load.

    Attributes:
        own: (k,) fitted columns, the load's parameters first.
        of_arm: (a,) columns whose coefficients are known with a covariance.
        names: (k,) names of the fitted columns.
    """

    own: NDArray
    of_arm: NDArray
    names: tuple[str, ...]


class LoadProblem(NamedTuple):
    """Equations of a load, and the errors that their residuals do not show.

    Attributes:
        equations: equations of the load.
        columns: columns of the equations.
        channels: names of the joints, or of the axes of a wrench.
        known: coefficients that are known with a covariance; None: there are none.
        gain_error: standard deviation of the relative error of each channel's gain.
        remarks: sentences on choices.
        faults: faults of a sensor for which the readings were corrected.
        sensor_turn: (3, 3) axes of the wrist sensor in the tip's, as columns; None: joint torques are fitted.
    """

    equations: Equations
    columns: LoadColumns
    channels: tuple[str, ...]
    known: KnownColumns | None
    gain_error: float
    remarks: tuple[str, ...]
    faults: tuple[str, ...] = ()
    sensor_turn: NDArray | None = None


@dataclass(frozen=True, eq=False)
class LoadFit:
    """Least-squares fit of a load.

    Attributes:
        estimate: all unknowns, the load's first.
        solution: (k,) complete solution.
        condition_number: condition number of the weighted equations with unit columns; infinite if rank-deficient.
        noise: (c,) standard deviation of each channel's residual.
        residual_rms: (c,) RMS residual of each channel.
        signal_rms: (c,) RMS of the fitted signals.
        n_samples: number of equations of each channel.
    """

    estimate: BaseEstimate
    solution: NDArray
    condition_number: float
    noise: NDArray
    residual_rms: NDArray
    signal_rms: NDArray
    n_samples: int


def check_freedom(dof: int, n_samples: int, channels: Sequence[str], columns: LoadColumns) -> None:
    """Refuse a fit with too few equations to estimate its errors.

    Raises:
        IdentificationError: gives the number of equations.
    """
    if dof < MIN_GROUP_DOF:
        raise IdentificationError(
            f"{n_samples} samples of {', '.join(channels)} for {columns.own.size} unknowns leave {max(dof, 0)} "
            f"equations to see the errors by, at least {MIN_GROUP_DOF} are needed: record longer, or more poses"
        )


def estimate(columns: LoadColumns, fit: LeastSquaresFit, covariance: NDArray, dof: NDArray) -> BaseEstimate:
    """Return the estimate of all unknowns; undetermined values are NaN."""
    values = np.where(np.isfinite(fit.inflation), fit.solution, np.nan)
    return BaseEstimate(columns.names, columns.names, values, covariance, np.full(len(values), np.nan), dof)


def _joint_dof(seen: NDArray, covariance: NDArray, dof: NDArray) -> NDArray:
    """Return the degrees of freedom (k,) of variances that are partly known (Satterthwaite 1946).

    Args:
        seen: (k, k) covariance by the residuals.
        covariance: (k, k) total covariance, with the known errors of gains and arm.
        dof: (k,) degrees of freedom of `seen`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.diag(seen) > 0, dof * (np.diag(covariance) / np.diag(seen)) ** 2, dof)


# Least squares for a load from few samples that are independent of each other: rests.


def fit_rests(
    equations: Equations,
    columns: LoadColumns,
    channels: Sequence[str],
    gain_error: float,
    arm: KnownColumns | None,
) -> LoadFit:
    """Fit few samples that are independent of each other; arguments as of `fit_load`."""
    blocks = list(equations.blocks(columns))
    right = np.concatenate([block.torque for block in blocks])
    n_samples = len(right)
    size = max(columns.own.max(), columns.of_arm.max(initial=0)) + 1
    matrix = np.zeros((n_samples, len(channels), size))
    for j, own in enumerate(columns.of_joint):
        matrix[:, j, own] = np.concatenate([block.rows[j] for block in blocks])
    matrix = matrix.reshape(-1, size)
    group = np.tile(np.arange(len(channels)), n_samples)
    own = without_rounding(matrix[:, columns.own])
    fit, noise = solve_grouped(own, right.ravel(), group)
    check_freedom(len(group) - fit.rank, n_samples, channels, columns)
    seen = sample_jackknife(own, right.ravel(), group, fit.solution)
    whole = np.column_stack([own, matrix[:, columns.of_arm], right.ravel()]) / noise[group, None]
    grams = [whole[group == j].T @ whole[group == j] for j in range(len(channels))]
    covariance = seen + known_errors(grams, columns.own.size, gain_error, arm)
    residual = fit.residual.reshape(right.shape)
    return LoadFit(
        estimate=estimate(columns, fit, covariance, _joint_dof(seen, covariance, np.full(len(seen), n_samples - 1.0))),
        solution=fit.solution,
        condition_number=fit.condition_number,
        noise=noise,
        residual_rms=np.sqrt(np.mean(residual**2, axis=0)),
        signal_rms=np.sqrt(np.mean(right**2, axis=0)),
        n_samples=n_samples,
    )


def fit_load(
    equations: Equations,
    columns: LoadColumns,
    channels: Sequence[str],
    *,
    gain_error: float = 0.0,
    arm: KnownColumns | None = None,
    source: str = "the recording",
) -> LoadFit:
    """Fit a load, each channel weighted by its noise.

    Standard errors allow for residuals that are correlated wherever the motion is alike (`clustered_covariance`), for a
    wrong gain of each channel, and for the errors of the arm's model (`known_errors`).

    Args:
        equations: equations of the load.
        columns: columns of the equations.
        channels: names of the channels, for messages.
        gain_error: standard deviation of the relative error of each channel's gain.
        arm: model whose columns are `of_arm`; None: there is none.
        source: name of the recordings, for messages.

    Raises:
        IdentificationError: too few samples for the unknowns and their errors, or a load that changed.
    """
    problem = WeightedProblem(equations.factors(columns), columns.own)
    if not problem.factors.kinds:
        return fit_rests(equations, columns, channels, gain_error, arm)
    n_samples = problem.count()
    check_freedom(n_samples * len(channels) - columns.own.size, n_samples, channels, columns)
    fit, noise = problem.weighted()
    loosened = equations.loosened(noise)
    if loosened is not equations:
        equations = loosened
        problem = WeightedProblem(loosened.factors(columns), columns.own)
        fit, noise = problem.weighted()
    require_steady(equations, problem, noise, source)
    size = columns.own.size
    both = WeightedProblem(problem.factors, np.concatenate([columns.own, columns.of_arm]))
    kinds = [
        (j, np.column_stack(both.kind_gram(j, kind)) / sigma**2)
        for kind in problem.factors.kinds
        for j, sigma in enumerate(noise)
    ]
    seen, dof = clustered_covariance(
        [(j, gram[:size, :size], gram[:size, -1]) for j, gram in kinds],
        np.ones(len(noise)),
        fit.solution,
        known_sides(kinds, len(noise), size, gain_error, arm) if arm is not None else None,
    )
    parts = [np.column_stack(both.joint(j)) / sigma for j, sigma in enumerate(noise)]
    covariance = seen + known_errors([part.T @ part for part in parts], size, gain_error, arm)
    return LoadFit(
        estimate=estimate(columns, fit, covariance, _joint_dof(seen, covariance, dof)),
        solution=fit.solution,
        condition_number=fit.condition_number,
        noise=noise,
        residual_rms=problem.residual_rms(fit.solution),
        signal_rms=problem.torque_rms(),
        n_samples=n_samples,
    )
