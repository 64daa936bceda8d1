"""Torsion of joints from their motors, by coefficients that were identified or read from `identified.yaml`."""

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
from dynid_ros.identified.section import as_number, file_of
from dynid_ros.identified.torsion import SavedTorsion, read_torsion
from dynid_ros.recording import Recording

MDEG = float(np.rad2deg(1e3))
"""Factor from rad to mdeg."""
DISPLAY_UNITS = {False: (MDEG, "mdeg"), True: (1e6, "µm")}
"""Factor and unit in which torsion is displayed, of revolute and prismatic joints."""


@dataclass(frozen=True, eq=False)
class TorsionModel:
    """Torsion of one joint, linear in its coefficients, with ripple.

    Attributes:
        name: of the joint.
        terms: in the order of their columns.
        coefficients: (k,) of the columns.
        fastest: speed in what it was fitted to, rad/s.
        zero: torsion where all terms are zero, rad: zeros of the encoders.
        ripples: of the link encoder.
        prismatic: whether the joint slides: m instead of rad.
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
        """(M,) torsion by the terms, without zero and ripple, rad."""
        return columns(run, joint, self.terms, self.fastest) @ self.coefficients

    def predict(self, run: TorsionRun, joint: int) -> NDArray:
        """(M,) torsion, rad. Ripples are taken where the link encoder stands, as it reads or else as predicted."""
        torsion = self.zero + self.smooth(run, joint)
        link = run.link[:, joint]
        angle = link if np.isfinite(link).all() else run.position[:, joint] - torsion
        return torsion + sum(ripple.values(angle) for ripple in self.ripples)


@dataclass(frozen=True, eq=False)
class TorsionValidation:
    """Torsion as recorded compared with its prediction, which knows nothing of it; (n,) rad.

    NaN of joints without a model or a link position.

    Attributes:
        recording: name of the data.
        joint_names: of the n joints.
        torsion_rms: of the torsion about its mean.
        residual_rms: of torsion less prediction.
        offset: mean of torsion less prediction: zeros of encoders may change when they are switched on.
        centred_residual_rms: of torsion less prediction about `offset`.
        plain_residual_rms: likewise, of the prediction without ripples, whose phases change with these zeros.
        prismatic: names of the joints that slide.
    """

    recording: str
    joint_names: tuple[str, ...]
    torsion_rms: NDArray
    residual_rms: NDArray
    offset: NDArray
    centred_residual_rms: NDArray
    plain_residual_rms: NDArray
    prismatic: Collection[str]

    @property
    def unpredicted(self) -> tuple[str, ...]:
        """Joints whose torsion was not predicted."""
        return tuple(joint for joint, rms in zip(self.joint_names, self.residual_rms, strict=True) if np.isnan(rms))

    def title(self) -> str:
        """Return the line above `table`."""
        return f"Validation on {self.recording}: motor less link, predicted from the motors"

    def table(self) -> str:
        """One line per joint, for a terminal."""
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
        """Entry of the list `torsion_validation` in `identified.yaml`."""
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
        joint_names: of the n joints, in the order of the recordings.
        joints: models by name.
        cutoff: of the low-pass, Hz.
    """

    joint_names: tuple[str, ...]
    joints: Mapping[str, TorsionModel]
    cutoff: float

    @classmethod
    def of_document(cls, document: Mapping) -> TorsionModels:
        """Section `torsion` of an `identified.yaml`.

        Raises:
            IdentifiedFileError: without the section, without coefficients, or malformed.
        """
        names, cutoff, saved = read_torsion(document)
        return cls(names, {name: _model(document, names, name, one) for name, one in saved.items()}, cutoff)

    def predict(self, recording: Recording) -> NDArray:
        """(N, n) motor less link position, rad; NaN of joints without a model.

        From motor positions and torques. Link positions, where the recording has them, say where a ripple's encoder
        stands, and nothing else: no zero and no phase is taken from the recording that is predicted.

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
        torsion_rms, residual_rms, offset, centred_rms, plain_rms = figures
        return TorsionValidation(
            recording.source, self.joint_names, torsion_rms, residual_rms, offset, centred_rms, plain_rms, prismatic
        )

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
