"""Torsion of joints that have encoders on motor and link, from recordings and without a model of the links."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.spring_fit import Stiffness, white_noise
from dynid_ros.identification.flexible.torsion_choice import TermChoice, TermSet, TorsionRows, of_all, torsion_stiffness
from dynid_ros.identification.flexible.torsion_terms import (
    Ripple,
    Term,
    TorsionRun,
    columns,
    columns_of,
    find_ripples,
    joint_terms,
    torsion_cutoff,
    torsion_run,
)
from dynid_ros.identified.flexible_joints import torsion_entry
from dynid_ros.recording import Recording

# Torsion of joints as identified: prediction, and what may be said of stiffness.


MDEG = float(np.rad2deg(1e3))


@dataclass(frozen=True, eq=False)
class JointTorsion:
    """Model of one joint's torsion, linear in its coefficients, with ripple.

    Attributes:
        name: of the joint.
        terms: all that were tried, in the order of their columns.
        coefficients: (k,) mean of the sets of terms that predict equally well.
        fastest: speed in what it was fitted to, rad/s.
        zero: mean of torsion less terms in the first recording, rad: zeros of the encoders.
        ripples: of the link encoder.
        stiffness: of the joint, and how well it is determined.
        sets: of terms that predict equally well, best first.
        noise: white noise of torsion, from its differences, rad.
        torsion_rms: without each recording's mean, rad.
        held_out_rms: of parts left out, low-pass filtered, their means removed, rad.
    """

    name: str
    terms: tuple[Term, ...]
    coefficients: NDArray
    fastest: float
    zero: float
    ripples: tuple[Ripple, ...]
    stiffness: Stiffness
    sets: tuple[TermSet, ...]
    noise: float
    torsion_rms: float
    held_out_rms: float

    @property
    def delay(self) -> float:
        """Torsion per velocity, s: how much later the link encoder is read, and next to it b / k."""
        return float(self.coefficients[columns_of(self.terms, "velocity")[0]])

    def entry(self) -> dict:
        """Entry of section `torsion`."""
        return torsion_entry(
            stiffness=self.stiffness.value,
            interval=self.stiffness.interval,
            reason=self.stiffness.reason,
            numbers={
                "zero": self.zero,
                "delay": self.delay,
                "torsion_rms": self.torsion_rms,
                "held_out_rms": self.held_out_rms,
            },
            terms=self.sets[0].terms,
            ripples=[(ripple.frequency, ripple.amplitude, ripple.phase) for ripple in self.ripples],
        )

    def smooth(self, run: TorsionRun, joint: int) -> NDArray:
        """(M,) torsion by the terms, without zero and ripple, rad."""
        return columns(run, joint, self.terms, self.fastest) @ self.coefficients

    def predict(self, run: TorsionRun, joint: int) -> NDArray:
        """(M,) torsion, rad; zero and phase of ripples are this run's where it has a link encoder."""
        torsion = self.smooth(run, joint)
        angle, rest = run.position[:, joint] - torsion, run.torsion[:, joint] - torsion
        known = np.isfinite(rest).all()
        ripples = [ripple.shifted(angle, rest) if known else ripple for ripple in self.ripples]
        return torsion + sum(r.values(angle) for r in ripples) + (float(rest.mean()) if known else self.zero)

    def lines(self) -> list[str]:
        """Summary."""
        with_torque = sum("torque" in s.terms for s in self.sets)
        equal = f"sets of terms that predict equally well: {len(self.sets)}, {with_torque} of them with the torque"
        return [
            f"{self.name}: torsion {self.torsion_rms * MDEG:.1f} mdeg RMS, white noise {self.noise * MDEG:.2g} mdeg",
            f"  stiffness: {self.stiffness}",
            f"  {equal}; best: {', '.join(self.sets[0].terms)}; they leave {self.held_out_rms * MDEG:.1f} mdeg "
            "of parts of the record that were left out",
            f"  {1e3 * self.delay:.2f} ms times velocity: a delay between the encoders, or viscous friction",
            *(f"  ripple of {r.amplitude * MDEG:.1f} mdeg, {r.frequency:.1f} periods per turn" for r in self.ripples),
        ]


