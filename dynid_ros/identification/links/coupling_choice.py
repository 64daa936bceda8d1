"""Detection of coupled joints: pairs whose motors are connected by gears or belts, as in many wrists.

The torque of each joint then depends on the motor inertia and friction of the other, hence on the other's motion.
Neither the links nor the friction of a single joint can explain this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.selection import ForwardSelection
from dynid_ros.identification.equations import LinkEquations, SampleEquations
from dynid_ros.identification.links.friction_choice import (
    MIN_GAIN_RARE,
    MIN_GAIN_SE_RARE,
    HeldOutLosses,
    friction_menus,
)
from dynid_ros.model import RobotModel
from dynid_ros.model.friction_terms import COUPLING_TERMS
from dynid_ros.model.inertia import possible_prior
from dynid_ros.model.link_columns import LinkColumns

MAX_JOINTS_APART = 2
"""Largest number of joints from one of a pair to the other: the first and the last joint of a wrist have two."""
MAX_CHOICE_SAMPLES = 10_000
"""Number of equations of a joint that suffices to find coupled joints."""

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

    Args:
        robot: model of the arm.
        equations: torque equations of all recordings.

    Returns:
        The pairs; none if the recordings are too short to hold out samples.
    """
    pairs = _nearby_pairs(robot)
    if not pairs:
        return CouplingChoice({})
    columns = LinkColumns(robot, [(menu.first,) for menu in friction_menus(robot, equations.speed_rms)], pairs)
    factors = equations.thinned(MAX_CHOICE_SAMPLES).factors(columns)
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

    def losses(coupled: Sequence[Pair]) -> NDArray:
        """Return the held-out losses (F, n), per fold and joint, of the model with these coupled pairs."""
        chosen = np.concatenate([uncoupled, *(columns_of_pair[pair] for pair in coupled)])
        return held_out.of_columns(chosen, nonnegative[chosen])

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
