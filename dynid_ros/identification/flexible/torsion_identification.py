"""Torsion of joints with encoders on motor and link, identified without a model of the links."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid_ros.display import percent, text_table
from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.spring_fit import Stiffness, white_noise
from dynid_ros.identification.flexible.torsion_choice import (
    TermChoice,
    TermSet,
    TorsionModel,
    TorsionModels,
    TorsionRows,
    average_coefficients,
    combine_recordings,
    torsion_stiffness,
)
from dynid_ros.identification.flexible.torsion_terms import (
    Ripple,
    TorsionRun,
    columns,
    columns_of,
    find_ripples,
    joint_terms,
    torsion_cutoff,
    torsion_run,
)
from dynid_ros.identification.result import Result
from dynid_ros.identified.flexible_joints import torsion_entry
from dynid_ros.identified.identified_file import DOF, RecordedJoints
from dynid_ros.recording import Recording
from dynid_ros.recording.recording import Recordings, read_all
from dynid_ros.signals.spectra import COUNT_TOLERANCE

# Torsion of joints as identified: coefficients, and what may be said of stiffness.


@dataclass(frozen=True, eq=False)
class JointTorsion(TorsionModel):
    """Torsion of one joint as identified; the coefficients are means of the sets that predict equally well.

    Attributes:
        standard_errors: Standard errors (k,) of the coefficients, over blocks of time and over the sets.
        dof: Degrees of freedom of the standard errors.
        part_rms: RMS (k,) of the columns times their coefficients, without each recording's mean, rad or m.
        stiffness: Stiffness of the joint with its interval.
        sets: Sets of terms that predict equally well, best first.
        noise: White noise of the torsion by its differences, rad or m.
        torsion_rms: RMS of the torsion without each recording's mean, rad or m.
        held_out_rms: RMS error in held-out parts, low-pass filtered, their means removed, rad or m.
    """

    standard_errors: NDArray
    dof: int
    part_rms: NDArray
    stiffness: Stiffness
    sets: tuple[TermSet, ...]
    noise: float
    torsion_rms: float
    held_out_rms: float

    @property
    def delay(self) -> float:
        """Torsion per velocity, s: delay of the link encoder plus b / k."""
        return float(self.coefficients[columns_of(self.terms, "velocity")[0]])

    def estimates(self) -> list[tuple[str, str, float, float, float]]:
        """Return label, unit, coefficient, standard error and RMS contribution of each column that some set has."""
        labels = [(label, term.unit) for term in self.terms for label in term.labels]
        rows = zip(labels, self.coefficients, self.standard_errors, self.part_rms, strict=True)
        return [(*label, float(value), float(error), float(rms)) for label, value, error, rms in rows if value]

    def ripple_period(self, ripple: Ripple) -> str:
        """Return the period of a ripple in words."""
        if self.prismatic:
            return f"period {2e3 * np.pi / ripple.frequency:.3g} mm"
        return f"{ripple.frequency:.1f} periods per turn"

    def entry(self) -> dict:
        """Return the entry of section `torsion`."""
        return torsion_entry(
            stiffness=(self.stiffness.value, self.stiffness.interval, self.stiffness.reason),
            numbers={
                "zero": self.zero,
                "delay": self.delay,
                "torsion_rms": self.torsion_rms,
                "held_out_rms": self.held_out_rms,
                "noise": self.noise,
                "fastest": self.fastest,
            },
            estimates={label: (value, error, rms) for label, _, value, error, rms in self.estimates()},
            dof=self.dof,
            prismatic=self.prismatic,
            sets=[(s.terms, s.held_out_rms) for s in self.sets],
            ripples=[(ripple.frequency, ripple.amplitude, ripple.phase, ripple.error) for ripple in self.ripples],
        )

    def lines(self) -> list[str]:
        """Return the lines of the summary."""
        scale, unit = self.display_unit
        with_torque = sum("torque" in s.terms for s in self.sets)
        equal = f"sets of terms that predict equally well: {len(self.sets)}, {with_torque} of them with the torque"
        return [
            f"{self.name}: torsion {self.torsion_rms * scale:.1f} {unit} RMS, "
            f"white noise {self.noise * scale:.2g} {unit}",
            f"  stiffness: {self.stiffness}",
            f"  {equal}; best: {', '.join(self.sets[0].terms)}; they leave {self.held_out_rms * scale:.1f} {unit} "
            "of parts of the record that were left out",
            f"  {1e3 * self.delay:.2f} ms times velocity: a delay between the encoders, or viscous friction",
            *(f"  ripple of {r.amplitude * scale:.1f} {unit}, {self.ripple_period(r)}" for r in self.ripples),
        ]


NO_LINK_POSITION = "no link position"
"""Reason for leaving out a joint without a link encoder."""


@dataclass(frozen=True, eq=False, repr=False)
class TorsionResult(TorsionModels, Result):
    """Torsion of all joints with a link encoder.

    Attributes:
        joints: Torsion by name; joints without a link encoder have none.
        remarks: Joints that were left out, with reasons.
        missing: Sentences on joints that have link positions but no torsion.
    """

    joints: dict[str, JointTorsion]
    remarks: tuple[str, ...]
    missing: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    robot: Any = None

    VALIDATION: ClassVar[str] = "torsion_validation"

    @property
    def settings(self) -> dict:
        """Cutoff frequency of the low-pass, Hz."""
        return {"cutoff": float(self.cutoff)}

    @property
    def condition_number(self) -> float:
        """NaN: the terms are chosen by held-out samples, not by the condition of one problem."""
        return np.nan

    @property
    def parameters(self) -> NDArray:
        """Coefficients (k,) of the terms of all joints."""
        return np.array([value for _, _, value, _, _ in self._estimates()])

    @property
    def names(self) -> tuple[str, ...]:
        """Names (k,) such as "torque joint_2"."""
        return tuple(f"{label} {joint}" for joint, model in self.joints.items() for label, *_ in model.estimates())

    @property
    def standard_errors(self) -> NDArray:
        """Standard errors (k,) of `parameters`."""
        return np.array([error for _, _, _, error, _ in self._estimates()])

    @property
    def dof(self) -> NDArray:
        """Degrees of freedom (k,) of the variances."""
        return np.array([model.dof for model in self.joints.values() for _ in model.estimates()], dtype=float)

    def sections(self) -> dict:
        """Return the section `torsion`."""
        return {"torsion": {name: joint.entry() for name, joint in self.joints.items()}}

    def document(self) -> dict:
        """Return the content of `identified.yaml`; degrees of freedom are those of each joint."""
        document = super().document()
        return {key: value for key, value in document.items() if key not in ("condition_number", DOF)}

    def further_lines(self) -> list[str]:
        """Return the terms and ripples of the torsion, joint by joint."""
        return [line for model in self.joints.values() for line in model.lines()]

    def verdict(self, validations: Sequence[Any] = ()) -> str:
        """Say which stiffnesses are determined, and what the prediction leaves of the torsion."""
        known = sum(model.stiffness.determined for model in self.joints.values())
        left = [model.held_out_rms / model.torsion_rms for model in self.joints.values()]
        for one in validations:
            left = list(one.residual_rms / one.torsion_rms)
        kind = "unseen" if validations else "held-out"
        return (
            f"The stiffness of {known} of {len(self.joints)} joints is determined; {kind} torsion is predicted within "
            f"{percent(np.nanmax(left))} of its RMS."
        )

    def joint_table(self, _validations: Sequence[Any] = ()) -> list[str]:
        """Return stiffness, torsion, held-out residual, noise and delay by joint."""
        rows = []
        for name, model in self.joints.items():
            scale, unit = model.display_unit
            sizes = (f"{scale * size:.3g} {unit}" for size in (model.torsion_rms, model.held_out_rms, model.noise))
            stiffness = f"{model.stiffness.value:.4g}" if model.stiffness.determined else "not determined"
            rows.append([name, stiffness, *sizes, f"{1e3 * model.delay:.2f} ms"])
        return text_table(("joint", "stiffness", "torsion RMS", "held-out residual", "noise", "delay"), rows)

    def _estimates(self) -> list[tuple[str, str, float, float, float]]:
        return [row for model in self.joints.values() for row in model.estimates()]

    def _line(self) -> str:
        return f"{len(self.joints)} joints, {len(self.names)} coefficients"

    def _table(self) -> dict[str, Sequence]:
        owners = [joint for joint, model in self.joints.items() for _ in model.estimates()]
        return self._table_of(owners, [unit for _, unit, *_ in self._estimates()])


CHOICE_RATE_HZ = 50.0
"""Samples per second for the choice of terms, Hz: the low-pass leaves no more."""
MIN_RANGE = 1e-2
"""Smallest range of a motion that excites a joint, rad or m."""


class TorsionIdentification:
    """Torsion q_m - q = zero + compliance * torque of the motor + further terms.

    The terms (`torsion_terms`) are chosen by prediction of held-out parts. Sets that predict equally well are averaged,
    and their differences count as uncertainty of the stiffness.

    Args:
        cutoff: Cutoff frequency of the low-pass of motor positions and torques, Hz; None: from the motion, 5 to 10.
        neighbours: Whether torques of the neighbouring joints may bend a joint. Use it only for recordings in which
            joints move one after the other or unlike each other: otherwise a neighbour replaces missing terms of the
            joint itself, and other motions are predicted worse.
        torque_error: Relative error of the torque, by motor constants and unmodelled friction, for the interval of the
            stiffness.

    Raises:
        IdentificationError: A cutoff frequency is not positive, or the torque error is negative.
    """

    def __init__(self, cutoff: float | None = None, *, neighbours: bool = False, torque_error: float = 0.05):
        if (cutoff is not None and not cutoff > 0) or not torque_error >= 0:
            raise IdentificationError(
                f"torsion: cutoff is {cutoff} and torque_error {torque_error}; expected Hz above 0, and 0 or more"
            )
        self.cutoff = cutoff
        self.neighbours = neighbours
        self.torque_error = torque_error

    def fit(self, *given: Recordings, prismatic: Collection[str] = ()) -> TorsionResult:
        """Fit to one or more recordings of the same joints.

        Positions are those of the motors seen through the gears, torques those of the motors times the gear ratio, and
        `link_position` is read by the link encoders. Zeros may differ between recordings.

        Args:
            *given: Recordings to fit, or their files.
            prismatic: Names of the joints that slide.

        Raises:
            IdentificationError: There are no link positions, joints differ, samples are missing, no joint moves, or a
                recording is too short.
        """
        recordings = read_all(given)
        self._check(recordings)
        cutoff = torsion_cutoff(recordings) if self.cutoff is None else self.cutoff
        runs = [torsion_run(recording, cutoff) for recording in recordings]
        names = recordings[0].joint_names
        joints = {}
        remarks = []
        missing: list[str] = []
        for j, name in enumerate(names):
            if reason := self._unusable(runs, j, name in prismatic):
                remarks.append(f"{name}: {reason}, so nothing is said of its torsion")
                # A joint without a link encoder is not among those to be identified.
                missing += [] if reason == NO_LINK_POSITION else [f"torsion of {name} is not known: {reason}"]
            else:
                joints[name] = self._fit_joint(runs, j, names, prismatic)
        if not joints:
            raise IdentificationError(f"{recordings[0].source}: no torsion can be identified. {'; '.join(remarks)}")
        sources = tuple(recording.source for recording in recordings)
        return TorsionResult(names, joints, cutoff, tuple(remarks), tuple(missing), sources, RecordedJoints(names))

    def _fit_joint(
        self, runs: list[TorsionRun], joint: int, names: tuple[str, ...], prismatic: Collection[str]
    ) -> JointTorsion:
        terms = joint_terms(joint, runs[0], names, prismatic, neighbours=self.neighbours)
        slides = names[joint] in prismatic
        fastest = max(float(np.abs(run.velocity[run.settled, joint]).max()) for run in runs)
        choice = TermChoice(_rows(runs, joint, [columns(run, joint, terms, fastest) for run in runs]), terms)
        sets = choice.best()
        coefficients, errors, dof = average_coefficients(sets)
        column = int(columns_of(terms, "torque")[0])
        stiffness = torsion_stiffness(choice, sets, column, self.torque_error, "N/m" if slides else "N m/rad")
        if len(runs) > 1 and not stiffness.determined:
            alone = {
                f"recording {k + 1}": self._fit_joint([run], joint, names, prismatic).stiffness
                for k, run in enumerate(runs)
            }
            stiffness = combine_recordings(stiffness, alone)
        torsion = [run.torsion[run.settled, joint] for run in runs]
        model = TorsionModel(names[joint], terms, coefficients, fastest, 0.0, ())
        zero, ripples = _zero_and_ripples(model, runs, joint)
        return JointTorsion(
            names[joint],
            terms,
            coefficients,
            fastest,
            zero,
            ripples,
            errors,
            dof,
            choice.column_rms() * np.abs(coefficients),
            stiffness,
            tuple(sets),
            float(np.sqrt(np.mean([white_noise(x) ** 2 for x in torsion]))),
            float(np.sqrt(np.mean([np.var(x) for x in torsion]))),
            float(np.mean([s.held_out_rms for s in sets])),
            prismatic=slides,
        )

    @staticmethod
    def _check(recordings: tuple[Recording, ...]) -> None:
        if not recordings:
            raise IdentificationError("torsion: no recording given")
        for recording in recordings:
            if recording.link_position is None:
                raise IdentificationError(
                    f"{recording.source}: no link positions; record the encoders behind the gears as link_position"
                )
            if recording.joint_names != recordings[0].joint_names:
                raise IdentificationError(
                    f"{recording.source}: joints are {', '.join(recording.joint_names)}; expected "
                    f"{', '.join(recordings[0].joint_names)} as in {recordings[0].source}"
                )

    @staticmethod
    def _unusable(runs: list[TorsionRun], joint: int, slides: bool) -> str:
        if not all(np.isfinite(run.torsion[:, joint]).all() for run in runs):
            return NO_LINK_POSITION
        if not all(np.isfinite(run.torque[:, joint]).all() for run in runs):
            return "its torque was not recorded"
        way = max(float(np.ptp(run.position[run.settled, joint])) for run in runs)
        return f"it moves by {way:.2g} {'m' if slides else 'rad'} only" if way < MIN_RANGE else ""


def _zero_and_ripples(model: TorsionModel, runs: list[TorsionRun], joint: int) -> tuple[float, tuple[Ripple, ...]]:
    """Return the mean of the runs' zeros and the ripples of the link encoder that all runs share."""
    rest = [(run.torsion[:, joint] - model.smooth(run, joint))[run.settled] for run in runs]
    numbers = np.repeat(np.arange(len(runs)), [len(one) for one in rest])
    link, speed = (np.concatenate([getattr(r, kind)[r.settled, joint] for r in runs]) for kind in ("link", "velocity"))
    centred = np.concatenate([one - one.mean() for one in rest])
    ripples = find_ripples(link, centred, speed, min(run.rate for run in runs), numbers)
    return float(np.mean([one.mean() for one in rest])), ripples


def _rows(runs: list[TorsionRun], joint: int, tables: list[np.ndarray]) -> TorsionRows:
    parts = []
    for number, (run, table) in enumerate(zip(runs, tables, strict=True)):
        kept = slice(run.settled.start, run.settled.stop, max(1, int(run.rate / CHOICE_RATE_HZ + COUNT_TOLERANCE)))
        q = run.position[kept, joint]
        qd = run.velocity[kept, joint]
        torsion = run.low_pass.filter(run.torsion[:, joint])[kept]
        parts.append((table[kept], torsion, np.full(len(q), number), q, qd))
    return TorsionRows(*(np.concatenate(values) for values in zip(*parts, strict=True)))
