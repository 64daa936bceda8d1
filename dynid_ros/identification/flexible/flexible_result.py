"""Result of an identification of flexible joints: springs, motors, links, and springs as measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.display import text_table
from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import CONFIDENCE_LEVEL, MAX_RELATIVE_ERROR, half_width
from dynid_ros.identification.flexible.flexible_parameters import Combination, JointParameters, Layout
from dynid_ros.identification.flexible.flexible_prediction import FlexiblePrediction, predict
from dynid_ros.identification.flexible.spring_fit import SpringFit, fit_spring, white_noise
from dynid_ros.identification.result import Result, unseen_agreement
from dynid_ros.identified.flexible_joints import LINK_FRICTION_KEYS, flexible_joint_entry
from dynid_ros.identified.identified_file import as_number
from dynid_ros.identified.links import base_parameters_section
from dynid_ros.identified.validation import Validation, unit_of_joints, validate_torque
from dynid_ros.mocap.link_angles import LinkAngles
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import prismatic_unit
from dynid_ros.model.spring import SPRINGS
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import RecordingLike, read_all

HEADS = {
    "stiffness": ("k", "N m/rad"),
    "motor_inertia": ("J", "kg m²"),
    "motor_viscous": ("b", "N m s/rad"),
    "coulomb": ("c", "N m"),
    "viscous": ("v", "N m s/rad"),
}
"""Columns of the summary: symbol, and unit of a revolute joint."""


class Term(NamedTuple):
    """One parameter of every joint: values (n,), standard errors, and whether the data determine it."""

    values: NDArray
    standard_errors: NDArray
    decided: NDArray


@dataclass(frozen=True, eq=False)
class RunFound:
    """Estimates that belong to one recording, or to one stretch of it.

    Attributes:
        clock_offset, clock_drift: clock of the robot minus clock of the links' sensor, s and s/s; 0 for one clock.
        clock_offset_error, clock_drift_error: standard errors of the clock.
        zero: measured link position minus motor position (n,) with relaxed springs.
        link_rms, torque_rms: RMS residuals (n,), rad or m, N m or N; NaN if not measured.
        prediction: prediction at the samples of the recording, with the measured signals.
    """

    source: str
    clock_offset: float
    clock_offset_error: float
    clock_drift: float
    clock_drift_error: float
    zero: NDArray
    link_rms: NDArray
    torque_rms: NDArray
    prediction: FlexiblePrediction


@dataclass(frozen=True, eq=False, repr=False)
class FlexibleResult(Result):
    """Links, friction, springs and motors of an arm with flexible joints.

    Attributes:
        parameters: values (p,) of `names`.
        covariance: covariance (p, p), with infinite variances of undetermined parameters.
        condition_number: condition number of the square root of the information with scaled columns.
        resonances: resonances (n,) of the links with held motors, in the middle of the motion, Hz; of the joint alone
            if motors hardly couple.
        resonance_errors: standard errors (n,) of the resonances, Hz.
        sums: combinations that a rigid arm has too, which may be determined although their parts are not.
        runs: estimates of each recording.
        remarks: sentences on choices and on undetermined parameters.
        validations: agreement with recordings that were not fitted, for the report.
        springs: torque and deflection of each spring as measured; empty: they were not evaluated.
        cameras: `MocapLinks` of recordings with motion capture.
        repeats: name, mean and coefficient of variation of each parameter over fits of single recordings.
    """

    layout: Layout
    parameters: NDArray
    covariance: NDArray
    condition_number: float
    resonances: NDArray
    resonance_errors: NDArray
    sums: tuple[Combination, ...]
    runs: tuple[RunFound, ...]
    sources: tuple[str, ...]
    settings: dict
    remarks: tuple[str, ...]
    iterations: int
    validations: tuple[Validation, ...] = ()
    springs: tuple[MeasuredSpring, ...] = ()
    cameras: tuple[Any, ...] = ()
    repeats: tuple[tuple[str, float, float], ...] = ()

    @property
    def robot(self) -> RobotModel:
        """The arm."""
        return self.layout.robot

    @property
    def names(self) -> tuple[str, ...]:
        """Names (p,) of the parameters, such as "Izz1" or "stiffness joint_1"."""
        return self.layout.names

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.layout.robot.joint_names

    def confidence_intervals(self, level: float = CONFIDENCE_LEVEL) -> NDArray:
        """Return the intervals (p, 2); that of a stiffness is the inverse of the interval of its compliance."""
        half = half_width(self.standard_errors, level=level)
        found = np.stack([self.parameters - half, self.parameters + half], axis=1)
        for i in self.layout.index("stiffness"):
            # A compliance has the normal errors: a spring that might be rigid has no upper end.
            share = half[i] / self.parameters[i]
            found[i] = self.parameters[i] / (1 + share), self.parameters[i] / (1 - share) if share < 1 else np.inf
        return found

    def term(self, name: str) -> Term:
        """Return a parameter of every joint: "stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous" ...

        Raises:
            ValueError: the model has no such term.
        """
        at = self.layout.index(name)
        return Term(self.parameters[at], self.standard_errors[at], self.decided[at])

    @property
    def decided(self) -> NDArray:
        """Mask (p,) of the parameters that the data determine."""
        return self.standard_errors < MAX_RELATIVE_ERROR * np.abs(self.parameters)

    @property
    def missing(self) -> tuple[str, ...]:
        """Sentences on joints whose stiffness is undetermined."""
        known = self.term("stiffness").decided
        return tuple(
            f"stiffness of {joint} is not known: its deflection hardly shows; load it more, by faster motion or a mass"
            for joint, decided in zip(self.joint_names, known, strict=True)
            if not decided
        )

    @property
    def stiffness(self) -> NDArray:
        """Stiffness (n,), N m/rad or N/m; NaN if undetermined."""
        term = self.term("stiffness")
        return np.where(term.decided, term.values, np.nan)

    @property
    def model(self) -> JointParameters:
        """Parameters by their meaning."""
        return self.layout.unpack(self.parameters)

    @property
    def residual_rms(self) -> NDArray:
        """RMS residual (n,) of the motors' torques over all recordings, N m or N."""
        return np.sqrt(np.mean([run.torque_rms**2 for run in self.runs], axis=0))

    def predict(self, recording: Recording) -> FlexiblePrediction:
        """Predict the motion of the links and the torques of the motors from the recorded motion of the motors.

        Raises:
            RecordingError: a joint is missing, or there is no motion.
            IdentificationError: no stretch without a gap is long enough.
        """
        return predict(self.layout, self.parameters, recording, self.settings["band"])

    def validate(self, recording: RecordingLike) -> Validation:
        """Compare the predicted torques with those of a recording that was not fitted; it needs no link positions."""
        (unseen,) = read_all([recording], self.joint_names)
        prediction = self.predict(unseen)
        unit = unit_of_joints(self.robot.chain.prismatic, "N m", "N")
        return validate_torque(unseen.source, self.joint_names, prediction.measured_torque, prediction.torque, unit)

    def sections(self) -> dict:
        """Return the sections of joints, sums, recordings, base parameters and repetitions."""
        layout = self.layout
        nominal = layout.base.project(layout.robot.parameters)
        errors = self.standard_errors[: len(nominal)]
        values = np.where(np.isfinite(errors), self.parameters[: len(nominal)], np.nan)
        sections: dict = {
            "flexible_joints": {joint: self._entry(i) for i, joint in enumerate(self.joint_names)},
            "flexible_sums": [
                {"expression": s.expression, "value": as_number(s.value), "std": as_number(s.standard_error)}
                for s in self.sums
            ],
            "flexible_recordings": [
                {
                    "recording": run.source,
                    "clock_offset": float(run.clock_offset),
                    "clock_offset_std": as_number(run.clock_offset_error),
                    "clock_drift": float(run.clock_drift),
                    "zero": {joint: float(z) for joint, z in zip(self.joint_names, run.zero, strict=True)},
                }
                for run in self.runs
            ],
            "base_parameters": base_parameters_section(layout.base.expressions, values, errors, nominal),
        }
        if self.repeats:
            sections["repeats"] = [
                {"parameter": name, "mean": mean, "variation": as_number(variation)}
                for name, mean, variation in self.repeats
            ]
        return sections

    def _entry(self, i: int) -> dict:
        """Return the entry of a joint in the section `flexible_joints`."""
        law, joint = self.layout.springs[i], self.joint_names[i]
        places = {
            name: self.layout.names.index(f"{name} {joint}")
            for name in (*law.names, *self.layout.motor_terms, *LINK_FRICTION_KEYS)
        }
        return flexible_joint_entry(
            next(name for name, kind in SPRINGS.items() if isinstance(law, kind)),
            {name: (self.parameters[k], self.standard_errors[k], self.decided[k]) for name, k in places.items()},
            self.confidence_intervals()[places["stiffness"]],
            self.resonances[i],
        )

    def verdict(self, validations: Sequence[Validation] = ()) -> str:
        """Say which springs are determined, and how well torque is predicted."""
        known = int(np.count_nonzero(self.term("stiffness").decided))
        agreement = unseen_agreement(validations) or f"condition number {self.condition_number:.3g}"
        return f"The stiffness of {known} of {len(self.joint_names)} joints is determined; {agreement}."

    def joint_table(self, _validations: Sequence[Validation] = ()) -> list[str]:
        """Return springs, motors and friction with half 95 % intervals, and the resonance, by joint."""
        shown = [(name, head) for name, head in HEADS.items() if f"{name} {self.joint_names[0]}" in self.names]
        terms = [self.term(name) for name, _ in shown]
        rows = [
            [joint, *(value_text(t.values[i], t.standard_errors[i]) for t in terms), f"{self.resonances[i]:.2f}"]
            for i, joint in enumerate(self.joint_names)
        ]
        lines = text_table(["joint", *(f"{symbol} [{unit}]" for _, (symbol, unit) in shown), "Hz"], rows)
        slides = zip(self.joint_names, self.robot.joint_types, strict=True)
        if prismatic := [joint for joint, kind in slides if kind == "prismatic"]:
            units = ", ".join(f"{symbol} [{prismatic_unit(unit)}]" for _, (symbol, unit) in shown)
            lines.append(f"units of {', '.join(prismatic)}: {units}")
        return lines

    def further_lines(self) -> list[str]:
        """Return sums of parameters, offsets of clocks and repetitions."""
        lines = [f"{s.expression} = {value_text(s.value, s.standard_error)}" for s in self.sums]
        lines += [
            f"{run.source}: clock of the links' sensor {1e3 * run.clock_offset:+.3f} "
            f"± {1e3 * half_width(run.clock_offset_error):.3f} ms"
            for run in self.runs
            if run.clock_offset
        ]
        if self.repeats:
            lines.append(f"{len(self.sources)} recordings, each alone: mean and coefficient of variation")
            lines += [f"  {name:<32}{mean:>12.5g}{variation:>10.2%}" for name, mean, variation in self.repeats]
        return lines


