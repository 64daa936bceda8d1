"""Estimates of on-line identification at one instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import MAX_DOF, clustered_covariance, covariance_root
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.estimation.rank import half_inverse
from dynid_ros.estimation.recursive_least_squares import SquareRootInformation
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.identification.online.kinds import KindSums
from dynid_ros.identification.online.online_equations import LinkRows, LoadRows
from dynid_ros.identification.physical_consistency import ConsistentFit, ConsistentProblem
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import possible_prior

MAX_STANDARD_ERROR = 100.0
"""Standard error, SI units, above which nothing is decided: 100 kg, 100 kg m."""

INITIAL_DOF = 4.0
"""Number of equations of each joint that its stated noise counts as."""


@dataclass(frozen=True, eq=False)
class OnlineEstimate:
    """Parameters at the time `time`.

    Attributes:
        robot: the arm.
        time: time of the last equation, s.
        estimate: names, values (NaN where undetermined), covariance and degrees of freedom. The covariance allows for
            residuals that are correlated wherever the motion is alike (`estimation.covariance`), for wrong gains of the
            torque sensors, and for the errors of the arm's model.
        solution: (k,) complete solution of all columns.
        inflation: (k,) variances by the residuals over those of white unit noise.
        condition_number: condition number of the equations with unit columns, within the determined space.
        n_equations: number of equations of each joint since the start or the last change of the load.
        residual_rms: (n,) RMS innovation after the low-pass, N m.
        signal_rms: (n,) RMS of the fitted signal, N m.
    """

    robot: RobotModel
    time: float
    estimate: BaseEstimate
    solution: NDArray
    inflation: NDArray
    condition_number: float
    n_equations: int
    residual_rms: NDArray
    signal_rms: NDArray
    rows: LoadRows | LinkRows
    factor: tuple[NDArray, NDArray]

    @property
    def names(self) -> tuple[str, ...]:
        """(k,) names of the parameters, then of friction."""
        return self.estimate.names

    @property
    def values(self) -> NDArray:
        """(k,) NaN where the data do not decide."""
        return self.estimate.values

    @property
    def covariance(self) -> NDArray:
        """(k, k) of the values."""
        return self.estimate.covariance

    @property
    def standard_errors(self) -> NDArray:
        """(k,) NaN where the data do not decide."""
        return self.estimate.standard_errors

    @property
    def decided(self) -> NDArray:
        """(k,) bool."""
        return np.isfinite(self.values)

    @property
    def rank(self) -> int:
        """Number of parameters that are decided."""
        return int(np.sum(self.decided))

    def load(self) -> LoadResult:
        """Return the load as a result, with the parameters of a physically consistent body.

        Raises:
            IdentificationError: links are estimated, not a load.
        """
        if not isinstance(self.rows, LoadRows):
            raise IdentificationError("this estimate is of the links; estimate a load with target='load'")
        return LoadResult(
            robot=self.robot,
            estimate=self.estimate,
            solution=self.solution,
            condition_number=self.condition_number if self.decided.all() else np.inf,
            channels=self.robot.joint_names,
            residual_rms=self.residual_rms,
            signal_rms=self.signal_rms,
            n_samples=self.n_equations,
            sources=("on-line",),
            settings={"method": "online", "time": float(self.time)},
        )

    def consistent_links(self, weight: float = 1.0) -> ConsistentFit:
        """Return physically consistent links: least squares with an entropic prior about the nominal parameters.

        Args:
            weight: weight of the prior, in units of the equations' cost at their own noise.

        Raises:
            IdentificationError: a load is estimated, not the links; or the problem is not solvable with this weight.
        """
        if not isinstance(self.rows, LinkRows):
            raise IdentificationError("this estimate is of a load; see load()")
        prior, _ = possible_prior(self.robot.parameters, self.robot.link_names)
        R, z = self.factor
        noise = np.sqrt(np.nanmedian(self.inflation)) if np.isfinite(self.inflation).any() else 1.0
        matrix = R @ self.rows.base.combinations
        return ConsistentProblem(matrix / noise, z / noise, prior, link_names=self.robot.link_names).solve(weight)


def online_estimate(
    robot: RobotModel,
    rows: LoadRows | LinkRows,
    state: SquareRootInformation,
    kinds: KindSums,
    *,
    gain_error: float,
    time: float,
    n_equations: int,
    residual_rms: NDArray,
    signal_rms: NDArray,
) -> OnlineEstimate:
    """Solve the equations of `state`, with errors from the residuals in `kinds` of motion."""
    R, z = state.factor
    solution = state.solution
    half = np.linalg.solve(R, np.eye(state.size))
    known = systematic_errors(rows, gain_error)
    seen, white, dof = _seen(kinds, solution, None if rows.known is None else known)
    with np.errstate(divide="ignore", invalid="ignore"):
        inflation = np.diag(seen) / white
        # Where old equations are forgotten, not all of the information is in the kinds of motion.
        scale = np.nan_to_num(np.linalg.norm(half, axis=1) / np.sqrt(white), posinf=0.0)
        seen = seen * np.outer(scale, scale)
        # Data without noise do not determine undetermined combinations.
        open_ = ~(np.linalg.norm(half, axis=1) * np.sqrt(np.maximum(inflation, 1.0)) < MAX_STANDARD_ERROR)
        unseen = state.responses @ known
        covariance = seen + unseen @ unseen.T
        dof = np.minimum(dof * np.nan_to_num(np.diag(covariance) / np.diag(seen), nan=1.0) ** 2, MAX_DOF)
    values = np.where(open_, np.nan, solution)
    decided = state.decomposition()
    nominal = np.full(state.size, np.nan)
    if isinstance(rows, LinkRows):
        inertial = np.arange(len(rows.base.names)) < robot.parameters.size
        padded = np.zeros(len(rows.base.names))
        padded[inertial] = robot.parameters
        nominal[: rows.n_inertial] = rows.base.project(padded)[: rows.n_inertial]
    estimate = BaseEstimate(
        names=rows.names,
        expressions=rows.names,
        values=values,
        covariance=covariance,
        nominal=nominal,
        dof=np.maximum(dof, 1.0),
    )
    return OnlineEstimate(
        robot=robot,
        time=time,
        estimate=estimate,
        solution=solution,
        inflation=inflation,
        condition_number=decided.condition_number,
        n_equations=n_equations,
        residual_rms=residual_rms,
        signal_rms=signal_rms,
        rows=rows,
        factor=(R, z),
    )


def _seen(kinds: KindSums, solution: NDArray, known: NDArray | None) -> tuple[NDArray, NDArray, NDArray]:
    """Return the covariance (k, k) by the residuals, variances (k,) for white unit noise, and dof (k,)."""
    sums, weights = kinds.kinds()
    size = len(solution)
    equations = sums[..., : size + 1]
    whole = equations.sum(axis=0)
    half = half_inverse(whole[:, :-1, :-1].sum(axis=0))
    taken = np.einsum("kr,njk,jr->n", half, whole[:, :-1, :-1], half)
    signed = np.append(solution, -1.0)
    squares = np.maximum(signed @ whole @ signed, 0.0)
    noise = (squares + INITIAL_DOF) / (np.maximum(weights.sum(axis=0) - taken, 0.0) + INITIAL_DOF)
    grams = [(j, gram[:-1, :-1], gram[:-1, -1]) for kind in equations for j, gram in enumerate(kind)]
    errors = None if known is None else list((sums[..., :-1, size + 1 :] @ known).reshape(len(grams), size, -1))
    seen, dof = clustered_covariance(grams, noise, solution, errors)
    return seen, np.sum(half**2, axis=1), dof


def systematic_errors(rows: LoadRows | LinkRows, gain_error: float) -> NDArray:
    """Return the errors (c, m) of `OnlineRows.considered` by m independent errors of unit standard deviation.

    They are the errors of the arm's model and of the gains; see `known_errors`. The arm's model was found with the same
    gains.
    """
    known = rows.known
    n = len(rows.stiction)
    gains = gain_error * np.eye(n)
    if known is None or known.covariance is None:
        return gains
    of_arm = covariance_root(known.covariance)
    shifts = np.zeros((len(of_arm), n)) if known.gain_shifts is None else -gain_error * known.gain_shifts.T
    return np.block([[of_arm, shifts], [np.zeros((n, len(of_arm))), gains]])