@dataclass(frozen=True, eq=False)
class TorsionValidation:
    """Torsion as recorded and its prediction, means removed; (n,) rad, NaN of joints without a model.

    Attributes:
        torsion_rms: of the torsion.
        residual_rms: of torsion less prediction, zero and phase of ripples being the recording's.
        plain_residual_rms: of torsion less prediction without any ripple.
    """

    torsion_rms: NDArray
    residual_rms: NDArray
    plain_residual_rms: NDArray


@dataclass(frozen=True, eq=False)
class TorsionResult:
    """Torsion of all joints with a link encoder.

    Attributes:
        joint_names: of the n joints, in the order of the recordings.
        joints: models by name; joints without a link encoder have none.
        cutoff: of the low-pass, Hz.
        remarks: what was left out and why.
    """

    joint_names: tuple[str, ...]
    joints: dict[str, JointTorsion]
    cutoff: float
    remarks: tuple[str, ...]

    def predict(self, recording: Recording) -> NDArray:
        """(N, n) motor less link position, rad; NaN of joints without a model.

        From motor positions and torques. Link positions, where the recording has them, give nothing but what changes
        when encoders are switched on: their zeros, and with it the phase of their ripple.

        Raises:
            IdentificationError: other joints, a joint without torque, gaps, or too short a recording.
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
            IdentificationError: as `predict`, or no link positions.
        """
        run = self._run(recording)
        shape = len(self.joint_names)
        rms = {kind: np.full(shape, np.nan) for kind in ("torsion", "residual", "plain")}
        for name, model in self.joints.items():
            joint = self.joint_names.index(name)
            torsion = run.torsion[:, joint]
            if not np.isfinite(torsion).all():
                raise IdentificationError(f"{recording.source}: no link position of {name} to compare with")
            rms["torsion"][joint] = np.std(torsion)
            rms["residual"][joint] = np.std(torsion - model.predict(run, joint))
            rms["plain"][joint] = np.std(torsion - model.smooth(run, joint))
        return TorsionValidation(rms["torsion"], rms["residual"], rms["plain"])

    def summary(self) -> str:
        """What was found, joint by joint."""
        lines = [line for model in self.joints.values() for line in model.lines()]
        return "\n".join([*lines, *self.remarks])

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


RATE = 50.0
"""Samples per second that the choice of terms looks at, Hz: all that the low-pass leaves."""
MOVED = 1e-2
"""Way below which a joint's motion excites nothing, rad."""