def value_text(value: float, error: float) -> str:
    """Return a value with half of its 95 % interval, or "not determined"."""
    if not error < MAX_RELATIVE_ERROR * abs(value):
        return "not determined"
    return f"{value:.4g} ± {half_width(error):.2g}"


# Deflection and torque of the springs as measured, without a law.


@dataclass(frozen=True, eq=False)
class MeasuredSpring:
    """Measured torque and deflection of one joint, N samples of all recordings.

    Attributes:
        deflection: motor position minus link position (N,), without the estimated zero, rad or m.
        torque: measured torque (N,) minus inertia and friction of the motor, N m or N.
        runs: run (N,) of each sample.
        fit: fit of a law; None: see `reason`.
        reason: cause of a missing fit; else empty.
    """

    joint: str
    deflection: NDArray
    torque: NDArray
    runs: NDArray
    fit: SpringFit | None
    reason: str


def link_noise(
    robot_joints: Sequence[str], recordings: Sequence[Recording], links: Sequence[LinkAngles | None]
) -> NDArray:
    """Return the white noise (n,) of the measured link positions, rad or m; NaN if too few are known."""
    found = []
    for recording, seen in zip(recordings, links, strict=True):
        values = recording.select(robot_joints).link_position if seen is None else seen.position
        columns = [] if values is None else [column[np.isfinite(column)] for column in values.T]
        found.append([white_noise(column) if len(column) > 12 else np.nan for column in columns])
    return np.sqrt(np.nanmean(np.square(found), axis=0))


