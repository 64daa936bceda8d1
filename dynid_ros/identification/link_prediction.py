"""Prediction of recorded torque by models of links and friction, and its agreement with the measured torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.equations import LinkEquations, TorqueColumns
from dynid_ros.identified.links import LinkModel
from dynid_ros.identified.validation import Validation, unit_of_joints, validate_torque
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSegment


@dataclass(frozen=True, eq=False)
class Prediction:
    """Measured torque of a recording and its prediction by several models, low-passed alike.

    Attributes:
        segments: motion without standstill at the ends.
        time: (M,) s.
        measured: (M, n) torque.
        predicted: (M, n) torque by each model.
    """

    segments: Sequence[LinkSegment]
    time: NDArray
    measured: NDArray
    predicted: list[NDArray]


def predict_with(models: Sequence[LinkModel], recording: Recording) -> Prediction:
    """Return the prediction of a recording by several models, which is hardly slower than by one.

    Args:
        models: models of one robot with the same friction terms and filters.
        recording: motion and torque.

    Raises:
        IdentificationError: no torque, or a recording that is too short.
    """
    robot = models[0].robot
    columns = LinkColumns.of(robot, models[0].friction)
    # Columns of the friction terms are in the order of `columns`, which is that of the names.
    values = np.zeros((columns.size, len(models)))
    chosen = columns.chosen(columns.first)
    for i, model in enumerate(models):
        values[chosen, i] = [*columns.base.project(model.parameters), *model.coefficients]
    equations: LinkEquations[TorqueColumns] = LinkEquations(models[0].signals, [recording.select(robot.joint_names)])
    parts = list(equations.blocks(TorqueColumns(columns, values)))
    return Prediction(
        equations.segments,
        np.concatenate([block.time for block in parts]),
        np.concatenate([block.torque for block in parts]),
        [
            np.concatenate([np.stack([rows[:, i] for rows in b.rows], axis=1) for b in parts])
            for i in range(len(models))
        ],
    )


def compare(model: LinkModel, recording: Recording) -> tuple[NDArray, NDArray, NDArray]:
    """Return time (M,), measured and predicted torque (M, n), low-passed alike, without standstill at the ends.

    Raises:
        IdentificationError: as in `predict_with`.
    """
    prediction = predict_with([model], recording)
    return prediction.time, prediction.measured, prediction.predicted[0]


def validate(model: LinkModel, recording: Recording) -> Validation:
    """Compare a model with a recording and return the agreement per joint.

    Raises:
        IdentificationError: as in `predict_with`.
    """
    _, measured, predicted = compare(model, recording)
    unit = unit_of_joints(model.robot.chain.prismatic, "N m", "N")
    return validate_torque(recording.source, model.robot.joint_names, measured, predicted, unit)
