"""Faults that a recording would not show, so that silence is not mistaken for a proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import MIN_WARNING_GAIN, SIGN, SWAP, Explanation
from dynid_ros.checks.gravity_direction import TILT_MIN_GAIN
from dynid_ros.checks.lag import MIN_SECOND_JOINT_GAIN
from dynid_ros.checks.link_origin import ORIGIN_MIN_GAIN, origin_columns
from dynid_ros.checks.signs_and_order import RATIO
from dynid_ros.checks.torque_model import TorqueProblem

HIDDEN_TILT_DEG = 5.0
"""Tilt of the base that a recording should show."""
HIDDEN_LAGS_S = (0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2)
"""Tried lags. The smallest visible one is reported, unless it is the first."""
HIDDEN_SHIFTS_M = (0.05, 0.1, 0.15, 0.2, 0.3)
"""Tried errors of an origin. The smallest visible one is reported, unless it is one of the first two."""
MAX_LISTED_NAMES = 6
SUBJECTS = {
    SIGN: "sign of torque or position",
    SWAP: "order",
    RATIO: "gear ratio of the position (half or twice)",
}


def undecided_hypotheses(explanations: Sequence[Explanation]) -> Iterator[str]:
    """Yield the hypotheses that explain the torques about as well as the unchanged recording."""
    for kind, subject in SUBJECTS.items():
        joints = [e.joints for e in explanations if e.kind == kind and e.joints and e.gain > -MIN_WARNING_GAIN]
        names = dict.fromkeys(" and ".join(pair) if kind == SWAP else pair[0] for pair in joints)
        if names:
            yield f"{subject}: {_listed(list(names))}"


def undecided_joints(problem: TorqueProblem) -> Iterator[str]:
    """Yield the joints that move too little to show anything."""
    names = [name for j, name in enumerate(problem.robot.joint_names) if j not in problem.equations.judged]
    if names:
        yield f"anything about joints that hardly move: {', '.join(names)}"


def undecided_geometry(problem: TorqueProblem) -> Iterator[str]:
    """Yield a tilt of the base, lags and wrong lengths that would not show, with the smallest that would."""
    robot = problem.robot
    if robot.n_joints > 1:
        shown = next((lag for lag in HIDDEN_LAGS_S if _lag_shows(problem, lag)), None)
        if shown != HIDDEN_LAGS_S[0]:
            smallest = f"shows from {1e3 * shown:.0f} ms" if shown else "never shows"
            yield f"a constant lag between torques and positions ({smallest})"
    size = float(np.linalg.norm(robot.gravity))
    if size:
        per_axis = problem.model.gravity_columns(problem.samples) @ problem.fit.rigid
        tangents = np.linalg.svd((robot.gravity / size)[None])[2][1:]
        changes = np.radians(HIDDEN_TILT_DEG) * size * np.tensordot(tangents, per_axis, 1)
        if min(_misfit_increase(problem, change) for change in changes) < TILT_MIN_GAIN:
            yield f"a base that is tilted by {HIDDEN_TILT_DEG:.0f} degrees"
    hidden = []
    for joint, columns in origin_columns(problem):
        shown = next((shift for shift in HIDDEN_SHIFTS_M if _shift_shows(problem, shift * columns)), None)
        if shown not in HIDDEN_SHIFTS_M[:2]:
            smallest = f"shows from {100 * shown:.0f} cm" if shown else "never shows"
            hidden.append(f"{robot.joint_names[joint]} ({smallest})")
    if hidden:
        yield f"an origin that is 10 cm off in the URDF: {_listed(hidden)}"


def _shift_shows(problem: TorqueProblem, changes: NDArray) -> bool:
    """Return whether a shift along any axis would show, given the changes (M, n, 3) of the torques by it."""
    return any(_misfit_increase(problem, change) >= ORIGIN_MIN_GAIN for change in np.moveaxis(changes, 2, 0))


def _misfit_increase(problem: TorqueProblem, change: NDArray) -> float:
    """Return how much worse the model fits the torques with this change (M, n)."""
    return problem.equations.explaining(problem.samples.torque + change).fit().misfit - problem.fit.misfit


def _lag_shows(problem: TorqueProblem, lag: float) -> bool:
    """Return whether torques that come this much later, or earlier, would fit worse in two joints."""
    fits = [problem.equations.explaining(problem.samples.delayed_torque(shift)).fit() for shift in (-lag, lag)]
    return min(fit.shared_gain(problem.fit) for fit in fits) >= MIN_SECOND_JOINT_GAIN


def _listed(names: list[str]) -> str:
    remaining = len(names) - MAX_LISTED_NAMES
    return ", ".join(names[:MAX_LISTED_NAMES]) + (f" and {remaining} more" if remaining > 0 else "")
