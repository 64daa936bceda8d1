"""Prediction of a recording with an `identified.yaml`: measured and predicted torque in a table, or in a viewer."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.all_checks import check
from dynid_ros.errors import DynidError, IdentificationError, IdentifiedFileError
from dynid_ros.files import atomic_file, writable_file
from dynid_ros.files.disk_arrays import new_array, row_blocks
from dynid_ros.identification.flexible.torsion_choice import TorsionModels, TorsionValidation
from dynid_ros.identification.link_prediction import validate
from dynid_ros.identification.repeated_motion import measure_repeatability
from dynid_ros.identification.static_samples import DERIVATIVE_WINDOW, SampleRules, Samples
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import file_of, load_identified
from dynid_ros.identified.links import LinkModel, link_model
from dynid_ros.identified.validation import REPEATABILITY_KEY, Repeatability, Validation, validate_torque
from dynid_ros.jobs.inputs import checked
from dynid_ros.jobs.screen import Screen, progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.tables import write_columns
from dynid_ros.signals import differentiate

MIN_SAMPLES = 10
"""Smallest number of samples from which a velocity can be computed."""
UNFILTERED_TEXT = "compared sample by sample, nothing filtered"


@dataclass(frozen=True)
class PredictionJob:
    """Result of a prediction.

    Attributes:
        validation: agreement of predicted and measured torque, or torsion.
        remarks: sentences on the comparison, and findings in the recording.
        predicted: path of the table.
        repeatability: difference of torque between repetitions of a motion; None: not measured, or no repetition.
    """

    validation: Validation | TorsionValidation
    remarks: tuple[str, ...]
    predicted: Path
    repeatability: Repeatability | None = None

    @property
    def files(self) -> dict[str, Path]:
        """Written files by name."""
        return {"predicted": self.predicted}

    def screen(self) -> Screen:
        """Return the agreement by joint, remarks and the file."""
        table = self.validation.table().splitlines()
        if self.repeatability is None:
            return Screen([self.validation.title()], table, self.remarks, [self.predicted])
        remarks = [*self.repeatability.sentences(), *self.remarks]
        return Screen([self.validation.title()], [*table, "", *self.repeatability.table()], remarks, [self.predicted])

    def document(self) -> dict:
        """Return an entry of `validation` in `identified.yaml`, and the remarks."""
        measured = {} if self.repeatability is None else {REPEATABILITY_KEY: self.repeatability.document()}
        return {**self.validation.document(), "remarks": list(self.remarks), **measured}


def predict(model: str | Path, robot: RobotModel, recording: Recording, output: str | Path) -> PredictionJob:
    """Predict the torque of every sample of a recording with the model in `identified.yaml`, and write a table.

    The columns are `t` (s, since the first sample) and for each joint `<joint>_measured`, as recorded, and
    `<joint>_predicted` (N m or N); NaN where a torque was not measured or cannot be predicted. A file with links
    predicts the whole torque; a file with gravity predicts gravity and friction.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or contains neither links nor gravity.
        RecordingError: a joint is not in the recording.
        IdentificationError: the recording has no torque, or too few samples.
    """
    output, document = writable_file(output), load_identified(model)
    recording = recording.select(robot.joint_names)
    if not np.isfinite(recording.torque).any():
        raise IdentificationError(
            f"{recording.source}: no torque to compare with; record effort, or name the topic of the torques"
        )
    with progress(2) as step:
        step("predicting")
        torque_model = _read_model(document, robot)
        predicted = _predict_torque(torque_model, recording)
        validation, remarks = _compare(torque_model, recording, predicted)
        repeatability = None
        if isinstance(torque_model, LinkModel):
            with suppress(DynidError):  # too short for the filters
                repeatability = measure_repeatability(robot, torque_model.signals, [recording], torque_model)
        step("looking for faults in the recording")
        remarks += [f"{finding.severity} in the recording: {finding}" for finding in check(recording, robot)]
    table = write_table(output, recording, recording.torque, predicted)
    return PredictionJob(validation, tuple(remarks), table, repeatability)


def predict_torsion(document: Mapping, recording: Recording, output: str | Path) -> PredictionJob:
    """Predict the torsion of every sample of a recording with the section `torsion`, and write a table.

    The columns are `t` (s, since the first sample) and for each joint `<joint>_measured` and `<joint>_predicted`, motor
    minus link position, rad; NaN where there is no link position, or no model.

    Raises:
        IdentifiedFileError: the file is malformed, or has no coefficients.
        RecordingError: a joint is not in the recording.
        IdentificationError: the recording has no link positions, no torque, gaps, or is too short.
    """
    output = writable_file(output)
    models = TorsionModels.of_document(document)
    recording = recording.select(models.joint_names)
    with progress(2) as step:
        step("predicting")
        validation = models.validate(recording)
        predicted = models.predict(recording)
        step("looking for faults in the recording")
        remarks = tuple(f"{finding.severity} in the recording: {finding}" for finding in checked([recording], None))
    measured = recording.position - recording.link_position
    return PredictionJob(validation, remarks, write_table(output, recording, measured, predicted))


def view(robot: RobotModel, recording: Recording, model: str | Path | None, output: str | Path | None) -> Path | None:
    """Show a recording in the viewer of Rerun, or write a file for the viewer.

    Args:
        robot: the arm.
        recording: recording to show.
        model: `identified.yaml` whose predicted torque is shown too; None: no prediction.
        output: path of the file; None: open the viewer.

    Returns:
        Path of the file; None if the viewer was opened.

    Raises:
        IdentifiedFileError: see `predict`.
        RecordingError: a joint is not in the recording, or Rerun is not installed.
        IdentificationError: see `predict`.
    """
    from dynid_ros.report.rerun_log import log_to_rerun  # noqa: PLC0415  # draws

    output = None if output is None else writable_file(output)
    predicted = None
    recording = recording.select(robot.joint_names)
    if model is not None:
        predicted = _predict_torque(_read_model(load_identified(model), robot), recording)
    return log_to_rerun(robot, recording, predicted, output)


def _read_model(document: dict, robot: RobotModel) -> LinkModel | IdentifiedGravity:
    if "links" in document:
        return link_model(document, robot)
    if "gravity" in document:
        return IdentifiedGravity(robot, document)
    raise IdentifiedFileError(f"{file_of(document)}: neither links nor gravity in it; identify one of them first")


def _predict_torque(model: LinkModel | IdentifiedGravity, recording: Recording) -> NDArray:
    """Return the predicted torque (N, n) of every sample."""
    if isinstance(model, LinkModel):
        return model.predict_recording(recording)
    samples = _take_every_sample(recording)
    return model.predict(samples.position, samples.velocity, samples.direction)


def _compare(
    model: LinkModel | IdentifiedGravity, recording: Recording, predicted: NDArray
) -> tuple[Validation, list[str]]:
    """Return the agreement with measured torque, and remarks on its computation."""
    if isinstance(model, LinkModel):
        try:
            remark = f"compared after a low-pass at {model.signals.cutoff:g} Hz on both, without standstill at the ends"
            return validate(model, recording), [remark]
        except IdentificationError as error:
            return _sample_by_sample(recording, predicted), [f"{UNFILTERED_TEXT}: {error}"]
    remarks = [
        f"{UNFILTERED_TEXT}; this model has gravity and friction but no inertias: accelerations are in the difference"
    ]
    remarks += [f"{joint}: no prediction, {reason}" for joint, reason in model.reasons.items()]
    return _sample_by_sample(recording, predicted), remarks


def _take_every_sample(recording: Recording) -> Samples:
    """Return all samples in the form of gravity identification; at standstill the sign of friction is unknown."""
    if recording.n_samples < MIN_SAMPLES:
        raise IdentificationError(f"{recording.source}: only {recording.n_samples} samples; record longer")
    (velocity,) = differentiate(recording.time, recording.position, DERIVATIVE_WINDOW, orders=(1,))
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
    """Compare torques of the samples in which all predicted joints have a measured and a predicted torque."""
    is_known = np.isfinite(recording.torque) & np.isfinite(predicted)
    rows = is_known[:, is_known.any(axis=0)].all(axis=1)
    if not is_known.any() or not rows.any():
        raise IdentificationError(
            f"{recording.source}: no sample has both measured and predicted torque; record longer"
        )
    return validate_torque(recording.source, recording.joint_names, recording.torque[rows], predicted[rows])


def write_table(path: Path, recording: Recording, measured: NDArray, predicted: NDArray) -> Path:
    """Write a table of `t`, and measured and predicted values (N, n) side by side for each joint; return its path."""
    names = [f"{joint}_{label}" for joint in recording.joint_names for label in ("measured", "predicted")]
    table = new_array(recording.n_samples, 1 + len(names))
    for rows in row_blocks(len(table)):
        table[rows, 0] = recording.time[rows]
        table[rows, 1::2] = measured[rows]
        table[rows, 2::2] = predicted[rows]
    with atomic_file(path) as file:
        write_columns(file, ["t", *names], table)
    return path