def measured_springs(result: FlexibleResult, laws: Sequence[Sequence[str]], noise: NDArray) -> list[MeasuredSpring]:
    """Return deflection and torque of each spring, and the law of `laws` that predicts them best.

    The result contributes the terms of the motors, the zeros and the clocks, but not its springs.

    Args:
        result: of an identification.
        laws: for each joint keys of `SPRINGS`, simplest first.
        noise: (n,) of the links' positions, rad or m.
    """
    found = []
    for i, joint in enumerate(result.joint_names):
        d, tau, numbers = measured(result, i)
        fit, reason = None, ""
        try:
            fit = fit_spring(d, tau, laws[i], runs=numbers, deflection_noise=float(noise[i]))
        except IdentificationError as error:
            reason = str(error)
        found.append(MeasuredSpring(joint, d, tau, numbers, fit, reason))
    return found


def measured(result: FlexibleResult, joint: int) -> tuple[NDArray, NDArray, NDArray]:
    """Return deflection, torque and run (N,) of the spring of a joint over all recordings, without a law."""
    parts = [run.prediction for run in result.runs]
    deflection = np.concatenate([part.link + part.deflection - part.measured_link for part in parts])[:, joint]
    torque = np.concatenate([part.measured_torque - (part.torque - part.spring_torque) for part in parts])[:, joint]
    runs = np.repeat(np.arange(len(parts)), [len(part.time) for part in parts])
    known = np.isfinite(deflection) & np.isfinite(torque)
    return deflection[known], torque[known], runs[known]


