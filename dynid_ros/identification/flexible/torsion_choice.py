"""Choice of the terms of torsion by cross-validation: each set of terms predicts held-out parts of the recording.

Torsion is motor position minus link position; each term adds columns of the regressor (see `torsion_terms`). Held out
in turn are parts of time, slow or fast motion, one direction, and one half of the joint's range, because other motions
will differ in all of these. The average is over all sets of terms that predict as well as the best, within the standard
error of the difference (Bayesian model averaging, Hoeting et al. 1999, with equal weights). The spread of their
compliances is part of the uncertainty: the recording does not decide between these sets.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.stats import chi2

from dynid_ros.errors import IdentificationError, IdentifiedFileError
from dynid_ros.estimation.covariance import jackknife, jackknife_variance, time_blocks
from dynid_ros.identification.flexible.spring_fit import Stiffness
from dynid_ros.identification.flexible.torsion_terms import (
    ALWAYS,
    DRIVE,
    OWN,
    Ripple,
    Term,
    TorsionRun,
    columns,
    neighbour_term,
    torsion_run,
)
from dynid_ros.identified.flexible_joints import SavedTorsion, read_torsion
from dynid_ros.identified.identified_file import as_number, file_of
from dynid_ros.recording import Recording

MDEG = float(np.rad2deg(1e3))
"""Factor from rad to mdeg."""
DISPLAY_UNITS = {False: (MDEG, "mdeg"), True: (1e6, "µm")}
"""Factor and unit in which torsion is displayed, of revolute and prismatic joints."""


@dataclass(frozen=True, eq=False)
class TorsionModel:
    """Torsion of one joint: linear terms and ripples.

    Attributes:
        terms: Terms in the order of their columns.
        coefficients: Coefficients (k,) of the columns.
        fastest: Highest speed in the fitted recordings, rad/s or m/s.
        zero: Torsion without the terms, by the zeros of the encoders, rad or m.
        prismatic: Whether the joint slides, so that units have m and N for rad and N m.
    """

    name: str
    terms: tuple[Term, ...]
    coefficients: NDArray
    fastest: float
    zero: float
    ripples: tuple[Ripple, ...]
    prismatic: bool = field(default=False, kw_only=True)

    @property
    def display_unit(self) -> tuple[float, str]:
        """Factor and unit in which the torsion is displayed."""
        return DISPLAY_UNITS[self.prismatic]

    def smooth(self, run: TorsionRun, joint: int) -> NDArray:
        """Return the torsion (M,) by the terms, without zero and ripples."""
        return columns(run, joint, self.terms, self.fastest) @ self.coefficients

    def predict(self, run: TorsionRun, joint: int) -> NDArray:
        """Return the torsion (M,). Ripples follow the measured link position, or else the predicted one."""
        torsion = self.zero + self.smooth(run, joint)
        link = run.link[:, joint]
        angle = link if np.isfinite(link).all() else run.position[:, joint] - torsion
        return torsion + sum(ripple.values(angle) for ripple in self.ripples)


@dataclass(frozen=True, eq=False)
class TorsionValidation:
    """Recorded and predicted torsion, (n,) rad or m each; NaN for joints without a model or link position.

    Attributes:
        joint_names: Names of the n joints.
        prismatic: Names of the joints that slide.
        torsion_rms: RMS of the torsion about its mean.
        residual_rms: RMS of torsion minus prediction.
        offset: Mean of torsion minus prediction: zeros of encoders may change when they are switched on.
        centred_residual_rms: RMS of torsion minus prediction about `offset`.
        plain_residual_rms: Likewise for the prediction without ripples, whose phases change with these zeros.
    """

    recording: str
    joint_names: tuple[str, ...]
    prismatic: Collection[str]
    torsion_rms: NDArray
    residual_rms: NDArray
    offset: NDArray
    centred_residual_rms: NDArray
    plain_residual_rms: NDArray

    @property
    def unpredicted(self) -> tuple[str, ...]:
        """Joints whose torsion was not predicted."""
        return tuple(joint for joint, rms in zip(self.joint_names, self.residual_rms, strict=True) if np.isnan(rms))

    def title(self) -> str:
        """Return the line above `table`."""
        return f"Validation on {self.recording}: motor less link, predicted from the motors"

    def table(self) -> str:
        """Return a table for a terminal with one line per joint."""
        units = [DISPLAY_UNITS[joint in self.prismatic] for joint in self.joint_names]
        labels = [f"{joint} in {unit}" for joint, (_, unit) in zip(self.joint_names, units, strict=True)]
        width = max(map(len, labels)) + 2
        heads = ("torsion", "residual", "its mean", "about it", "no ripple")
        lines = [f"{'RMS':<{width}}" + "".join(f"{head:>11}" for head in heads)]
        for j in np.flatnonzero(np.isfinite(self.residual_rms)):
            numbers = (values[j] * units[j][0] for values in self._figures().values())
            lines.append(f"{labels[j]:<{width}}" + "".join(f"{number:>11.2f}" for number in numbers))
        return "\n".join(lines)

    def document(self) -> dict:
        """Return the entry of the list `torsion_validation` in `identified.yaml`."""
        return {
            "recording": self.recording,
            **{
                label: {joint: as_number(v) for joint, v in zip(self.joint_names, values, strict=True)}
                for label, values in self._figures().items()
            },
        }

    def _figures(self) -> dict[str, NDArray]:
        labels = ("torsion_rms", "residual_rms", "offset", "centred_residual_rms", "plain_residual_rms")
        return {label: getattr(self, label) for label in labels}


@dataclass(frozen=True, eq=False)
class TorsionModels:
    """Torsion of all joints that have a model.

    Attributes:
        joint_names: Names of the n joints in the order of the recordings.
        cutoff: Cutoff frequency of the low-pass, Hz.
    """

    joint_names: tuple[str, ...]
    joints: Mapping[str, TorsionModel]
    cutoff: float

    @classmethod
    def of_document(cls, document: Mapping) -> TorsionModels:
        """Read section `torsion` of an `identified.yaml`.

        Raises:
            IdentifiedFileError: The section is missing, has no coefficients, or is malformed.
        """
        names, cutoff, saved = read_torsion(document)
        return cls(names, {name: _model(document, names, name, one) for name, one in saved.items()}, cutoff)

    def predict(self, recording: Recording) -> NDArray:
        """Return motor minus link position (N, n) from motor positions and torques; NaN for joints without a model.

        Recorded link positions only determine the phase of ripples over the encoder's reading. Zeros are those of the
        fit.

        Raises:
            IdentificationError: Joints differ, a torque or samples are missing, or the recording is too short.
        """
        run = self._run(recording)
        found = np.full((len(run.time), len(self.joint_names)), np.nan)
        for name, model in self.joints.items():
            joint = self.joint_names.index(name)
            found[:, joint] = model.predict(run, joint)
        return CubicSpline(run.time, np.nan_to_num(found))(recording.time) + np.where(np.isnan(found[0]), np.nan, 0.0)

    def validate(self, recording: Recording) -> TorsionValidation:
        """Compare the prediction with the torsion of a recording that has link positions.

        Raises:
            IdentificationError: Like `predict`, or there are no link positions.
        """
        run = self._run(recording)
        figures = np.full((5, len(self.joint_names)), np.nan)
        for name, model in self.joints.items():
            joint = self.joint_names.index(name)
            torsion = run.torsion[:, joint]
            if np.isfinite(torsion).all():
                error = torsion - model.predict(run, joint)
                plain = torsion - model.smooth(run, joint)
                rms = float(np.sqrt(np.mean(error**2)))
                figures[:, joint] = np.std(torsion), rms, error.mean(), np.std(error), np.std(plain)
        if np.isnan(figures).all():
            raise IdentificationError(
                f"{recording.source}: no link position of {', '.join(self.joints)} to compare with; record the "
                "encoders behind the gears as link_position"
            )
        prismatic = [name for name, model in self.joints.items() if model.prismatic]
        return TorsionValidation(recording.source, self.joint_names, prismatic, *figures)

    def _run(self, recording: Recording) -> TorsionRun:
        if recording.joint_names != self.joint_names:
            raise IdentificationError(
                f"{recording.source}: joints are {', '.join(recording.joint_names)}; expected "
                f"{', '.join(self.joint_names)} of the fit; use Recording.select"
            )
        run = torsion_run(recording, self.cutoff)
        for name, model in self.joints.items():
            used = [self.joint_names.index(name), *(t.neighbour for t in model.terms if t.neighbour is not None)]
            missing = [self.joint_names[j] for j in used if not np.isfinite(run.torque[:, j]).all()]
            if missing:
                raise IdentificationError(f"{recording.source}: torque of {', '.join(missing)} is missing; record it")
        return run


def _model(document: Mapping, joint_names: tuple[str, ...], name: str, saved: SavedTorsion) -> TorsionModel:
    known = (*OWN, *(neighbour_term(joint_names, j, name, ()) for j in range(len(joint_names))))
    terms = tuple(term for term in known if set(term.labels) <= set(saved.coefficients))
    labels = [label for term in terms for label in term.labels]
    if unknown := set(saved.coefficients) - set(labels):
        raise IdentifiedFileError(
            f"{file_of(document)}: torsion of joint '{name}' has terms {', '.join(sorted(unknown))}, which this "
            "version does not know; identify again, or read it with the version that wrote it"
        )
    values = np.array([saved.coefficients[label] for label in labels])
    ripples = tuple(Ripple(*one) for one in saved.ripples)
    return TorsionModel(name, terms, values, saved.fastest, saved.zero, ripples, prismatic=saved.prismatic)


MIN_SPEED_FRACTION = 0.05
"""Speed above which the joint counts as moving, as a fraction of its highest speed. The median speed of the moving
samples separates slow from fast motion."""
MIN_PART_SAMPLES = 20
"""Smallest number of samples to hold out, and to fit with."""
MIN_MEAN_SQUARE = 1e-30
"""Lower limit of divisors and of the noise variance: prevents division by zero with exact data."""
MAX_OPTIONAL_TERMS = 4
"""Largest number of optional terms in a set. Larger sets overfit: they predict other recordings badly."""
CONTRADICTION_PROBABILITY = 0.01
"""Significance level of the χ² test that all recordings of a joint have the same compliance."""


@dataclass(frozen=True, eq=False)
class TorsionRows:
    """Samples of one joint from all recordings, in order of time; a run is one recording.

    Attributes:
        columns: Regressor (N, k) with the columns of all terms, low-pass filtered.
        torsion: Torsion (N,), low-pass filtered, rad or m.
        runs: Number (N,) of the recording of each sample.
        position: Positions (N,), rad or m.
        velocity: Velocities (N,), rad/s or m/s.
    """

    columns: NDArray
    torsion: NDArray
    runs: NDArray
    position: NDArray
    velocity: NDArray

    @cached_property
    def blocks(self) -> NDArray:
        """Number (N,) of the block of time of each sample, for the jackknife."""
        return time_blocks(self.runs)

    def gram(self, samples: NDArray) -> NDArray:
        """Return the Gram matrix AᵀA (k + 1, k + 1) of A = [columns, torsion] over a mask (N,) of samples.

        The mean of each run is subtracted first, because encoder zeros, and so the mean of torsion, differ by run.
        """
        table = np.column_stack([self.columns, self.torsion])
        tables = (table[samples & (self.runs == run)] for run in np.unique(self.runs[samples]))
        centred = np.vstack([rows - rows.mean(axis=0) for rows in tables])
        return centred.T @ centred

    def parts(self) -> Iterator[NDArray]:
        """Yield masks (N,) of the samples to hold out and predict."""
        progress = np.arange(len(self.runs)) / len(self.runs)
        for count in (2, 3):  # halves and thirds of time
            yield from (np.floor(progress * count) == part for part in range(count))
        if (run_numbers := np.unique(self.runs)).size > 1:
            yield from (self.runs == run for run in run_numbers)
        speed = np.abs(self.velocity)
        moving = speed > MIN_SPEED_FRACTION * speed.max()
        middle = (self.position.min() + self.position.max()) / 2
        for mask in (speed > np.median(speed[moving]), self.position > middle, self.velocity > 0):
            yield from (mask, ~mask)


@dataclass(frozen=True, eq=False)
class TermSet:
    """Set of terms and its prediction error.

    Attributes:
        held_out_rms: RMS error of the predicted torsion in held-out parts, without its mean, rad or m.
        coefficients: Coefficients (k,) of all columns; zero for the columns of absent terms.
        leave_outs: Coefficients (B, k), each row fitted without one of B blocks of time.
    """

    terms: tuple[str, ...]
    held_out_rms: float
    coefficients: NDArray
    leave_outs: NDArray


class TermChoice:
    """Choice between sets of terms for one joint, fitted by ridge regression.

    Args:
        terms: All available terms in the order of their columns.
    """

    def __init__(self, rows: TorsionRows, terms: Sequence[Term]):
        self.rows = rows
        self.names = [term.name for term in terms]
        self._owner = np.repeat(self.names, [len(term.labels) for term in terms])
        self._gram = rows.gram(np.ones(len(rows.runs), dtype=bool))
        # Mean squared residual of the fit with all terms.
        everything = _solve(self._gram, np.ones(len(self._owner), dtype=bool), np.zeros(len(self._owner)))
        self._noise_variance = max(_squared_error(self._gram, everything) / len(rows.runs), MIN_MEAN_SQUARE)
        # Ridge penalty of a coefficient c with the expected size s: (noise / s²) c². Samples of a block are correlated,
        # so a block counts as one independent observation and the noise is multiplied by the samples per block.
        noise = self._noise_variance * len(rows.runs) / len(np.unique(rows.blocks))
        expected_size = np.repeat([term.size for term in terms], [len(term.labels) for term in terms])
        self._size_penalty = noise / expected_size**2
        # For the choice, a column alone is not expected to exceed the whole torsion. This keeps large terms of opposite
        # sign from cancelling each other. `full_size` is the coefficient of a column as large as the torsion.
        squares = np.diag(self._gram)
        full_size = np.sqrt(squares[-1] / np.where(squares[:-1] > 0, squares[:-1], np.inf))
        self._choice_penalty = noise / np.maximum(np.minimum(expected_size, full_size), MIN_MEAN_SQUARE) ** 2

    def best(self) -> list[TermSet]:
        """Return the sets whose mean loss exceeds the smallest by at most one standard error, best first.

        The loss is the mean squared prediction error in a held-out part. The standard error of the difference between
        two sets is that of its mean over the parts.
        """
        optional = [name for name in self.names if name not in ALWAYS]
        sets = [(*ALWAYS, *s) for size in range(MAX_OPTIONAL_TERMS + 1) for s in combinations(optional, size)]
        parts = [p for p in self.rows.parts() if p.sum() >= MIN_PART_SAMPLES and (~p).sum() >= MIN_PART_SAMPLES]
        # (training, test) pairs: the test matrix is divided by its number of samples, so its error is a mean square.
        grams = [(self.rows.gram(~part), self.rows.gram(part) / part.sum()) for part in parts]
        masks = [np.isin(self._owner, s) for s in sets]
        penalty = self._choice_penalty
        losses = np.array([[_squared_error(test, _solve(train, m, penalty)) for train, test in grams] for m in masks])
        order = np.argsort(losses.mean(axis=1))
        excess = losses - losses[order[0]]
        standard_error = np.std(excess, axis=1, ddof=1) / np.sqrt(excess.shape[1])
        equal = [i for i in order if excess[i].mean() <= standard_error[i]]
        return [self._fit(sets[i], float(np.sqrt(losses[i].mean())), penalty) for i in equal]

    def completed(self, sets: Sequence[TermSet]) -> list[TermSet]:
        """Return the sets fitted again with all terms of a drive (`DRIVE`), each distinct set once.

        Without the acceleration term, for instance, the rotor's inertia would bias the compliance.
        """
        completed = {frozenset((*s.terms, *DRIVE)): s for s in reversed(sets)}  # of duplicates the best comes last
        return [self._fit(tuple(sorted(names)), s.held_out_rms, self._size_penalty) for names, s in completed.items()]

    def column_rms(self) -> NDArray:
        """Return the RMS (k,) of the columns, with the mean of each run subtracted."""
        return np.sqrt(np.diag(self._gram)[:-1] / len(self.rows.runs))

    def own_share(self, terms: Sequence[str], column: int, error: float) -> float:
        """Return the fraction, 0 to 1, of a column's norm that the other columns of a set cannot reproduce.

        Args:
            terms: Terms of the set.
            column: Index of the column.
            error: Standard error of the column's coefficient from errors of the column itself. These add to the noise,
                so the penalty, which keeps the other coefficients to their expected sizes, grows with it.
        """
        used = np.isin(self._owner, terms)
        used[column] = False
        others = np.append(used, False)
        square = self._gram[column, column]
        penalty = self._size_penalty[used] * (1 + error**2 * square / (self._noise_variance * len(self.rows.runs)))
        normal = self._gram[np.ix_(others, others)] + np.diag(penalty)
        cross = self._gram[others, column]
        remainder = square - cross @ np.linalg.lstsq(normal, cross, rcond=1e-12)[0]
        return float(np.sqrt(max(remainder, 0.0) / square)) if square > 0 else 0.0

    def _fit(self, names: tuple[str, ...], held_out_rms: float, penalty: NDArray) -> TermSet:
        """Return one set fitted to all samples, and fitted again without each block of time."""
        mask = np.isin(self._owner, names)
        leave_outs = jackknife(lambda kept: _solve(self.rows.gram(kept), mask, penalty), self.rows.blocks).estimates
        return TermSet(names, held_out_rms, _solve(self._gram, mask, penalty), leave_outs)


def average_coefficients(sets: Sequence[TermSet]) -> tuple[NDArray, NDArray, int]:
    """Return the mean coefficients (k,) of sets of terms, their standard errors, and the degrees of freedom.

    The variance is the mean jackknife variance over blocks of time plus the variance between the sets.
    """
    coefficients = np.array([s.coefficients for s in sets])
    variances = np.array([jackknife_variance(s.leave_outs - s.leave_outs.mean(axis=0)) for s in sets])
    errors = np.sqrt(variances.mean(axis=0) + coefficients.var(axis=0))
    return coefficients.mean(axis=0), errors, len(sets[0].leave_outs) - 1


def torsion_stiffness(
    choice: TermChoice, sets: Sequence[TermSet], column: int, torque_error: float, unit: str
) -> Stiffness:
    """Return the stiffness averaged over sets of terms that predict equally well, each with all terms of a drive.

    The variance of the compliance has three parts: the jackknife over blocks of time, the variance between the sets,
    and the error of the torque. Only the fraction of the torque that the other columns (acceleration, velocity,
    friction, eccentricity) cannot reproduce determines the compliance, so the error of the torque is divided by it.
    If this fraction is 5 %, a torque error of 5 % makes the compliance uncertain by 100 %.

    Args:
        choice: Terms of the joint.
        sets: Sets that predict equally well.
        column: Index of the column of the joint's torque, whose coefficient is the compliance.
        torque_error: Relative error of the motor's torque, 0.05 for 5 %.
        unit: Unit of the stiffness.
    """
    completed = choice.completed(sets)
    compliances = np.array([s.coefficients[column] for s in completed])
    leave_outs = np.array([s.leave_outs[:, column] for s in completed])
    dof = leave_outs.shape[1] - 1
    torque_errors = torque_error * np.abs(compliances)
    shares = np.array([choice.own_share(s.terms, column, e) for s, e in zip(completed, torque_errors, strict=True)])
    # (B - 1) times the variance of the B leave-one-out estimates is the jackknife variance.
    variances = dof * np.var(leave_outs, axis=1) + (torque_errors / np.maximum(shares, 1e-6)) ** 2
    error = float(np.sqrt(variances.mean() + compliances.var()))
    return Stiffness.from_error(float(compliances.mean()), error, dof, unit)


def combine_recordings(together: Stiffness, alone: Mapping[str, Stiffness]) -> Stiffness:
    """Return the stiffness from the fit to all recordings or, if that is undetermined, from their weighted mean.

    The mean is needed because a recording with little information can spoil the fit to all recordings. If the
    recordings contradict each other, the stiffness stays undetermined: the intervals do not cover the real errors.
    """
    bounded = {name: one for name, one in alone.items() if math.isfinite(sum(map(abs, one.compliance_interval)))}
    if together.determined or not any(one.determined for one in bounded.values()):
        return together
    values = np.array([one.compliance for one in bounded.values()])
    half_widths = np.array([np.ptp(one.compliance_interval) / 2 for one in bounded.values()])
    weights = 1 / half_widths**2
    mean = float(weights @ values / weights.sum())
    half_width = float(1 / np.sqrt(weights.sum()))
    # Half of a 95 % interval is about two standard errors.
    chi_square = float(np.sum((2 * (values - mean) / half_widths) ** 2))
    dof = len(bounded) - 1
    if dof and chi2.sf(chi_square, dof) < CONTRADICTION_PROBABILITY:
        stiffnesses = "; ".join(f"{name}: {one}" for name, one in bounded.items())
        return replace(together, reason=f"{together.reason}; the recordings contradict each other: {stiffnesses}")
    if dof:  # Birge ratio: widen the interval if the recordings scatter more than their intervals explain
        half_width *= max(1.0, math.sqrt(chi_square / dof))
    return Stiffness.from_interval(mean, (mean - half_width, mean + half_width), together.unit)


def _squared_error(gram: NDArray, coefficients: NDArray) -> float:
    """Return the sum of squared residuals, torsion minus columns times coefficients, from a Gram matrix."""
    weights = np.append(-coefficients, 1.0)
    return max(float(weights @ gram @ weights), 0.0)


def _solve(gram: NDArray, mask: NDArray, penalty: NDArray) -> NDArray:
    """Return the ridge estimate (k,) of the coefficients of the columns in a mask (k,); the others are zero."""
    x = np.zeros(len(mask))
    used = np.flatnonzero(mask)
    normal = gram[np.ix_(used, used)] + np.diag(penalty[used])
    scale = np.sqrt(np.where(np.diag(normal) > 0, np.diag(normal), 1.0))
    x[used] = np.linalg.lstsq(normal / np.outer(scale, scale), gram[used, -1] / scale, rcond=1e-12)[0] / scale
    return x
