"""Detection of a change of the arm's load within or between recordings, which a link identification refuses.

A load that is picked up adds A δ to the torques, where A has the columns of mass and mass moment at the tip. These
columns are a combination of the columns of the last link, so the equations of the links already contain them:

    τ = Y x before the change,   τ = Y (x + C δ) after it.

C has columns for the load and for friction, so a change of friction, as while an arm warms up, is not taken as a load.
A load that is put down again, or that one of several recordings has, changes at two times. The torque between them is
τ = Y (x + C δ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import clustered_covariance
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.rank import half_inverse
from dynid_ros.identification.change_point import MIN_MASS_KG, MIN_STRETCHES, stretch_grams
from dynid_ros.identification.equations import Equations
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC, transformed

MIN_MOMENT_KG_M = 0.01
"""Smallest change of a mass moment that matters: 0.1 N m at the wrist."""
MIN_MASS_FRACTION = 0.015
"""Smallest change of mass that matters, as a fraction of the arm's mass: in simulations, unmodelled friction simulated
up to 0.01 between recordings of different motions."""
MAX_P_VALUE = 0.01
"""Largest p-value of a change of load. It may be larger than for a load identification, because the change must also
matter and explain the difference."""
MIN_EXPLAINED_FRACTION = 0.7
"""Smallest improvement by load and friction, as a fraction of the improvement by any change of parameters. A joint that
slips on its encoder, or a jump of a sensor's gain, is not explained by a load."""
MIN_PARTIAL_R2 = 0.05
"""Smallest fraction of the residual's power that the load must explain after friction has explained its part (partial
R²). In simulations of ten arms with seven laws of friction, constant loads feigned up to 0.008, and loads that were
picked up explained 0.16 and more. A mass moment that the motion hardly determines can be large by chance, but then it
explains next to nothing."""
CLEAR_PARTIAL_R2 = 0.5
"""Partial R² from which no p-value is required: few stretches leave it few degrees of freedom, and so little power."""
MIN_SECOND_GAIN = 0.1
"""Smallest improvement by a second change, as a fraction of the improvement by both."""
CONSTANT_TERMS = ("rotor_inertia", "coupling_inertia")
"""Terms that do not change with friction."""
LOAD_STEP_REMEDY = (
    "links are identified with one load: leave out what was recorded with the other one, and weigh that load with "
    "`dynid identify load`"
)


class LoadChangeError(IdentificationError):
    """Error for recordings with a change of load.

    Attributes:
        where: recording in which the load changed.
        change: description of the change and its time.
    """

    def __init__(self, where: str, change: str) -> None:
        super().__init__(f"{where}: {change}; {LOAD_STEP_REMEDY}")
        self.where = where
        self.change = change


@dataclass(frozen=True, eq=False)
class LoadStep:
    """Most likely change of the load.

    Attributes:
        recording: index of the recording, from 0.
        time: time of the change on the clock of the recording, s.
        end: time on this clock until which the load is carried, s; infinite if it is carried to the end.
        between: whether the change is between this recording and the one before it.
        change: (4,) changes of mass and mass moments at the tip, kg and kg m.
        unknowns: (k,) parameters of links and friction before the change.
        direction: (k,) change of these parameters.
    """

    recording: int
    time: float
    end: float
    between: bool
    change: NDArray
    unknowns: NDArray
    direction: NDArray


def require_one_load(
    robot: RobotModel,
    equations: Equations,
    problem: WeightedProblem,
    base: BaseParameters,
    *,
    noise: NDArray,
    sources: Sequence[str],
) -> None:
    """Raise an error if the load changes within or between the recordings.

    Args:
        robot: the arm.
        equations: equations of all recordings.
        problem: compressed equations in base parameters.
        base: base parameters.
        noise: (n,) standard deviation of each joint's torque, N m (N).
        sources: names of the recordings.

    Raises:
        LoadChangeError: the load changed; the message has the time and the mass.
    """
    step = load_step(robot, equations, problem, base, noise)
    if step is None:
        return
    moment = "" if step.between else f"at about t = {_moment(equations, problem, noise, step):.1f} s "
    before = "than in the recording before it" if step.between else "than before"
    mass = step.change[0]
    what = f"{abs(mass):.3g} kg {'more' if mass > 0 else 'less'}" if abs(mass) > MIN_MASS_KG else "another mass moment"
    raise LoadChangeError(sources[step.recording], f"{moment}the arm carries {what} {before}: its load changed")


