"""Refuse recordings across which the arm's load changes: no link has the mass moments of both sides.

A load that is taken up adds A δ to the torques from then on, A being the columns of mass and mass moment at the tip.
They are a combination of the columns of the last link, so the equations of the links hold them already:

    τ = Y x before the change,   τ = Y (x + C δ) after it.

The columns of C are those of the load and of the friction, so that friction that changes, as while an arm warms up, is
no load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as fisher

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import clustered_covariance
from dynid_ros.estimation.identifiability import half_inverse
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.change_point import LEAST_MASS, LEAST_PARTS, stretch_grams
from dynid_ros.identification.equations import Equations
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC, transformed

MIN_MOMENT_KG_M = 0.01
"""Smallest change of a mass moment that matters: 0.1 N m at the wrist."""
MIN_MASS_OF_ARM = 0.015
"""Smallest change of mass that matters, in parts of the arm's: in simulations, friction that the model lacks feigned up
to 0.01 between recordings of different motions."""
MAX_CHANCE = 0.01
"""Largest probability of as clear a change, if residuals are as the standard errors say. A load must also matter, and
explain what changed, so it may be larger than where a load is identified."""
MIN_EXPLAINED = 0.7
"""Share of what any other parameters after the change would explain, that a load and friction must explain. A joint
that slips on its encoder, or a sensor whose gain jumps, looks like no load."""
STEADY = ("rotor_inertia", "coupling_inertia")
"""Terms that do not change with friction."""
FIX = (
    "links are identified with one load: leave out what was recorded with the other one, and weigh that load with "
    "`dynid identify load`"
)


class LoadChangeError(IdentificationError):
    """Recordings that no one load explains.

    Attributes:
        where: recording in which the load changed.
        change: what changed, and when.
    """

    def __init__(self, where: str, change: str) -> None:
        super().__init__(f"{where}: {change}; {FIX}")
        self.where = where
        self.change = change


@dataclass(frozen=True, eq=False)
class LoadStep:
    """The likeliest change of the load.

    Attributes:
        recording: which one it is in, counted from 0.
        time: s, on its clock.
        between: whether it is between this recording and the one before it.
        change: (4,) of mass and mass moments at the tip, kg and kg m.
        unknowns: (k,) of the links and of friction before it.
        direction: (k,) by which these change.
    """

    recording: int
    time: float
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
    """Refuse recordings that no one load explains.

    Args:
        robot: the arm.
        equations: of all recordings.
        problem: the same, compressed, in base parameters.
        base: their structure.
        noise: (n,) standard deviation of each joint's torque.
        sources: of the recordings.

    Raises:
        LoadChangeError: says where the load changed, and by which mass.
    """
    step = load_step(robot, equations, problem, base, noise)
    if step is None:
        return
    moment = "" if step.between else f"at about t = {_moment(equations, problem, noise, step):.1f} s "
    before = "than in the recording before it" if step.between else "than before"
    mass = step.change[0]
    what = f"{abs(mass):.3g} kg {'more' if mass > 0 else 'less'}" if abs(mass) > LEAST_MASS else "another mass moment"
    raise LoadChangeError(sources[step.recording], f"{moment}the arm carries {what} {before}: its load changed")


def load_step(
    robot: RobotModel, equations: Equations, problem: WeightedProblem, base: BaseParameters, noise: NDArray
) -> LoadStep | None:
    """Return the change of the load that surely happened and matters; None where there is none."""
    own, moments = stretch_grams(equations, problem, noise)
    changes = _changes(robot, problem, base)
    size, total = problem.n_unknowns, own.sum(axis=1)
    whole = total.sum(axis=0)
    best: tuple[float, int, NDArray] | None = None
    for s in range(LEAST_PARTS, len(total) - LEAST_PARTS + 1):
        later = total[s:].sum(axis=0)
        normal, right = _joint_system(whole, later, changes)
        solution, explained = _solved(normal, right)
        if best is None or explained > best[0]:
            best = explained, s, solution
    if best is None:
        return None
    explained, s, solution = best
    change = solution[size : size + STATIC]
    mass = robot.parameters[::PARAMETERS_PER_LINK].sum()
    heavy = abs(change[0]) > max(LEAST_MASS, MIN_MASS_OF_ARM * mass)
    if not heavy and np.abs(change[1:]).max() < max(MIN_MOMENT_KG_M, 0.1 * MIN_MASS_OF_ARM * mass):
        return None
    without = _solved(whole[:, :-1], whole[:, -1])[1]
    anything = sum(_solved(part[:, :-1], part[:, -1])[1] for part in (total[:s].sum(axis=0), total[s:].sum(axis=0)))
    if explained - without < MIN_EXPLAINED * (anything - without) or _chance(own, s, changes, solution) > MAX_CHANCE:
        return None
    recording, time = moments[s]
    return LoadStep(recording, time, recording != moments[s - 1][0], change, solution[:size], changes @ solution[size:])


def _changes(robot: RobotModel, problem: WeightedProblem, base: BaseParameters) -> NDArray:
    """(k, c) how the unknowns change with mass and mass moments at the tip, and with each coefficient of friction."""
    last = np.arange(robot.parameters.size)[robot.tip_columns]
    links = problem.factors.columns.base.combinations
    loads = links[:, last] @ transformed(np.eye(PARAMETERS_PER_LINK), robot.tip_offset).T[:, :STATIC]
    names = [base.names[column] for column in base.columns[len(links) :]]
    friction = [len(links) + i for i, name in enumerate(names) if not name.startswith(STEADY)]
    found = np.zeros((problem.n_unknowns, STATIC + len(friction)))
    found[: len(links), :STATIC] = loads
    found[friction, STATIC + np.arange(len(friction))] = 1.0
    return found


def _joint_system(whole: NDArray, later: NDArray, changes: NDArray) -> tuple[NDArray, NDArray]:
    """Normal equations of the unknowns and of their changes, from those (k, k + 1) of all and of the later samples."""
    crossed = later[:, :-1] @ changes
    normal = np.block([[whole[:, :-1], crossed], [crossed.T, changes.T @ crossed]])
    return normal, np.concatenate([whole[:, -1], changes.T @ later[:, -1]])


def _solved(normal: NDArray, right: NDArray) -> tuple[NDArray, float]:
    """Solution, and the sum of squares that it explains."""
    half = half_inverse(normal)
    projected = half.T @ right
    return half @ projected, float(projected @ projected)


def _chance(own: NDArray, s: int, changes: NDArray, solution: NDArray) -> float:
    """Probability of a change of the load that is as clear, residuals being correlated in each stretch of time."""
    pieces = []
    for number, stretch in enumerate(own):
        for joint, gram in enumerate(stretch):
            later = gram if number >= s else np.zeros_like(gram)
            pieces.append((joint, *_joint_system(gram, later, changes)))
    covariance, dof = clustered_covariance(pieces, np.ones(own.shape[1]), solution)
    load = slice(len(changes), len(changes) + STATIC)
    half = half_inverse(covariance[load, load])
    square, seen = float(np.sum((half.T @ solution[load]) ** 2)), float(dof[load].min())
    rest = max(seen - STATIC + 1, 1.0)
    return float(fisher.sf(square * rest / (seen * STATIC), STATIC, rest))


def _moment(equations: Equations, problem: WeightedProblem, noise: NDArray, step: LoadStep) -> float:
    """Time in the recording, s, from which on the torques are rather those after the change."""
    times, gains = [], []
    columns = problem.factors.columns
    for block in equations.blocks(columns):
        if block.recording != step.recording:
            continue
        gain = np.zeros(len(block.time))
        for j, rows in enumerate(block.rows):
            kept, places = rows[:, problem.kept[j]], problem.places[j]
            before = block.torque[:, j] - kept @ step.unknowns[places]
            gain += (before**2 - (before - kept @ step.direction[places]) ** 2) / noise[j] ** 2
        times.append(block.time)
        gains.append(gain)
    time = np.concatenate(times)
    return float(time[min(int(np.argmin(np.cumsum(np.concatenate(gains)))) + 1, len(time) - 1)])
