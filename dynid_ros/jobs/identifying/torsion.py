"""From recordings with link encoders to `identified.yaml` and `report.html`: torsion and stiffness of joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid_ros.files import all_or_none, writable_folder
from dynid_ros.identification.flexible import TorsionIdentification, TorsionResult
from dynid_ros.identification.flexible.torsion_identification import MDEG, JointTorsion, TorsionValidation
from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.jobs.checking import check_apart, checked
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks.finding import Finding
from dynid_ros.report.torsion import write_torsion_report


@dataclass(frozen=True)
class TorsionJob:
    """What the job leaves: the result, the files and what the sanity check found.

    Attributes:
        validations: of recordings that were not fitted, by their names.

    """

    robot: RobotModel
    sources: tuple[str, ...]
    result: TorsionResult
    validations: dict[str, TorsionValidation]
    findings: tuple[Finding, ...]
    identified: Path
    report: Path

    def summary(self) -> str:
        """Result, validation, warnings and where the files are."""
        lines = [self.result.summary()]
        for name, validation in self.validations.items():
            lines.append(f"Validation on {name}: RMS of torsion and of what the prediction leaves, mdeg")
            for joint, own, rest in zip(
                self.result.joint_names, validation.torsion_rms, validation.residual_rms, strict=True
            ):
                lines += [f"  {joint:<20}{own * MDEG:>9.2f}{rest * MDEG:>9.2f}"] if np.isfinite(rest) else []
        lines += [f"warning: {finding}" for finding in self.findings]
        lines.append(f"wrote {self.identified} and {self.report}")
        return "\n".join(lines)

    def document(self) -> dict:
        """Content of `identified.yaml`, and the warnings of the sanity check."""
        found = torsion_document(self.robot, self.sources, self.result)
        return {**found, "warnings": [str(finding) for finding in self.findings]}


@all_or_none()
def identify_torsion(
    identification: TorsionIdentification,
    robot: RobotModel,
    recordings: Sequence[Recording],
    output: str | Path,
    validate: Sequence[Recording] = (),
) -> TorsionJob:
    """Check the recordings, fit, validate, write both files into `output`.

    Raises:
        RecordingError: the sanity check found an error in a recording, or one is to be fitted and validated.
        IdentificationError: no link positions, or recordings that hold too little.

    """
    check_apart(recordings, validate)
    output, sources = writable_folder(output), tuple(recording.source for recording in recordings)
    with progress(3) as step:
        step("looking for faults in the recordings")
        findings = checked([*recordings, *validate], None)
        step("identifying torsion")
        result = identification.fit(*recordings)
        validations = {recording.source: result.validate(recording) for recording in validate}
        step("writing the report")
        document = torsion_document(robot, sources, result)
        identified = save_identified(output / "identified.yaml", document)
        report = write_torsion_report(output / "report.html", robot, result, recordings, validate)
    return TorsionJob(robot, sources, result, validations, findings, identified, report)


def torsion_document(robot: RobotModel, sources: Sequence[str], result: TorsionResult) -> dict:
    """Head and section `torsion`."""
    found = new_document(robot, sources, {"cutoff": float(result.cutoff)})
    found["torsion"] = {name: _joint(model) for name, model in result.joints.items()}
    return {**found, "remarks": list(result.remarks)}


def _joint(model: JointTorsion) -> dict:
    stiffness = model.stiffness
    return {
        "stiffness": _number(stiffness.value),
        "stiffness_interval": [_number(end) for end in stiffness.interval],
        "undecided": stiffness.reason or None,
        "zero": float(model.zero),
        "delay": model.delay,
        "torsion_rms": model.torsion_rms,
        "held_out_rms": model.held_out_rms,
        "terms": list(model.sets[0].terms),
        "ripples": [
            {"per_turn": float(r.frequency), "amplitude": float(r.amplitude), "phase": float(r.phase)}
            for r in model.ripples
        ],
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
