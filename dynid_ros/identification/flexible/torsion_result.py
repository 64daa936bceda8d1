"""Torsion of joints as identified: prediction, and what may be said of stiffness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.spring_stiffness import Stiffness
from dynid_ros.identification.flexible.torsion_choice import TermSet
from dynid_ros.identification.flexible.torsion_ripple import Ripple
from dynid_ros.identification.flexible.torsion_signals import TorsionRun, torsion_run
from dynid_ros.identification.flexible.torsion_terms import Term, columns, columns_of
from dynid_ros.recording import Recording

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
        stiffness: of the joint, and how well it is told.
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
    """Torsion as recorded beside its prediction, means removed; (n,) rad, NaN of joints without a model.

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
        """Prediction beside the torsion of a recording that has link positions.

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