def load_step(
    robot: RobotModel, equations: Equations, problem: WeightedProblem, base: BaseParameters, noise: NDArray
) -> LoadStep | None:
    """Return the change of the load if it is significant and matters; otherwise None."""
    grams, moments = stretch_grams(equations, problem, noise)
    changes = _changes(robot, problem, base)
    size = problem.n_unknowns
    total = grams.sum(axis=1)
    whole = total.sum(axis=0)
    candidate = _most_likely_stretches(total, changes)
    if candidate is None:
        return None
    explained, (first, last), solution = candidate
    change = solution[size : size + STATIC]
    mass = robot.parameters[::PARAMETERS_PER_LINK].sum()
    heavy = abs(change[0]) > max(MIN_MASS_KG, MIN_MASS_FRACTION * mass)
    if not heavy and np.abs(change[1:]).max() < max(MIN_MOMENT_KG_M, 0.1 * MIN_MASS_FRACTION * mass):
        return None
    loaded = total[first:last].sum(axis=0)
    without = _explained(whole)
    anything = _explained(whole - loaded) + _explained(loaded)
    if explained - without < MIN_EXPLAINED_FRACTION * (anything - without):
        return None
    partial_r2 = _partial_r2(problem, whole, loaded, changes, explained)
    if partial_r2 < MIN_PARTIAL_R2:
        return None
    if partial_r2 < CLEAR_PARTIAL_R2 and _p_value(grams, (first, last), changes, solution) > MAX_P_VALUE:
        return None
    recording, time = moments[first]
    ends_here = last < len(total) and moments[last][0] == recording
    end = moments[last][1] if ends_here else np.inf
    is_between = recording != moments[first - 1][0]
    return LoadStep(recording, time, end, is_between, change, solution[:size], changes @ solution[size:])


def _most_likely_stretches(total: NDArray, changes: NDArray) -> tuple[float, tuple[int, int], NDArray] | None:
    """Return the explained sum of squares, the stretches with another load (from, to), and the solution.

    The load changes once, so that it lasts to the end, unless a second change explains much more.

    Args:
        total: (s, k, k + 1) normal equations of stretches.
        changes: (k, c) columns of the changes.
    """
    whole = total.sum(axis=0)
    count = len(total)

    def best_of(spans: list[tuple[int, int]]) -> tuple[float, tuple[int, int], NDArray] | None:
        best = None
        for first, last in spans:
            solution, explained = _solved(*_joint_system(whole, total[first:last].sum(axis=0), changes))
            if best is None or explained > best[0]:
                best = explained, (first, last), solution
        return best

    once = best_of([(s, count) for s in range(MIN_STRETCHES, count - MIN_STRETCHES + 1)])
    if once is None:
        return None
    s = once[1][0]
    spans = [(s, end) for end in range(s + MIN_STRETCHES, count - MIN_STRETCHES + 1)]
    spans += [(start, s) for start in range(MIN_STRETCHES, s - MIN_STRETCHES + 1)]
    twice = best_of(spans)
    if twice is not None:
        first, last = twice[1]
        starts = [(start, last) for start in range(MIN_STRETCHES, last - MIN_STRETCHES + 1)]
        ends = [(first, end) for end in range(first + MIN_STRETCHES, count - MIN_STRETCHES + 1)]
        twice = best_of([*starts, *ends])
    if twice is None or twice[0] - once[0] < MIN_SECOND_GAIN * (twice[0] - _explained(whole)):
        return once
    return twice


def _changes(robot: RobotModel, problem: WeightedProblem, base: BaseParameters) -> NDArray:
    """Return the derivatives (k, c) of the unknowns by mass and mass moments at the tip, and by friction."""
    last = np.arange(robot.parameters.size)[robot.tip_columns]
    links = problem.factors.columns.base.combinations
    loads = links[:, last] @ transformed(np.eye(PARAMETERS_PER_LINK), robot.tip_offset).T[:, :STATIC]
    names = [base.names[column] for column in base.columns[len(links) :]]
    friction = [len(links) + i for i, name in enumerate(names) if not name.startswith(CONSTANT_TERMS)]
    changes = np.zeros((problem.n_unknowns, STATIC + len(friction)))
    changes[: len(links), :STATIC] = loads
    changes[friction, STATIC + np.arange(len(friction))] = 1.0
    return changes


