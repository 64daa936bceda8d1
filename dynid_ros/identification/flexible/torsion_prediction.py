"""Prediction of the torsion of joints from their motors, by identified or saved coefficients."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import IdentificationError, IdentifiedFileError
from dynid_ros.identification.flexible.torsion_terms import (
    OWN,
    Ripple,
    Term,
    TorsionRun,
    columns,
    neighbour_term,
    torsion_run,
)
from dynid_ros.identified.flexible_joints import SavedTorsion, read_torsion
from dynid_ros.identified.section import as_number, file_of
from dynid_ros.recording import Recording

MDEG = float(np.rad2deg(1e3))
"""Factor from rad to mdeg."""
DISPLAY_UNITS = {False: (MDEG, "mdeg"), True: (1e6, "µm")}
"""Factor and unit in which torsion is displayed, of revolute and prismatic joints."""


@dataclass(frozen=True, eq=False)
class TorsionModel:
    """Torsion of one joint: linear terms and ripples.

    Attributes:
        name: Name of the joint.
        terms: Terms in the order of their columns.
        coefficients: Coefficients (k,) of the columns.
        fastest: Highest speed in the fitted recordings, rad/s or m/s.
        zero: Torsion without the terms, by the zeros of the encoders, rad or m.
        ripples: Ripples of the link encoder.
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
        recording: Name of the data.
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
        joints: Models by name.
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
