"""Low-pass of the driver's torque: detected in recordings, with its best cutoff by the equations of the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from dynid_ros.checks.low_pass import sure_low_pass
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals.driver_filter import DriverFilter

TRIAL_FRICTION = JointFriction(offset=True, sliding_length=1e-3)
"""Friction of any arm: steps at reversals show a low-pass best, and most arms have them as late as these."""
MAX_CUTOFF_FACTOR = 2.0
"""Largest factor of error of the detected cutoff, which is fitted to a thousand samples."""
CUTOFF_TOLERANCE = 0.01
"""Relative tolerance of the cutoff."""


def choose_torque_filter(
    robot: RobotModel, signals: LinkSignals, recordings: Sequence[Recording]
) -> DriverFilter | None:
    """Return the low-pass that filtered the torques within the band of the motion, or None.

    Args:
        robot: the arm.
        signals: filters of the recordings.
        recordings: recordings with the robot's joints in its order.

    Raises:
        IdentificationError: a recording is too short.
    """
    found = sure_low_pass(robot, recordings)
    if found is None or found.cutoff is None:
        return None
    columns = LinkColumns.of(robot, FrictionModel(TRIAL_FRICTION))
    first = np.log(found.cutoff)
    chosen = columns.chosen(columns.first)

    def at(logarithm: float) -> DriverFilter:
        return replace(found, cutoff=float(f"{np.exp(logarithm):.3g}"))

    def misfit(logarithm: float) -> float:
        equations: LinkEquations[LinkColumns] = LinkEquations(replace(signals, driver=at(logarithm)), recordings)
        _, noise = WeightedProblem(equations.factors(columns), chosen).weighted()
        return float(np.log(noise[noise > 0]).sum())

    bounds = first - np.log(MAX_CUTOFF_FACTOR), first + np.log(MAX_CUTOFF_FACTOR)
    return at(minimize_scalar(misfit, bounds=bounds, method="bounded", options={"xatol": CUTOFF_TOLERANCE}).x)
