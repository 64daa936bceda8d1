"""Least squares for a load, whatever measures it, and its equations from joint torques."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import (
    KnownColumns,
    clustered_covariance,
    known_errors,
    known_sides,
    sample_jackknife,
)
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.estimation.least_squares import MIN_GROUP_DOF, LeastSquaresFit, solve_grouped
from dynid_ros.estimation.normal_equations import Columns, WeightedProblem
from dynid_ros.estimation.rank import without_rounding
from dynid_ros.identification.change_point import require_steady
from dynid_ros.identification.equations import EquationBlock, Equations, LinkEquations, kept_rows
from dynid_ros.identification.presliding import STANDSTILL_SPEED, Presliding, looseness, stiction
from dynid_ros.identification.static_samples import SampleRules, Samples, static_samples
from dynid_ros.identified.links import KnownArm
from dynid_ros.model.friction_terms import Memory
from dynid_ros.model.inertia import LOAD_NAMES, PARAMETERS_PER_LINK, STATIC, transformed
from dynid_ros.model.regressor import RegressorRows
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSegment
from dynid_ros.signals import LowPass

# Columns of the equations of a load: its ten parameters, what changes in the joints, and those of the arm.


CHANGING_TERMS = ("offset", "coulomb", "viscous")
N_TERMS_AT_REST = 2
"""Number of these, the first, that act at rest."""


class TorqueLoadColumns:
    """Columns of the difference between the torques of an arm with a load and those of the arm alone.

    Friction changes with the load and from day to day. So each joint has an offset, Coulomb and viscous friction that
    add to those of the arm's model.

    Args:
        arm: the arm alone.
        static: whether samples are dwells, in which inertia and viscous friction do not act.

    Attributes:
        size: number of columns: load, changes in the joints, arm.
        own: (k,) fitted columns: load and changes.
        of_arm: (a,) columns in the order of the arm's covariance; empty if the arm has none.
        of_joint: for each joint the columns that its torque can depend on.
        names: (k,) names of the fitted columns.
    """

    def __init__(self, arm: KnownArm, *, static: bool = False):
        robot = arm.model.robot
        n = robot.n_joints
        self._load = np.arange(STATIC if static else PARAMETERS_PER_LINK)
        self._changes = CHANGING_TERMS[:N_TERMS_AT_REST] if static else CHANGING_TERMS
        last = np.arange(robot.parameters.size)[robot.tip_columns]
        self._links = RegressorRows(robot.chain, robot.gravity, last)
        self._to_link = transformed(np.eye(PARAMETERS_PER_LINK), robot.tip_offset).T[:, self._load]
        self._friction = arm.model.friction
        self._arm = None if arm.covariance is None else arm.columns
        changes = len(self._load) + np.arange(len(self._changes) * n).reshape(n, -1)
        self.own = np.arange(len(self._load) + changes.size)
        self.names = (
            *(LOAD_NAMES[i] for i in self._load),
            *(f"{term} {joint}" for joint in robot.joint_names for term in self._changes),
        )
        beyond = self.own.size
        self.of_arm = np.array([], dtype=int) if self._arm is None else beyond + arm.decided_columns
        self.size = beyond + (0 if self._arm is None else self._arm.size)
        of_arm = [self.of_arm] * n if self._arm is None else [beyond + columns for columns in self._arm.of_joint]
        self.of_joint = [np.concatenate([self._load, changes[j], of_arm[j]]).astype(int) for j in range(n)]

    def memory(self, q: NDArray) -> Memory:
        """Return the directions (N,) of joints whose friction has a memory, along consecutive positions (N, n)."""
        return self._friction.memory(q)

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray, memory: Memory | None = None) -> list[NDArray]:
        """Return for each joint the matrix (N, k_j) from its columns to its torque; `memory` is that of the samples."""
        memory = self.memory(q) if memory is None else memory
        directions = [
            joint.direction_model.evaluate(qd[:, j], q[:, j], memory.get(((j,), joint.sliding_length)))
            for j, joint in enumerate(self._friction.per_joint(q.shape[1]))
        ]
        return self._rows((q, qd, qdd), np.stack([np.ones_like(qd), np.transpose(directions), qd]), memory)

    def rest_rows(self, q: NDArray, direction: NDArray) -> list[NDArray]:
        """Return the matrices of `rows` for dwells, given the direction (N, n) of dry friction before them."""
        still = np.zeros_like(q)
        none = {key: np.zeros(len(q)) for key in self.memory(q)}
        return self._rows((q, still, still), np.stack([np.ones_like(q), direction]), none)

    def _rows(self, motion: tuple[NDArray, NDArray, NDArray], changes: NDArray, memory: Memory) -> list[NDArray]:
        n_samples, n = motion[0].shape
        matrix = np.zeros((n, PARAMETERS_PER_LINK, n_samples))
        self._links.fill(matrix, *motion)
        arm = [np.empty((n_samples, 0))] * n if self._arm is None else self._arm.rows(*motion, memory)
        return [np.column_stack([matrix[j].T @ self._to_link, changes[:, :, j].T, arm[j]]) for j in range(n)]


MIN_STANDSTILL_SHARE = 0.05
"""Share of time with all joints at standstill from which a motion counts as one with dwells; the standstill at its
beginning and end is less."""
MIN_HELD_SHARE = 0.5
"""Share of the time for which a joint stands that is held."""
MIN_EFFECTIVE_SAMPLES = 10.0
"""Samples of a joint, by weight, below which it does not show how large its noise is."""


class LoadEquations(LinkEquations[TorqueLoadColumns]):
    """Equations of motion: torque less the arm's own, and every column, low-passed as the arm's identification does."""

    def __init__(self, arm: KnownArm, recordings: Sequence[Recording]):
        super().__init__(arm.model.signals, recordings)
        self.segments = [
            replace(part, torque=part.torque - self.signals.reported(arm.model.predict(*part.motion), part.rate))
            for part in self.segments
        ]
        self._stiction = stiction(arm.model)
        self._weights: list[NDArray] | None = None

    def loosened(self, noise: NDArray) -> LoadEquations:
        """Return equations with less weight where a joint's friction is unknown: at standstill and while it starts.

        Stiction counts as noise there, and a whole standstill as one sample. A joint is left out if this leaves too few
        samples to estimate its noise. A motion without dwells keeps its weights: its friction reverses in the way that
        the identification of the arm has seen.
        """
        stands = np.concatenate([np.abs(part.motion.velocity) < STANDSTILL_SPEED for part in self.segments])
        if np.mean(stands.all(axis=1)) < MIN_STANDSTILL_SHARE and stands.mean(axis=0).max() < MIN_HELD_SHARE:
            return self
        weights = []
        for part, low_pass in self._filtered():
            unknown = Presliding().unknown(part.motion.position, part.motion.velocity).astype(float)
            shares = low_pass.filter(unknown)[kept_rows(part, low_pass)]
            rests = np.zeros(len(noise))
            found = np.empty_like(shares)
            for k, share in enumerate(np.clip(shares, 0.0, 1.0)):
                loose, rests = looseness(share, rests, self._stiction / noise)
                found[k] = 1.0 / loose
            weights.append(found)
        worth = sum(np.sum(own**2, axis=0) for own in weights)
        shown = worth >= MIN_EFFECTIVE_SAMPLES
        other = copy(self)
        other._weights = [np.where(shown, own, 0.0) for own in weights]
        other.share = np.where(shown, worth / self.n_samples, 0.0)
        return other

    def _block(
        self,
        columns: TorqueLoadColumns,
        recording: int,
        part: LinkSegment,
        low_pass: LowPass,
        kept: NDArray,
        *,
        memory: Memory,
    ) -> EquationBlock:
        block = super()._block(columns, recording, part, low_pass, kept, memory=memory)
        if self._weights is None:
            return block
        number = next(k for k, other in enumerate(self.segments) if other is part)
        first = np.arange(len(part.time))[kept_rows(part, low_pass)]
        weights = self._weights[number][np.searchsorted(first, kept)]
        rows = [matrix * own[:, None] for matrix, own in zip(block.rows, weights.T, strict=True)]
        return replace(block, rows=rows, torque=block.torque * weights)


class StaticLoadEquations(Equations[TorqueLoadColumns]):
    """Equations of dwells: their mean torques less the arm's gravity torque and offsets.

    Attributes:
        samples: one for each rest.

    Raises:
        IdentificationError: no joint rests long enough.
    """

    def __init__(self, arm: KnownArm, recordings: Sequence[Recording], rules: SampleRules):
        parts = [static_samples(recording, rules) for recording in recordings]
        self.samples = Samples.join(parts)
        if not len(self.samples):
            raise IdentificationError(
                f"{', '.join(recording.source for recording in recordings)}: no rest of at least "
                f"{rules.minimum_dwell:g} s; record poses with dwells, or identify from motion"
            )
        self._arm = arm
        self.sizes = [len(part) for part in parts]
        self.spans = [(recording.time[0], recording.time[-1]) for recording in recordings]

    def blocks(self, columns: TorqueLoadColumns) -> Iterator[EquationBlock]:
        """Yield all equations."""
        for recording in np.flatnonzero(self.sizes).tolist():
            rests = self.samples.take(np.flatnonzero(self.samples.part == recording))
            still = np.zeros_like(rests.position)
            # Each dwell stands alone: the direction of dry friction before it is a column.
            torque = rests.torque - self._arm.model.predict(rests.position, still, still, range(len(rests)))
            rows = columns.rest_rows(rests.position, rests.direction)
            yield EquationBlock(recording, rests.time, np.zeros(len(rests)), None, rows, torque)


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
        channels: names of the joints, or of the axes of a wrench.
        known: coefficients of `of_arm` that are known with a covariance; None: there are none.
        gain_error: standard deviation of the relative error of each channel's gain.
        remarks: sentences on choices.
        faults: faults of a sensor for which the readings were corrected.
        sensor_turn: (3, 3) axes of the wrist sensor in the tip's, as columns; None: joint torques are fitted.
    """

    equations: Equations
    columns: LoadColumns
    channels: tuple[str, ...]
    known: KnownColumns | None = None
    gain_error: float = 0.0
    remarks: tuple[str, ...] = ()
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

    `seen` (k, k), by the residuals, has `dof` (k,); the total covariance holds the known errors of gains and arm too.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.diag(seen) > 0, dof * (np.diag(covariance) / np.diag(seen)) ** 2, dof)


