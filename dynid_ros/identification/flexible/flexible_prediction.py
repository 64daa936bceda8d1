"""Prediction of the links' motion and the motors' torques from the recorded motion of the motors alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_parameters import Layout, motor_columns
from dynid_ros.identification.flexible.link_response import LinkMotion, LinkResponse
from dynid_ros.identification.flexible.run_residuals import motor_direction
from dynid_ros.identification.flexible.runs import Run, runs
from dynid_ros.recording import Recording
from dynid_ros.signals import Motion, central_differences


@dataclass(frozen=True, eq=False)
class FlexiblePrediction:
    """Predicted and measured signals at N samples, (N, n) each.

    Attributes:
        time: Times (N,), s.
        link: Positions of the links, rad or m.
        deflection: Deflections q_m - q of the springs.
        spring_torque: Torques of the springs, N m or N.
        measured_torque: Torques of the motors as recorded.
        measured_link: Positions of the links as recorded, on the robot's clock, without zero offset; NaN where missing.
    """

    time: NDArray
    link: NDArray
    deflection: NDArray
    spring_torque: NDArray
    torque: NDArray
    measured_torque: NDArray
    measured_link: NDArray


def predict(layout: Layout, values: NDArray, recording: Recording, band: float) -> FlexiblePrediction:
    """Predict every stretch of motion of a recording, without its first and last moments.

    The initial state of the links is that of a rigid arm; its error dies out with its oscillation.

    Args:
        layout: Order of the parameters.
        values: Parameters (p,).
        recording: Positions of the motors, and signals to compare with.
        band: Highest frequency of the motion, Hz.

    Raises:
        RecordingError: A joint of the model is not in the recording.
        IdentificationError: There is no stretch of motion, or no motion of the links fits it.
    """
    motion = recording.select(layout.robot.joint_names)
    link = motion.link_position if motion.link_position is not None else np.full_like(motion.position, np.nan)
    found = []
    for run in runs(motion, motion.time, link, same_clock=True, band=band):
        response = LinkResponse(layout.robot, layout.base, run.fine, run.step / run.parts, np.empty((len(run.fine), 0)))
        guess = _rigid_guess(layout, values, run)
        start = np.stack([guess[0], run.motor.velocity[0]])
        moved = response.solve(layout.unpack(values), start, guess)
        found.append(predict_run(layout, values, run, moved, zero=np.zeros(run.n_joints)))
    return concatenate(found)


def predict_run(
    layout: Layout, values: NDArray, run: Run, motion: LinkMotion, *, zero: NDArray, clock: float = 0.0
) -> FlexiblePrediction:
    """Return the prediction of one run with a motion of its links.

    Args:
        layout: Order of the parameters.
        values: Parameters (p,).
        run: Stretch of motion.
        motion: Motion of its links.
        zero: Offsets (n,) of the measured positions of the links, rad or m.
        clock: Correction of the times of the links' sensor, s.
    """
    parameters = layout.unpack(values)
    position = motion.position[:: run.parts]
    deflection = run.motor.position - position
    terms = motor_columns(run.motor.velocity, run.motor.acceleration, motor_direction(run), layout.motor_terms)
    measured = np.full_like(position, np.nan)
    for i in range(run.n_joints):
        if (spline := run.link_spline(i, clock)) is not None:
            inside = (run.time >= spline.x[0]) & (run.time <= spline.x[-1])
            measured[inside, i] = spline(run.time[inside]) - zero[i]
    return FlexiblePrediction(
        time=run.time,
        link=position,
        deflection=deflection,
        spring_torque=parameters.spring_torque(deflection),
        torque=parameters.motor_torque(deflection, terms),
        measured_torque=run.torque,
        measured_link=measured,
    )


def concatenate(parts: Sequence[FlexiblePrediction]) -> FlexiblePrediction:
    """Return predictions one after the other.

    Raises:
        IdentificationError: There is no prediction.
    """
    if not parts:
        raise IdentificationError("nothing to predict: no stretch of motion")
    names = FlexiblePrediction.__dataclass_fields__
    return FlexiblePrediction(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _rigid_guess(layout: Layout, values: NDArray, run: Run) -> NDArray:
    """Return the positions of the links behind motors that move alike, less the deflection that this motion needs."""
    parameters = layout.unpack(values)
    motor = Motion(run.fine, *central_differences(run.fine, run.step / run.parts))
    regressor = layout.base.reduce(layout.robot.torque_regressor(*motor))
    torque = regressor @ parameters.links + parameters.viscous * motor.velocity
    stiffness = np.array([values[i] for i in layout.index("stiffness")])
    return run.fine - torque / stiffness
