"""Least squares for a load, whatever measures it: joint torques or a wrist sensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import KnownColumns, clustered_covariance, known_errors, known_sides
from dynid_ros.estimation.estimate import BaseEstimate, jackknife_covariance
from dynid_ros.estimation.least_squares import MIN_GROUP_DOF, LeastSquaresFit, solve_grouped
from dynid_ros.estimation.normal_equations import Columns, WeightedProblem
from dynid_ros.estimation.rank import without_rounding
from dynid_ros.identification.change_point import require_steady
from dynid_ros.identification.equations import Equations

# What the fit of a load takes and what it gives.


class LoadColumns(Columns, Protocol):
    """Columns of the equations of a load.

    Attributes:
        own: (k,) what is fitted, the load's parameters first.
        of_arm: (a,) columns that are known, but not exactly.
        names: (k,) of `own`.
    """

    own: NDArray
    of_arm: NDArray
    names: tuple[str, ...]


class LoadProblem(NamedTuple):
    """What is fitted.

    Attributes:
        equations: of the load.
        columns: what they consist of.
        channels: names: joints, or axes of a wrench.
        known: columns that are known, but not exactly; None: there are none.
        gain_error: standard deviation of the relative error of each channel's gain.
        remarks: choices made, one sentence each.
        faults: of a sensor, for which its readings were corrected.
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
    """What the data say.

    Attributes:
        estimate: of all unknowns, the load's first.
        solution: (k,) complete.
        condition_number: of the weighted equations with unit columns; infinite where something stays open.
        noise: (c,) RMS residual of each channel less what the fit took of it.
        residual_rms: (c,).
        signal_rms: (c,) of what was fitted.
        n_samples: equations of each channel.
    """

    estimate: BaseEstimate
    solution: NDArray
    condition_number: float
    noise: NDArray
    residual_rms: NDArray
    signal_rms: NDArray
    n_samples: int


def check_freedom(dof: int, n_samples: int, channels: Sequence[str], columns: LoadColumns) -> None:
    """Refuse what leaves too few equations to see errors by.

    Raises:
        IdentificationError: says how many there are.
    """
    if dof < MIN_GROUP_DOF:
        raise IdentificationError(
            f"{n_samples} samples of {', '.join(channels)} for {columns.own.size} unknowns leave {max(dof, 0)} "
            f"equations to see the errors by, at least {MIN_GROUP_DOF} are needed: record longer, or more poses"
        )


def estimate(columns: LoadColumns, fit: LeastSquaresFit, covariance: NDArray, dof: NDArray) -> BaseEstimate:
    """What the data say of all unknowns."""
    values = np.where(np.isfinite(fit.inflation), fit.solution, np.nan)
    return BaseEstimate(columns.names, columns.names, values, covariance, np.full(len(values), np.nan), dof)


def _joint_dof(seen: NDArray, covariance: NDArray, dof: NDArray) -> NDArray:
    """Return degrees of freedom (k,) of variances that are partly known (Satterthwaite 1946).

    Args:
        seen: (k, k) covariance that the residuals show.
        covariance: (k, k) the same with what is known of gains and arm.
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
    """As `fit_load`, of few samples that are independent of each other."""
    blocks = list(equations.blocks(columns))
    right = np.concatenate([block.torque for block in blocks])
    n_samples, size = len(right), max(columns.own.max(), columns.of_arm.max(initial=0)) + 1
    matrix = np.zeros((n_samples, len(channels), size))
    for j, own in enumerate(columns.of_joint):
        matrix[:, j, own] = np.concatenate([block.rows[j] for block in blocks])
    matrix = matrix.reshape(-1, size)
    group = np.tile(np.arange(len(channels)), n_samples)
    own = without_rounding(matrix[:, columns.own])
    fit, noise = solve_grouped(own, right.ravel(), group)
    check_freedom(len(group) - fit.rank, n_samples, channels, columns)
    seen = _jackknife(own, right.ravel(), group, fit.solution)
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


def _jackknife(matrix: NDArray, right: NDArray, group: NDArray, solution: NDArray) -> NDArray:
    """(k, k) covariance by leaving out one sample, all its channels, after the other (Tukey 1958).

    With few samples it counts that the noise of the channels, their weights, is estimated too: formulas that take it
    for known give intervals that hold the truth in 85 instead of 95 % of cases.
    """
    channels = group.max() + 1
    n_samples = len(right) // channels
    moved = []
    for sample in range(n_samples):
        kept = np.ones(n_samples, bool)
        kept[sample] = False
        rows = np.repeat(kept, channels)
        moved.append(solve_grouped(matrix[rows], right[rows], group[rows])[0].solution - solution)
    return jackknife_covariance(np.array(moved))


def fit_load(
    equations: Equations,
    columns: LoadColumns,
    channels: Sequence[str],
    *,
    gain_error: float = 0.0,
    arm: KnownColumns | None = None,
    source: str = "the recording",
) -> LoadFit:
    """Fit with each channel weighted by its own noise.

    Standard errors allow for residuals that are correlated wherever the motion is (`link_covariance`), for a wrong gain
    of each channel, and for what is not known of the arm (`known_errors`).

    Args:
        equations: of the load.
        columns: what they consist of.
        channels: names, for errors.
        gain_error: standard deviation of the relative error of each channel's gain.
        arm: whose columns `of_arm` are; None: there are none.
        source: for errors.

    Raises:
        IdentificationError: too few samples to show the unknowns and how well they are known; or a load that changed.
    """
    problem = WeightedProblem(equations.factors(columns), columns.own)
    if not problem.factors.kinds:
        return fit_rests(equations, columns, channels, gain_error, arm)
    n_samples = problem.count()
    check_freedom(n_samples * len(channels) - columns.own.size, n_samples, channels, columns)
    fit, noise = problem.weighted()
    loosened = equations.loosened(noise)
    if loosened is not equations:
        equations, problem = loosened, WeightedProblem(loosened.factors(columns), columns.own)
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