class TorsionIdentification:
    """Torsion q_m - q = zero + compliance * torque of the motor + what else pays.

    The parts of the torsion (`torsion_terms`) are chosen by predicting what was left out, sets that predict equally
    well are averaged, and their differences count as uncertainty of the stiffness.

    Args:
        cutoff: of the low-pass of motor positions and torques, Hz; None: from the motion, 5 to 10.
        neighbours: whether torques of the joints beside it may bend a joint. Only for recordings in which joints move
            one after the other or unlike each other: else a neighbour stands in for what the joint itself lacks, and
            other motions are predicted worse.
        torque_error: relative error of the torque, of motor constants and of what friction the model lacks, for the
            interval of the stiffness.

    Raises:
        IdentificationError: a cut-off of zero, or a setting below it.
    """

    def __init__(self, cutoff: float | None = None, *, neighbours: bool = False, torque_error: float = 0.05):
        if (cutoff is not None and not cutoff > 0) or not torque_error >= 0:
            raise IdentificationError(
                f"torsion: cutoff is {cutoff} and torque_error {torque_error}; expected Hz above 0, and 0 or more"
            )
        self.cutoff, self.neighbours, self.torque_error = cutoff, neighbours, torque_error

    def fit(self, *recordings: Recording) -> TorsionResult:
        """Fit to one or more recordings of the same joints.

        Position is the motor's seen through the gear, torque the motor's times the gear ratio, `link_position` the link
        encoder's. Zeros may differ from recording to recording.

        Raises:
            IdentificationError: no link positions, joints that differ, gaps, nothing that moves, too short recordings.
        """
        self._check(recordings)
        cutoff = torsion_cutoff(recordings) if self.cutoff is None else self.cutoff
        runs = [torsion_run(recording, cutoff) for recording in recordings]
        names, joints, remarks = recordings[0].joint_names, {}, []
        for j, name in enumerate(names):
            if reason := self._unusable(runs, j):
                remarks.append(f"{name}: {reason}, so nothing is said of its torsion")
            else:
                joints[name] = self._fit_joint(runs, j, names)
        if not joints:
            raise IdentificationError(f"{recordings[0].source}: no torsion can be identified. {'; '.join(remarks)}")
        return TorsionResult(names, joints, cutoff, tuple(remarks))

    def _fit_joint(self, runs: list[TorsionRun], joint: int, names: tuple[str, ...]) -> JointTorsion:
        terms = joint_terms(joint, runs[0], names, neighbours=self.neighbours)
        fastest = max(float(np.abs(run.velocity[run.settled, joint]).max()) for run in runs)
        choice = TermChoice(_rows(runs, joint, [columns(run, joint, terms, fastest) for run in runs]), terms)
        sets = choice.best()
        coefficients = np.mean([s.coefficients for s in sets], axis=0)
        column = int(columns_of(terms, "torque")[0])
        stiffness = torsion_stiffness(choice, sets, column, self.torque_error)
        if len(runs) > 1 and not stiffness.determined:
            alone = {f"recording {k + 1}": self._fit_joint([run], joint, names).stiffness for k, run in enumerate(runs)}
            stiffness = of_all(stiffness, alone)
        torsion = [run.torsion[run.settled, joint] for run in runs]
        model = JointTorsion(
            names[joint],
            terms,
            coefficients,
            fastest,
            0.0,
            (),
            stiffness,
            tuple(sets),
            float(np.sqrt(np.mean([white_noise(x) ** 2 for x in torsion]))),
            float(np.sqrt(np.mean([np.var(x) for x in torsion]))),
            float(np.mean([s.held_out_rms for s in sets])),
        )
        return _with_ripple(model, runs[0], joint)

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
    def _unusable(runs: list[TorsionRun], joint: int) -> str:
        if not all(np.isfinite(run.torsion[:, joint]).all() for run in runs):
            return "no link position"
        if not all(np.isfinite(run.torque[:, joint]).all() for run in runs):
            return "no torque"
        way = max(float(np.ptp(run.position[run.settled, joint])) for run in runs)
        return f"it moves by {way:.2g} rad only" if way < MOVED else ""


def _with_ripple(model: JointTorsion, run: TorsionRun, joint: int) -> JointTorsion:
    """With the ripple and the zero of one run; in others phase and zero may differ."""
    torsion = model.smooth(run, joint)
    angle, rest = (x[run.settled] for x in (run.position[:, joint] - torsion, run.torsion[:, joint] - torsion))
    ripples = find_ripples(angle, rest, run.velocity[run.settled, joint], run.rate)
    return replace(model, ripples=ripples, zero=float(rest.mean()))


def _rows(runs: list[TorsionRun], joint: int, tables: list[np.ndarray]) -> TorsionRows:
    parts = []
    for number, (run, table) in enumerate(zip(runs, tables, strict=True)):
        kept = slice(run.settled.start, run.settled.stop, max(1, int(run.rate / RATE)))
        q, qd = run.position[kept, joint], run.velocity[kept, joint]
        torsion = run.low_pass.filter(run.torsion[:, joint])[kept]
        parts.append((table[kept], torsion, np.full(len(q), number), q, qd))
    return TorsionRows(*(np.concatenate(values) for values in zip(*parts, strict=True)))
