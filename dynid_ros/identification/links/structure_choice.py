"""Choice of coupled joints and of the driver's low-pass, by the prediction of held-out samples.

Coupled joints are pairs whose motors are connected by gears or belts, as in many wrists. The torque of each joint then
depends on the motor inertia and friction of the other, hence on the other's motion. Neither the links nor the friction
of a single joint can explain this.

A low-pass of the torque and friction that builds up slowly can replace each other. Both orders are therefore tried:
the filter is chosen with the simplest friction, and with the friction that was chosen without a filter. Friction is
chosen again with each filter, and the models as a whole are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.low_pass import screen_low_pass
from dynid_ros.checks.torque_model import SYSTEMATIC_ERROR
from dynid_ros.estimation.cross_validation import FoldGrams, ForwardSelection, folds
from dynid_ros.estimation.normal_equations import NormalEquations, WeightedProblem
from dynid_ros.identification.equations import LinkEquations, SampleEquations
from dynid_ros.identification.links.friction_choice import (
    MIN_GAIN_RARE,
    MIN_GAIN_SE_RARE,
    HeldOutLosses,
    friction_menus,
)
from dynid_ros.identification.links.link_structure import LinkData, LinkStructure
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.friction_terms import COUPLING_TERMS
from dynid_ros.model.inertia import possible_prior
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.signals.driver_filter import (
    MIN_FILTER_GAIN_PER_JOINT,
    DriverFilter,
    FilterChoice,
    Passage,
    choose_driver_filter,
)

MAX_JOINTS_APART = 2
"""Largest number of joints from one of a pair to the other: the first and the last joint of a wrist have two."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class CouplingChoice:
    """Pairs of coupled joints that the data support.

    Attributes:
        gains: for each pair of names, the decrease (2,) of the natural logarithm of each joint's mean squared error on
            held-out samples when the coupling is added.
    """

    gains: dict[tuple[str, str], NDArray]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on the pairs, one for each."""
        return tuple(
            f"{first} and {second} are driven together: the torque of each depends on the motion of the other (squared "
            f"error on held-out samples {-np.expm1(-gains[0]):.0%} and {-np.expm1(-gains[1]):.0%} lower)"
            for (first, second), gains in self.gains.items()
        )


def choose_coupling(robot: RobotModel, equations: LinkEquations | SampleEquations) -> CouplingChoice:
    """Find the pairs of coupled joints by forward selection; every joint has its simplest friction model meanwhile.

    Each step adds the best pair, as long as it predicts the torques of both joints much better on held-out samples. A
    wrong URDF does not look like coupling: the links transmit no friction from one joint to the torque of another.

    Returns:
        The pairs; none if the recordings are too short to hold out samples.
    """
    pairs = _nearby_pairs(robot)
    if not pairs:
        return CouplingChoice({})
    columns = LinkColumns(robot, [(menu.first,) for menu in friction_menus(robot, equations.speed_rms)], pairs)
    factors = equations.factors(columns)
    every_column = columns.chosen(columns.first)
    if factors.counts.sum() < len(every_column):  # fewer equations than parameters
        return CouplingChoice({})
    # The columns of the pairs come last, the same number for each pair.
    n_coupling = len(COUPLING_TERMS) * len(pairs)
    uncoupled, coupling = np.split(every_column, [len(every_column) - n_coupling])
    columns_of_pair = dict(zip(pairs, coupling.reshape(len(pairs), -1), strict=True))
    grams = FoldGrams(factors, WeightedProblem(factors, uncoupled).weighted()[1])
    if not grams.folds:
        return CouplingChoice({})
    held_out = HeldOutLosses(columns, grams, possible_prior(robot.parameters, robot.link_names)[0])
    nonnegative = np.zeros(columns.size, dtype=bool)
    nonnegative[every_column] = columns.nonnegative(columns.first)

    def losses(models: Sequence[Sequence[Pair]]) -> NDArray:
        """Return the held-out losses (M, F, n), per fold and joint, of models with some coupled pairs."""
        chosen = [np.concatenate([uncoupled, *(columns_of_pair[pair] for pair in coupled)]) for coupled in models]
        return held_out.of_columns([(columns, nonnegative[columns]) for columns in chosen])

    no_pairs: tuple[Pair, ...] = ()
    selection = ForwardSelection(grams, losses, no_pairs)
    names = robot.joint_names
    chosen_gains: dict[tuple[str, str], NDArray] = {}
    while True:
        # Each of these models adds one more pair; both joints of this pair must gain.
        models = [(*selection.model, pair) for pair in pairs if pair not in selection.model]
        gains, taken = selection.try_models(
            models,
            required_gain=lambda _, standard_error: max(MIN_GAIN_RARE, MIN_GAIN_SE_RARE * standard_error),
            judged_joints=lambda model: [[joint] for joint in model[-1]],
        )
        if taken is None:
            return CouplingChoice(chosen_gains)
        proximal, distal = models[taken][-1]
        chosen_gains[names[proximal], names[distal]] = gains[taken]


def _nearby_pairs(robot: RobotModel) -> list[Pair]:
    """Return pairs of revolute joints that are at most `MAX_JOINTS_APART` apart, the proximal joint first."""
    chain = robot.chain
    pairs = dict[Pair, None]()
    for link in range(chain.n_links):
        joints_to_link = [int(chain.drivers[other]) for other in chain.path(link)]
        for proximal in joints_to_link[-1 - MAX_JOINTS_APART : -1]:
            pair = proximal, int(chain.drivers[link])
            if pair[0] != pair[1] and not chain.prismatic[list(pair)].any():
                pairs[pair] = None
    return list(pairs)


MAX_SEARCH_SAMPLES = 3000
"""Rough number of equations of a joint that suffices to compare filters."""
MAX_PASSAGES = 12
"""Number of filters whose equations are held in memory together."""


def choose_with_filter(structure: LinkStructure, choose: Callable[[LinkData], LinkStructure]) -> LinkStructure:
    """Return the structure with the filter of the driver that held-out samples support, or the given structure."""
    data = structure.data
    recordings = [recording.select(structure.robot.joint_names) for recording in data.recordings]
    screened = screen_low_pass(structure.robot, recordings)
    if screened is None:
        return structure
    start, bandwidth = screened
    found = dict[DriverFilter, FilterChoice]()
    for joints in dict.fromkeys((structure.columns.first, structure.joints)):
        choice = _FilteredModels(structure, joints, start).choose(bandwidth)
        if choice is not None:
            found.setdefault(choice.driver, choice)
    structures = [
        choose(data.with_driver(choice.driver, f"by the prediction of held-out samples: {choice}"))
        for choice in found.values()
    ]
    losses = {id(model): _held_out_errors(model) for model in (structure, *structures)}
    selection = ForwardSelection(_grams(structure), lambda models: [losses[id(model)] for model in models], structure)
    n_joints = structure.robot.n_joints
    selection.try_models(structures, lambda _, error: max(MIN_FILTER_GAIN_PER_JOINT * n_joints, error))
    return selection.model


def _grams(structure: LinkStructure) -> FoldGrams:
    """Return the normal equations of the folds of a structure."""
    return FoldGrams(structure.factors, structure.base_problem.weighted()[1])


def _held_out_errors(structure: LinkStructure) -> NDArray:
    """Return the mean squared errors on held-out samples (F, n) of a structure, with the systematic error."""
    grams = _grams(structure)
    losses = HeldOutLosses(structure.columns, grams, structure.prior).of_joints([structure.joints])[0]
    return losses * grams.noise**2 + (SYSTEMATIC_ERROR * structure.base_problem.torque_rms()) ** 2


class _FilteredModels:
    """Link equations with one friction model of each joint, whose torque passes a filter.

    Noise and weight of the prior are those of the model with the first filter, which fits best.

    Args:
        structure: structure with data without a filter.
        joints: (n,) friction terms and shapes.
        start: first filter.
    """

    def __init__(self, structure: LinkStructure, joints: Sequence[JointFriction], start: DriverFilter):
        self._equations = structure.data.equations
        self._prior = structure.prior
        self._start = start
        loads = structure.columns.friction(joints).load_parameters
        self._columns = LinkColumns(
            structure.robot, [(joint,) for joint in joints], structure.columns.coupled, None, loads
        )
        terms = self._columns.chosen(joints)[self._columns.n_inertial :]
        names = self._columns.friction(joints).names(structure.robot)
        of_friction = [term for term, name in zip(terms, names, strict=True) if not name.startswith("rotor_inertia")]
        self._friction_columns = [np.isin(columns, of_friction) for columns in self._columns.of_joint]
        factors, plain = self._factors([Passage(start), Passage()])
        problem = WeightedProblem(factors, self._columns.independent(joints))
        self._grams = FoldGrams(factors, problem.weighted()[1])
        self._is_comparable = bool(self._grams.folds) and len(folds(plain)) == len(self._grams.folds)
        self._weight = HeldOutLosses(self._columns, self._grams, self._prior).weight
        self._floor = SYSTEMATIC_ERROR * problem.torque_rms() / self._grams.noise

    def choose(self, bandwidth: float) -> FilterChoice | None:
        """Return the filter that held-out samples support, or None, given the bandwidth of the motion, Hz."""
        if not self._is_comparable:
            return None
        return choose_driver_filter(self._losses, self._grams, bandwidth, self._start)

    def _losses(self, passages: Sequence[Passage]) -> list[NDArray]:
        """Return the held-out losses (F, n) of each hypothesis, with the systematic error.

        A filter whose transients leave no samples of a fold cannot be compared; its losses are infinite.
        """
        n_folds = len(self._grams.folds)
        losses = []
        for first in range(0, len(passages), MAX_PASSAGES):
            for factors in self._factors(passages[first : first + MAX_PASSAGES]):
                grams = FoldGrams(factors, self._grams.noise)
                if len(grams.folds) != n_folds:
                    losses.append(np.full((n_folds, len(self._floor)), np.inf))
                    continue
                held_out = HeldOutLosses(self._columns, grams, self._prior, self._weight)
                losses.append(held_out.of_joints([self._columns.first])[0] + self._floor**2)
        return losses

    def _factors(self, passages: Sequence[Passage]) -> list[NormalEquations[LinkColumns]]:
        assert isinstance(self._equations, LinkEquations)
        return self._equations.factors_through(self._columns, passages, self._friction_columns, MAX_SEARCH_SAMPLES)