def _joint_system(whole: NDArray, loaded: NDArray, changes: NDArray) -> tuple[NDArray, NDArray]:
    """Return the normal equations of the unknowns and their changes.

    Args:
        whole: (k, k + 1) normal equations of all samples.
        loaded: (k, k + 1) normal equations of the samples with the other load.
        changes: (k, c) columns of the changes.
    """
    crossed = loaded[:, :-1] @ changes
    normal = np.block([[whole[:, :-1], crossed], [crossed.T, changes.T @ crossed]])
    return normal, np.concatenate([whole[:, -1], changes.T @ loaded[:, -1]])


def _solved(normal: NDArray, right: NDArray) -> tuple[NDArray, float]:
    """Return the least-squares solution and the sum of squares that it explains."""
    half = half_inverse(normal)
    projected = half.T @ right
    return half @ projected, float(projected @ projected)


def _explained(system: NDArray) -> float:
    """Return the sum of squares that unchanged parameters explain in normal equations (k, k + 1)."""
    return _solved(system[:, :-1], system[:, -1])[1]


def _partial_r2(problem: WeightedProblem, whole: NDArray, loaded: NDArray, changes: NDArray, explained: float) -> float:
    """Return the fraction of the residual's power that the load explains, beyond a change of friction.

    Args:
        problem: compressed equations in base parameters.
        whole: (k, k + 1) normal equations of all samples.
        loaded: (k, k + 1) normal equations of the samples with the other load.
        changes: (k, c) columns of the changes, the load's first.
        explained: sum of squares that load and friction explain together.
    """
    by_friction = _solved(*_joint_system(whole, loaded, changes[:, STATIC:]))[1]
    unchanged = _explained(whole)
    # Weighted by its standard deviation, each joint's residual has a mean square of one.
    residual = problem.n_joints * problem.factors.counts.sum() - (by_friction - unchanged)
    return (explained - by_friction) / max(float(residual), np.finfo(float).tiny)


def _p_value(grams: NDArray, span: tuple[int, int], changes: NDArray, solution: NDArray) -> float:
    """Return the p-value of the change of load, with residuals that are correlated within each stretch of time."""
    pieces = []
    for number, stretch in enumerate(grams):
        for joint, gram in enumerate(stretch):
            loaded = gram if span[0] <= number < span[1] else np.zeros_like(gram)
            pieces.append((joint, *_joint_system(gram, loaded, changes)))
    covariance, dof = clustered_covariance(pieces, np.ones(grams.shape[1]), solution)
    load = slice(len(changes), len(changes) + STATIC)
    half = half_inverse(covariance[load, load])
    statistic = float(np.sum((half.T @ solution[load]) ** 2))  # Hotelling's T²
    freedom = float(dof[load].min())
    denominator_freedom = max(freedom - STATIC + 1, 1.0)
    return float(fdtrc(STATIC, denominator_freedom, statistic * denominator_freedom / (freedom * STATIC)))


def _moment(equations: Equations, problem: WeightedProblem, noise: NDArray, step: LoadStep) -> float:
    """Return the time in the recording, s, from which the torques agree better with the parameters after the change."""
    times = []
    gains = []
    columns = problem.factors.columns
    for block in equations.blocks(columns):
        if block.recording != step.recording:
            continue
        gain = np.zeros(len(block.time))
        for j, rows in enumerate(block.rows):
            kept = rows[:, problem.kept[j]]
            places = problem.places[j]
            before = block.torque[:, j] - kept @ step.unknowns[places]
            gain += (before**2 - (before - kept @ step.direction[places]) ** 2) / noise[j] ** 2
        is_before_end = block.time < step.end
        times.append(block.time[is_before_end])
        gains.append(gain[is_before_end])
    time = np.concatenate(times)
    return float(time[min(int(np.argmin(np.cumsum(np.concatenate(gains)))) + 1, len(time) - 1)])
