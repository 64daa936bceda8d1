"""Least squares for a load, whatever measures it: joint torques or a wrist sensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid_ros.estimation.covariance import KnownColumns, clustered_covariance, known_errors, known_sides
from dynid_ros.estimation.normal_equations import LinkProblem
from dynid_ros.identification.equations import Equations
from dynid_ros.identification.load.estimate import LoadColumns, LoadFit, check_freedom, estimate
from dynid_ros.identification.load.rests import fit_rests
from dynid_ros.identification.load.steadiness import require_steady


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

    Standard errors allow for residuals that are alike wherever the motion is (`link_covariance`), for a wrong gain of
    each channel, and for what is not known of the arm (`known_errors`).

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
    problem = LinkProblem(equations.factors(columns), columns.own)
    if not problem.factors.kinds:
        return fit_rests(equations, columns, channels, gain_error, arm)
    n_samples = problem.count()
    check_freedom(n_samples * len(channels) - columns.own.size, n_samples, channels, columns)
    fit, noise = problem.weighted()
    loosened = equations.loosened(noise)
    if loosened is not equations:
        equations, problem = loosened, LinkProblem(loosened.factors(columns), columns.own)
        fit, noise = problem.weighted()
    require_steady(equations, problem, noise, source)
    size = columns.own.size
    both = LinkProblem(problem.factors, np.concatenate([columns.own, columns.of_arm]))
    kinds = [
        (j, np.column_stack(both.kind_gram(j, kind)) / sigma**2)
        for kind in problem.factors.kinds
        for j, sigma in enumerate(noise)
    ]
    seen, freedom = clustered_covariance(
        [(j, gram[:size, :size], gram[:size, -1]) for j, gram in kinds],
        np.ones(len(noise)),
        fit.solution,
        known_sides(kinds, len(noise), size, gain_error, arm) if arm is not None else None,
    )
    parts = [np.column_stack(both.joint(j)) / sigma for j, sigma in enumerate(noise)]
    covariance = seen + known_errors([part.T @ part for part in parts], size, gain_error, arm)
    with np.errstate(divide="ignore", invalid="ignore"):
        # What is known of gains and arm leaves the more degrees of freedom, the more it adds (Satterthwaite 1946).
        freedom = np.where(np.diag(seen) > 0, freedom * (np.diag(covariance) / np.diag(seen)) ** 2, freedom)
    return LoadFit(
        estimate=estimate(columns, fit, covariance, freedom),
        solution=fit.solution,
        condition_number=fit.condition_number,
        noise=noise,
        residual_rms=problem.residual_rms(fit.solution),
        signal_rms=problem.torque_rms(),
        n_samples=n_samples,
    )