# Least squares for a load from few samples that are independent of each other: rests.


def fit_rests(problem: LoadProblem) -> LoadFit:
    """Fit few samples that are independent of each other; errors as of `fit_load`."""
    columns = problem.columns
    channels = problem.channels
    blocks = list(problem.equations.blocks(columns))
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
    covariance = seen + known_errors(grams, columns.own.size, problem.gain_error, problem.known)
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


def fit_load(problem: LoadProblem, source: str = "the recording") -> LoadFit:
    """Fit a load, each channel weighted by its noise.

    Standard errors allow for residuals that are correlated wherever the motion is alike (`clustered_covariance`), for a
    wrong gain of each channel, and for the errors of the arm's model (`known_errors`).

    Args:
        problem: equations of the load.
        source: name of the recordings, for messages.

    Raises:
        IdentificationError: too few samples for the unknowns and their errors, or a load that changed.
    """
    equations = problem.equations
    columns = problem.columns
    channels = problem.channels
    gain_error = problem.gain_error
    arm = problem.known
    weighted = WeightedProblem(equations.factors(columns), columns.own)
    if not weighted.factors.kinds:
        return fit_rests(problem)
    n_samples = weighted.count()
    check_freedom(n_samples * len(channels) - columns.own.size, n_samples, channels, columns)
    fit, noise = weighted.weighted()
    loosened = equations.loosened(noise)
    if loosened is not equations:
        equations = loosened
        weighted = WeightedProblem(loosened.factors(columns), columns.own)
        fit, noise = weighted.weighted()
    require_steady(equations, weighted, noise, source)
    size = columns.own.size
    both = WeightedProblem(weighted.factors, np.concatenate([columns.own, columns.of_arm]))
    kinds = [
        (j, np.column_stack(both.kind_gram(j, kind)) / sigma**2)
        for kind in weighted.factors.kinds
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
        residual_rms=weighted.residual_rms(fit.solution),
        signal_rms=weighted.torque_rms(),
        n_samples=n_samples,
    )
