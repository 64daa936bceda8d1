"""Where links go and which torques motors need, from the recorded motion of the motors alone."""

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
        time: (N,) s.
        link: positions of the links, rad or m.
        deflection: of the springs, q_m - q.
        spring_torque: N m or N.
        torque: of the motors.
        measured_torque: as recorded.
        measured_link: as recorded, on the robot's clock and without the zero offset; NaN where not measured.
    """

    time: NDArray
    link: NDArray
    deflection: NDArray
    spring_torque: NDArray
    torque: NDArray
    measured_torque: NDArray
    measured_link: NDArray


def predict(layout: Layout, values: NDArray, recording: Recording, band: float) -> FlexiblePrediction:
    """Prediction for every stretch of motion of a recording, without its first and last moments.

    The links' state at the start is taken from a rigid arm's; what is wrong with it dies out as its oscillation does.

    Args:
        layout: of the parameters.
        values: (p,) parameters.
        recording: positions of the motors, and what there is to compare with.
        band: highest frequency of the motion, Hz.

    Raises:
        RecordingError: a joint of the model is not in the recording.
        IdentificationError: no stretch of motion, or none of the links that goes with it.
    """
    motion = recording.select(layout.robot.joint_names)
    link = motion.link_position if motion.link_position is not None else np.full_like(motion.position, np.nan)
    found = []
    for run in runs(motion, motion.time, link, same_clock=True, band=band):
        response = LinkResponse(layout.robot, layout.base, run.fine, run.step / run.parts, np.empty((len(run.fine), 0)))
        guess = _rigid_guess(layout, values, run)
        start = np.stack([guess[0], run.motor.velocity[0]])
        moved = response.solve(layout.unpack(values), start, guess)
        found.append(of_run(layout, values, run, moved, zero=np.zeros(run.n_joints)))
    return joined(found)


def of_run(
    layout: Layout, values: NDArray, run: Run, motion: LinkMotion, *, zero: NDArray, clock: float = 0.0
) -> FlexiblePrediction:
    """Prediction of one run whose links move so.

    Args:
        layout: of the parameters.
        values: (p,) parameters.
        run: the stretch.
        motion: of its links.
        zero: (n,) to take from the measured positions of the links, rad or m.
        clock: to add to the times of the links' sensor, s.
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


def joined(parts: Sequence[FlexiblePrediction]) -> FlexiblePrediction:
    """One after the other.

    Raises:
        IdentificationError: there is none.
    """
    if not parts:
        raise IdentificationError("nothing to predict: no stretch of motion")
    names = FlexiblePrediction.__dataclass_fields__
    return FlexiblePrediction(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _rigid_guess(layout: Layout, values: NDArray, run: Run) -> NDArray:
    """Positions of the links if they moved as the motors do but for the deflection that this takes."""
    parameters = layout.unpack(values)
    motor = Motion(run.fine, *central_differences(run.fine, run.step / run.parts))
    regressor = layout.base.reduce(layout.robot.torque_regressor(*motor))
    torque = regressor @ parameters.links + parameters.viscous * motor.velocity
    stiffness = np.array([values[i] for i in layout.index("stiffness")])
    return run.fine - torque / stiffness
