"""Where a wrist sensor's axes and clock are against those of the joints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid_ros.errors import RecordingError
from dynid_ros.estimation.normal_equations import LinkProblem
from dynid_ros.identification.wrench.columns import TURN, WrenchColumns
from dynid_ros.identification.wrench.equations import WrenchEquations
from dynid_ros.identification.wrench.track import WrenchTrack
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals import LowPass, time_lag

LONGEST_LAG = 0.1
"""Largest lag between sensor and joints that is looked for, s."""
ROUNDS = 4
SETTLED = 5e-5
"""Change of the lag at which it is found, s; what is left is estimated with the load."""
TURN_ROUNDS = 10
SMALL = 0.002
"""Turn, rad, of which the cosine is one: what is left is estimated with the load."""
SEEN = 10.0
"""Standard errors of white noise by which a load must be seen for the turn of its sensor to be."""


def turn_of(problem: Callable[[NDArray], LinkProblem]) -> NDArray:
    """(3, 3) axes of the sensor in the tip's, as columns.

    Columns of a turn hold for small angles: readings are turned by what was found, and the rest is found again.

    Args:
        problem: of readings multiplied by (3, 3).

    """
    turn = np.eye(3)
    for _ in range(TURN_ROUNDS):
        found = problem(turn)
        columns = found.factors.columns
        assert isinstance(columns, WrenchColumns)
        fit, _ = found.weighted()
        change = fit.solution[[columns.names.index(name) for name in TURN]]
        size = np.linalg.norm(change)
        if size < SMALL or not abs(fit.solution[0]) > SEEN * np.sqrt(fit.covariance[0, 0]):
            break
        turn = Rotation.from_rotvec(change * min(1.0, 1.0 / size)).as_matrix() @ turn
    return turn


def lag_of(robot: RobotModel, signals: LinkSignals, recording: Recording, track: WrenchTrack) -> float:
    """By how much later than the joints' the sensor's clock is, s.

    First from the correlation with the wrench that a fit without lag predicts, then with the load: a lag of τ leaves
    τ dw/dt of the wrench.
    """
    lag = 0.0
    columns = WrenchColumns(robot)
    for number in range(ROUNDS):
        equations = WrenchEquations(robot, signals, [recording], [track], [lag])
        problem = LinkProblem(equations.factors(columns), columns.own)
        fit, _ = problem.weighted()
        change = float(fit.solution[columns.names.index("lag")])
        if number == 0:
            change = _correlated(equations, columns, fit.solution, change)
        lag = float(np.clip(lag + change, -LONGEST_LAG, LONGEST_LAG))
        if abs(change) < SETTLED:
            break
    return lag


def _correlated(equations: WrenchEquations, columns: WrenchColumns, solution: NDArray, otherwise: float) -> float:
    """Lag by correlation, s; `otherwise` if there is none."""
    part = max(equations.segments, key=lambda segment: len(segment.time))
    load = [name in ("m", "mcx", "mcy", "mcz") or name.startswith("I") for name in columns.names]
    parameters = np.where(load, solution, 0.0)[: np.sum(load)]
    predicted = equations.robot.wrench_regressor(*part.motion) @ parameters
    low_pass = LowPass(equations.signals.cutoff, part.rate)
    try:
        return time_lag(low_pass.filter(predicted), low_pass.filter(part.torque[:, :6]), part.rate, LONGEST_LAG).lag
    except RecordingError:
        return otherwise
