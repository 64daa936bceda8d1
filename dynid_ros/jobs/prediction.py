"""From an `identified.yaml` and a recording to measured and predicted torque, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.all_checks import check
from dynid_ros.errors import IdentificationError, IdentifiedFileError
from dynid_ros.files import atomic_file, writable_file
from dynid_ros.identification.equations import validate
from dynid_ros.identification.flexible.torsion_prediction import TorsionModels, TorsionValidation
from dynid_ros.identification.static_samples import DERIVATIVE_WINDOW, SampleRules, Samples
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import LinkModel, link_model
from dynid_ros.identified.section import file_of
from dynid_ros.identified.validation import Validation, validate_torque
from dynid_ros.jobs.inputs import checked
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.tables import write_columns
from dynid_ros.signals import differentiate

MINIMUM_SAMPLES = 10
"""Fewest samples from which velocity is derived."""
UNFILTERED = "compared sample by sample, nothing filtered"


@dataclass(frozen=True)
class PredictionJob:
    """What the job leaves: the agreement, how to take it, and the table."""

    validation: Validation | TorsionValidation
    remarks: tuple[str, ...]
    predicted: Path

    @property
    def files(self) -> dict[str, Path]:
        """The table."""
        return {"predicted": self.predicted}

    def summary(self) -> str:
        """Agreement per joint, remarks and where the file is."""
        return "\n".join([self.validation.title(), self.validation.table(), *self.remarks, f"wrote {self.predicted}"])

    def document(self) -> dict:
        """An entry of `validation` in `identified.yaml`, and the remarks."""
        return {**self.validation.document(), "remarks": list(self.remarks)}


def predict(model: str | Path, robot: RobotModel, recording: Recording, output: str | Path) -> PredictionJob:
    """Predict the torque of every sample of a recording with the model in `identified.yaml`, and write a table.

    Its columns are `t` (s, since the first sample) and per joint `<joint>_measured`, as recorded, and
    `<joint>_predicted` (N m or N); NaN where nothing was measured or can be predicted. A file with links predicts the
    whole torque, one of a gravity identification gravity and friction alone.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or holds neither links nor gravity.
        RecordingError: a joint is not in the recording.
        IdentificationError: no torque was recorded, or too few samples.
    """
    output, document = writable_file(output), load_identified(model)
    recording = recording.select(robot.joint_names)
    if not np.isfinite(recording.torque).any():
        raise IdentificationError(
            f"{recording.source}: no torque to compare with; record effort, or name the topic of the torques"
        )
    with progress(2) as step:
        step("predicting")
        known = _model(document, robot)
        predicted = _predicted(known, recording)
        validation, remarks = _compared(known, recording, predicted)
        step("looking for faults in the recording")
        remarks += [f"{finding.severity} in the recording: {finding}" for finding in check(recording, robot)]
    return PredictionJob(validation, tuple(remarks), write_table(output, recording, recording.torque, predicted))


def predict_torsion(document: Mapping, recording: Recording, output: str | Path) -> PredictionJob:
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
    return PredictionJob(validation, remarks, write_table(output, recording, measured, predicted))


@dataclass(frozen=True)
class ViewJob:
    """What is shown, and where."""

    recording: str
    view: Path | None

    @property
    def files(self) -> dict[str, Path]:
        """The file for the viewer."""
        return {} if self.view is None else {"view": self.view}

    def summary(self) -> str:
        """A line."""
        return f"{self.recording} is in the viewer" if self.view is None else f"wrote {self.view}: rerun {self.view}"

    def document(self) -> dict:
        """Which recording."""
        return {"recording": self.recording}


def view(robot: RobotModel, recording: Recording, model: str | Path | None, output: str | Path | None) -> ViewJob:
    """Show a recording in the viewer of Rerun, or write the file for it; with the torque that a model predicts.

    Raises:
        IdentifiedFileError: as `predict`.
        RecordingError: a joint is not in the recording, or Rerun is not installed.
        IdentificationError: as `predict`.
    """
    from dynid_ros.report.rerun_log import log_to_rerun  # noqa: PLC0415  # draws

    output, predicted = None if output is None else writable_file(output), None
    recording = recording.select(robot.joint_names)
    if model is not None:
        predicted = _predicted(_model(load_identified(model), robot), recording)
    return ViewJob(recording.source, log_to_rerun(robot, recording, predicted, output))


def _model(document: dict, robot: RobotModel) -> LinkModel | IdentifiedGravity:
    if "links" in document:
        return link_model(document, robot)
    if "gravity" in document:
        return IdentifiedGravity(robot, document)
    raise IdentifiedFileError(f"{file_of(document)}: neither links nor gravity in it; identify one of them first")


def _predicted(model: LinkModel | IdentifiedGravity, recording: Recording) -> NDArray:
    """(N, n) torque of every sample."""
    if isinstance(model, LinkModel):
        return model.predict_recording(recording)
    every = _every_sample(recording)
    return model.predict(every.position, every.velocity, every.direction)


def _compared(
    model: LinkModel | IdentifiedGravity, recording: Recording, predicted: NDArray
) -> tuple[Validation, list[str]]:
    """How both agree, and how they were compared."""
    if isinstance(model, LinkModel):
        try:
            remark = f"compared after a low-pass at {model.signals.cutoff:g} Hz on both, without standstill at the ends"
            return validate(model, recording), [remark]
        except IdentificationError as error:
            return _sample_by_sample(recording, predicted), [f"{UNFILTERED}: {error}"]
    remarks = [
        f"{UNFILTERED}; this model has gravity and friction but no inertias: accelerations are in the difference"
    ]
    remarks += [f"{joint}: no prediction, {reason}" for joint, reason in model.reasons.items()]
    return _sample_by_sample(recording, predicted), remarks


def _every_sample(recording: Recording) -> Samples:
    """All samples as gravity identification has them; friction of either sign may hold a joint at standstill."""
    if recording.n_samples < MINIMUM_SAMPLES:
        raise IdentificationError(f"{recording.source}: only {recording.n_samples} samples; record longer")
    velocity, _ = differentiate(recording.time, recording.position, DERIVATIVE_WINDOW)
    moving = np.abs(velocity) >= SampleRules().rest_velocity
    return Samples(
        position=recording.position,
        velocity=np.where(moving, velocity, 0.0),
        torque=recording.torque,
        direction=np.where(moving, np.sign(velocity), 0.0),
        static=~moving.any(axis=1),
        time=recording.time,
        part=np.zeros(recording.n_samples, dtype=int),
    )


def _sample_by_sample(recording: Recording, predicted: NDArray) -> Validation:
    known = np.isfinite(recording.torque) & np.isfinite(predicted)
    rows = known[:, known.any(axis=0)].all(axis=1)
    if not known.any() or not rows.any():
        raise IdentificationError(
            f"{recording.source}: no sample has both measured and predicted torque; record longer"
        )
    return validate_torque(recording.source, recording.joint_names, recording.torque[rows], predicted[rows])


def write_table(path: Path, recording: Recording, measured: NDArray, predicted: NDArray) -> Path:
    """Write `t` and both (N, n) side by side for each joint of the recording."""
    names = [f"{joint}_{what}" for joint in recording.joint_names for what in ("measured", "predicted")]
    pairs = np.stack([measured, predicted], axis=2).reshape(recording.n_samples, -1)
    table = np.column_stack([recording.time, pairs])
    with atomic_file(path) as file:
        write_columns(file, ["t", *names], table)
    return path
