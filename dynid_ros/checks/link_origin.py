"""Joints that are elsewhere in the link before than the URDF has them, from the shift that fits the torques best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import Explanation
from dynid_ros.checks.jackknife import Jackknife
from dynid_ros.checks.torque_model import TorqueModel, TorqueProblem

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

LINK_ORIGIN: Final = "link origin"
ORIGIN_MIN_GAIN = 0.2
"""Smallest gain of a shift for a warning: less than for other hypotheses, because its size must be plausible too."""
MIN_SHIFT_M = 0.05
"""Smallest shift to report."""
MAX_SHIFT_M = 0.3
"""Largest shift to report; a larger one has another cause, which the model lacks."""
MAX_SHIFT_COST = 0.1
"""Smallest gain of the largest shift; it bounds shifts with little effect, such as along the joint's axis."""
DERIVATIVE_STEP_M = 1e-4
MAX_SHIFT_SAMPLES = 400
MAX_ITERATIONS = 2


def origin_explanations(problem: TorqueProblem) -> Iterator[Explanation]:
    """Yield the explanation by another origin of one joint.

    Gravity alone never shows it, because the parameters of the link before absorb it. Only fast motion does.
    """
    robot = problem.robot
    n = robot.n_joints
    problem = TorqueProblem(problem.model, problem.samples.thinned(MAX_SHIFT_SAMPLES))
    given = problem.fit
    if not np.any(np.isfinite(given.rms)) or n < 2:
        return
    shifts = _shift_columns(problem, given.rigid, range(1, n))
    if given.misfit - problem.terms.with_rigid(shifts).fit.misfit < ORIGIN_MIN_GAIN:
        return
    fits = [problem.terms.with_rigid(shifts[:, :, 3 * k : 3 * k + 3]).fit for k in range(n - 1)]
    joint = 1 + int(np.argmin([fit.misfit for fit in fits]))
    shift = np.zeros(3)
    shifted = problem
    for _ in range(MAX_ITERATIONS):
        shift = shift + _shift_step(shifted, joint, shift)
        shifted = TorqueProblem(TorqueModel(_shifted(robot, joint, shift)), problem.samples)
    gain = given.misfit - shifted.fit.misfit
    if gain < ORIGIN_MIN_GAIN or not MIN_SHIFT_M <= float(np.linalg.norm(shift)) <= MAX_SHIFT_M:
        return
    # Friction that the model lacks, wrong torque gains and delays can look like a shift.
    gain = min(gain, problem.presliding.fit.misfit - shifted.presliding.fit.misfit)
    if gain >= ORIGIN_MIN_GAIN and _is_certain(problem, shifts[:, :, 3 * joint - 3 : 3 * joint]):
        yield Explanation(
            LINK_ORIGIN,
            gain,
            "the torques fit better with its origin elsewhere in the link before than the URDF has it; where, the "
            "parameters absorb in part",
            "measure the lengths of the links; check that URDF, base and tip are those of this robot",
            (robot.joint_names[joint],),
            severity="warning",
        )


def _is_certain(problem: TorqueProblem, columns: NDArray) -> bool:
    """Return whether the first-order shift differs significantly from zero, given its columns (M, n, 3)."""
    jackknife = Jackknife(problem.presliding.terms, columns, problem.samples.disturbed_torques())
    return jackknife.estimate(np.flatnonzero(~jackknife.without_effect).tolist()).certain


def origin_columns(problem: TorqueProblem) -> list[tuple[int, NDArray]]:
    """Return the joints after the first, and the derivatives (M, n, 3) of the torques by each origin, N m / m."""
    n = problem.robot.n_joints
    columns = _shift_columns(problem, problem.fit.rigid, range(1, n))
    return [(k + 1, columns[:, :, 3 * k : 3 * k + 3]) for k in range(n - 1)]


def _shift_step(problem: TorqueProblem, joint: int, shift: NDArray) -> NDArray:
    """Return the further shift (3,) that fits best, if the whole shift has its cost."""
    columns = _shift_columns(problem, problem.fit.rigid, [joint])
    equations = problem.terms.with_rigid(columns).equations
    # If a joint's sum of squares is 1 + x times as large, its misfit is x / 2 larger.
    judged = equations.judged
    squares = equations.count[judged] * np.hypot(problem.fit.rms, equations.floor)[judged] ** 2
    costs = 2 * MAX_SHIFT_COST / MAX_SHIFT_M**2 / len(judged) * squares
    for k in range(3):
        at = equations.n_rigid - 3 + k
        equations.normal[judged, at, at] += costs
        equations.right[judged, judged, at] -= costs * shift[k]
    return equations.fit().rigid[-3:]


def _shifted(robot: RobotModel, joint: int, shift: NDArray) -> RobotModel:
    """Return the robot with the origin of a joint shifted by (3,), m."""
    placements = robot.chain.placements.copy()
    placements[robot.chain.own_links[joint], :3, 3] += shift
    return type(robot)(replace(robot.chain, placements=placements), robot.parameters, robot.gravity, robot.urdf)


def _shift_columns(problem: TorqueProblem, rigid: NDArray, joints: Iterable[int]) -> NDArray:
    """Return the derivatives (M, n, 3 k) of the torques by the origins of k joints, N m / m."""
    robot = problem.robot
    samples = problem.samples
    motion = samples.position, samples.velocity, samples.acceleration
    parameters = problem.model.plausible_parameters(rigid)
    torque = robot.inverse_dynamics(*motion, parameters)
    columns = [
        (_shifted(robot, joint, DERIVATIVE_STEP_M * axis).inverse_dynamics(*motion, parameters) - torque)
        / DERIVATIVE_STEP_M
        for joint in joints
        for axis in np.eye(3)
    ]
    return np.stack(columns, axis=2)