# Remarks on undetermined parameters.

MAX_RESIDUAL_FRACTION = 0.2
"""Largest RMS residual of a good fit, as a fraction of the standard deviation of the torque."""
MIN_SPRING_R2 = 0.5
"""Smallest R² of the spring law that fits best, torque over measured deflection, for a joint that is not rigid."""
LOCAL_MINIMUM_TEXT = "in a wrong place"
"""Text in every remark on a search that may have ended in a local minimum."""
SPLIT = ("viscous", "motor_viscous", "motor_inertia")
"""Terms of which slow motion shows only the sums of link and motor."""


def remarks(result: FlexibleResult) -> tuple[str, ...]:
    """Return sentences on undetermined parameters, large residuals and uncertain clocks, each with a way out."""
    sentences = []
    intervals = result.confidence_intervals()
    stiffness = result.term("stiffness")
    places = result.layout.index("stiffness")
    for i, joint in enumerate(result.joint_names):
        if not stiffness.decided[i]:
            reason = _why_not(result, i, float(intervals[places[i], 0]))
            sentences.append(f"{joint}: its stiffness is not determined ({reason}")
        unknown = [name for name in SPLIT if name in _terms(result) and not result.term(name).decided[i]]
        if unknown:
            frequency = result.resonances[i]
            way_out = f"; move near {frequency:.2g} Hz" if np.isfinite(frequency) else ""
            sentences.append(
                f"{joint}: {', '.join(unknown)} not determined by themselves: so slow a motion shows only the sums "
                f"of link and motor{way_out}"
            )
    for run in result.runs:
        torque_stds = np.std(run.prediction.measured_torque, axis=0)
        for joint, rms, torque_std in zip(result.joint_names, run.torque_rms, torque_stds, strict=True):
            if rms > MAX_RESIDUAL_FRACTION * torque_std:
                sentences.append(
                    f"{run.source}: {rms / torque_std:.0%} of the torque of {joint} is left unexplained: the model is "
                    "not that of this arm, its spring follows another law (--spring auto tries them), or the search "
                    f"ended {LOCAL_MINIMUM_TEXT}; errors are larger than stated"
                )
        if run.clock_offset_error > 5e-4:
            sentences.append(f"{run.source}: the clock's offset is known to {1e3 * run.clock_offset_error:.2g} ms only")
    return tuple(sentences)


def _why_not(result: FlexibleResult, i: int, low: float) -> str:
    """Return why the stiffness of joint i is undetermined: another spring law, or a joint that looks rigid.

    The text ends the sentence after "(". `low` is the lower end of the confidence interval, N m/rad or N/m.
    """
    deflection, torque, runs = measured(result, i)
    law = next(name for name, kind in SPRINGS.items() if isinstance(result.layout.springs[i], kind))
    try:
        fit = fit_spring(deflection, torque, tuple(SPRINGS), runs=runs)
    except IdentificationError:
        fit = None
    if fit is not None and fit.r_squared > MIN_SPRING_R2:
        other = "" if fit.law == law else f", as a {fit.law} spring would: set spring='{fit.law}' (--spring {fit.law})"
        return (
            f"its deflection follows the torque, R² {fit.r_squared:.2f}{other}); it is not rigid: see the report's "
            "spring as measured, or take --spring auto"
        )
    unit = "N/m" if result.layout.robot.chain.prismatic[i] else "N m/rad"
    least = f"at least {low:.3g} {unit}, " if np.isfinite(low) and low > 0 else ""
    return (
        f"{least}the spring hardly winds up compared with the noise); take the joint as rigid, or move it with "
        "more torque near its resonance"
    )


def _terms(result: FlexibleResult) -> tuple[str, ...]:
    return ("viscous", *result.layout.motor_terms)
