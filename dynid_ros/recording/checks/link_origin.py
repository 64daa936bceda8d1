"""Does each joint sit where the URDF has it? Judged by the shift of one joint that fits the torques best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.checks.finding import Explanation
from dynid_ros.recording.checks.torque_fit import MotionSamples, Terms, TorqueEquations, TorqueFit, TorqueModel

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

ORIGIN: Final = "link origin"
ORIGIN_MIN_GAIN = 0.2
"""Gain from which a shift is worth a warning: less than other hypotheses need, since its size must be plausible too."""
MIN_SHIFT_M = 0.05
"""Smallest shift to report, m."""
MAX_SHIFT_M = 0.3
"""Largest shift to report, m; a larger one has another cause, which the model lacks."""
MAX_SHIFT_COST = 0.1
"""Smallest gain of the largest shift; it bounds shifts with little effect, such as along the joint's axis."""
DERIVATIVE_STEP_M = 1e-4
"""Shift of the numerical derivative, m."""
MAX_SAMPLES = 400
MAX_ITERATIONS = 2
MAX_PARAMETER = 1e6
"""kg, kg m or kg m² that no arm has."""


def origin_explanations(model: TorqueModel, samples: MotionSamples) -> Iterator[Explanation]:
    """What a joint elsewhere in the link before it would explain.

    Gravity alone never shows it: the parameters of the link before absorb it. Only fast motion does.
    """
    few = samples.thinned(MAX_SAMPLES)
    terms = model.terms(few)
    before = TorqueEquations(terms, few.torque, model.robot.chain.prismatic).fit()
    n = model.robot.n_joints
    if not np.any(np.isfinite(before.rms)) or n < 2:
        return
    shifts = _shift_columns(model, few, before.rigid, range(1, n))
    if before.misfit - _with(model.robot, terms, shifts, few).misfit < ORIGIN_MIN_GAIN:
        return
    gains = [
        before.misfit - _with(model.robot, terms, shifts[:, :, 3 * k : 3 * k + 3], few).misfit for k in range(n - 1)
    ]
    joint = 1 + int(np.argmax(gains))
    shift, found, fit = np.zeros(3), model, before
    for _ in range(MAX_ITERATIONS):
        columns = _shift_columns(found, few, fit.rigid, [joint])
        shift = shift + _step(found, columns, few, fit, shift)
        found = TorqueModel(_shifted(model.robot, joint, shift))
        fit = TorqueEquations(found.terms(few), few.torque, model.robot.chain.prismatic).fit()
    gain, size = before.misfit - fit.misfit, float(np.linalg.norm(shift))
    if gain >= ORIGIN_MIN_GAIN and MIN_SHIFT_M <= size <= MAX_SHIFT_M:
        yield Explanation(
            ORIGIN,
            gain,
            "the torques fit better with its origin elsewhere in the link before than the URDF has it; where, the "
            "parameters absorb in part",
            "measure the lengths of the links; check that URDF, base and tip are those of this robot",
            (model.robot.joint_names[joint],),
            severity="warning",
        )


def _with(robot: RobotModel, terms: Terms, columns: NDArray, samples: MotionSamples) -> TorqueFit:
    rigid = np.concatenate([terms.rigid, columns], axis=2)
    return TorqueEquations(Terms(rigid, terms.drive, terms.moving), samples.torque, robot.chain.prismatic).fit()


def _step(model: TorqueModel, columns: NDArray, samples: MotionSamples, now: TorqueFit, shift: NDArray) -> NDArray:
    """(3,) how much further to shift, if a shift has its cost."""
    terms, robot = model.terms(samples), model.robot
    rigid = np.concatenate([terms.rigid, columns], axis=2)
    equations = TorqueEquations(Terms(rigid, terms.drive, terms.moving), samples.torque, robot.chain.prismatic)
    # A sum of squares of a joint that is 1 + x times as large is a misfit that is x / 2 more.
    judged = equations.judged
    squares = equations.count[judged] * np.hypot(now.rms, equations.floor)[judged] ** 2
    costs = 2 * MAX_SHIFT_COST / MAX_SHIFT_M**2 / len(judged) * squares
    for k in range(3):
        at = equations.n_rigid - 3 + k
        equations.normal[judged, at, at] += costs
        equations.right[judged, judged, at] -= costs * shift[k]
    return equations.fit().rigid[-3:]


def _shifted(robot: RobotModel, joint: int, shift: NDArray) -> RobotModel:
    placements = robot.chain.placements.copy()
    placements[robot.chain.own_links[joint], :3, 3] += shift
    return type(robot)(replace(robot.chain, placements=placements), robot.parameters, robot.gravity, robot.urdf)


def origin_columns(model: TorqueModel, samples: MotionSamples, rigid: NDArray) -> list[tuple[int, NDArray]]:
    """Joints after the first, and the derivatives (M, n, 3) of the torques by the origin of each, N m / m."""
    columns = _shift_columns(model, samples, rigid, range(1, model.robot.n_joints))
    return [(k + 1, columns[:, :, 3 * k : 3 * k + 3]) for k in range(model.robot.n_joints - 1)]


def _shift_columns(model: TorqueModel, samples: MotionSamples, rigid: NDArray, joints: Iterable[int]) -> NDArray:
    """(M, n, 3 k) derivatives of the torques by the origins of k joints, N m / m."""
    motion = samples.position, samples.velocity, samples.acceleration
    parameters = np.zeros(model.robot.parameters.size)
    # Where few joints move, columns that differ by rounding have values of any size, which say nothing.
    parameters[model.columns] = np.where(np.abs(rigid) < MAX_PARAMETER, rigid, 0.0)
    now = model.robot.inverse_dynamics(*motion, parameters)
    columns = [
        (_shifted(model.robot, joint, DERIVATIVE_STEP_M * axis).inverse_dynamics(*motion, parameters) - now)
        / DERIVATIVE_STEP_M
        for joint in joints
        for axis in np.eye(3)
    ]
    return np.stack(columns, axis=2)
