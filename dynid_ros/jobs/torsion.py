"""Torsion of joints with link encoders: from recordings to `identified.yaml`, and from that to other recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynid_ros.files import all_or_none, writable_file, writable_folder
from dynid_ros.identification.flexible import TorsionIdentification
from dynid_ros.identification.flexible.torsion_prediction import TorsionModels, TorsionValidation
from dynid_ros.identified.identified_file import RecordedJoints, new_document, save_identified
from dynid_ros.jobs.identification import Job
from dynid_ros.jobs.inputs import check_apart, checked
from dynid_ros.jobs.prediction import write_table
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.torsion import write_torsion_report


@all_or_none()
def identify_torsion(
    identification: TorsionIdentification,
    robot: RobotModel | None,
    recordings: Sequence[Recording],
    output: str | Path,
    validate: Sequence[Recording] = (),
) -> Job:
    """Check the recordings, fit, validate, write both files into `output`.

    Args:
        identification: with its settings.
        robot: the arm, for the file; None: its joints are those of the recordings.
        recordings: to fit.
        output: folder.
        validate: recordings to predict, not to fit; with link positions.

    Raises:
        RecordingError: the sanity check found an error in a recording, or one is to be fitted and validated.
        IdentificationError: no link positions, or recordings that hold too little.
    """
    check_apart(recordings, validate)
    output = writable_folder(output, "identified.yaml", "report.html")
    with progress(3) as step:
        step("looking for faults in the recordings")
        findings = checked([*recordings, *validate], None, motion=True)
        step("identifying torsion")
        slides = zip(robot.joint_names, robot.chain.prismatic, strict=True) if robot else ()
        result = identification.fit(*recordings, prismatic=[name for name, prismatic in slides if prismatic])
        validations = [result.validate(recording) for recording in validate]
        step("writing the report")
        about = robot or RecordedJoints(result.joint_names)
        document = new_document(about, [recording.source for recording in recordings], {"cutoff": float(result.cutoff)})
        document["torsion"] = {name: joint.entry() for name, joint in result.joints.items()}
        document["torsion_validation"] = [validation.document() for validation in validations]
        document["remarks"] = list(result.remarks)
        files = {
            "identified": save_identified(output / "identified.yaml", document),
            "report": write_torsion_report(output / "report.html", about, result, recordings, validate),
        }
    lines = [line for one in validations for line in (_head(one), one.table())]
    return Job(result, document, files, findings, lines, missing=result.missing)


@dataclass(frozen=True)
class TorsionPrediction:
    """What the prediction of a recording leaves: the agreement, and the table."""

    validation: TorsionValidation
    remarks: tuple[str, ...]
    predicted: Path

    @property
    def files(self) -> Mapping[str, Path]:
        """The table."""
        return {"predicted": self.predicted}

    def summary(self) -> str:
        """Agreement per joint, remarks and where the file is."""
        return "\n".join([_head(self.validation), self.validation.table(), *self.remarks, f"wrote {self.predicted}"])

    def document(self) -> dict:
        """An entry of `torsion_validation` in `identified.yaml`, and the remarks."""
        return {**self.validation.document(), "remarks": list(self.remarks)}


def predict_torsion(document: Mapping, recording: Recording, output: str | Path) -> TorsionPrediction:
    """Predict the torsion of every sample of a recording by the section `torsion`, and write a table.

    Its columns are `t` (s, since the first sample) and per joint `<joint>_measured` and `<joint>_predicted`, motor less
    link position, rad; NaN where there is no link position, or no model.

    Raises:
        IdentifiedFileError: the file is malformed, or has no coefficients.
        RecordingError: a joint is not in the recording.
        IdentificationError: no link positions to compare with, no torque, gaps, or too short a recording.
    """
    output, models = writable_file(output), TorsionModels.of_document(document)
    recording = recording.select(models.joint_names)
    with progress(2) as step:
        step("predicting")
        validation, predicted = models.validate(recording), models.predict(recording)
        step("looking for faults in the recording")
        remarks = tuple(f"{finding.severity} in the recording: {finding}" for finding in checked([recording], None))
    measured = recording.position - recording.link_position
    return TorsionPrediction(validation, remarks, write_table(output, recording, measured, predicted))


def _head(validation: TorsionValidation) -> str:
    return f"Validation on {validation.recording}: motor less link, predicted from the motors"
