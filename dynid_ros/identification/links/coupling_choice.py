"""Detection of joints that share a motor.

Their torques depend on each other's motion, which neither links nor friction of one joint can explain.
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
"""Largest distance of coupled joints along the chain: a wrist of three joints, driven from behind the elbow."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class CouplingChoice:
    """Pairs of coupled joints.

    Attributes:
        gains: (2,) by pair of names, the decrease of the logarithm of each joint's held-out squared error.
    """

    gains: dict[tuple[str, str], NDArray]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentence about each pair."""
        return tuple(
            f"{first} and {second} are driven together: the torque of each depends on the motion of the other (squared "
            f"error on held-out samples {-np.expm1(-gains[0]):.0%} and {-np.expm1(-gains[1]):.0%} lower)"
            for (first, second), gains in self.gains.items()
        )


def choose_coupling(robot: RobotModel, equations: LinkEquations | SampleEquations) -> CouplingChoice:
    """Find the pairs of coupled joints by forward selection, with the simplest friction of all joints.

    A pair is added while the torques of both joints are predicted much better on held-out samples. A wrong URDF does
    not look like coupling: no link transmits the velocity of one joint to the torque of another.

    Args:
        robot: the arm.
        equations: equations of all recordings.
    """
    pairs = _nearby_pairs(robot)
    if not pairs:
        return CouplingChoice({})
    columns = LinkColumns(robot, [(menu.first,) for menu in friction_menus(robot, equations.speed_rms)], pairs)
    factors = equations.factors(columns)
    every_column = columns.chosen(columns.first)
    if factors.counts.sum() < len(every_column):
        return CouplingChoice({})
    n_coupling = len(COUPLING_TERMS) * len(pairs)
    uncoupled, coupling = np.split(every_column, [len(every_column) - n_coupling])
    columns_of_pair = dict(zip(pairs, coupling.reshape(len(pairs), -1), strict=True))
    grams = FoldGrams(factors, WeightedProblem(factors, uncoupled).weighted()[1])
    if not grams.folds:
        return CouplingChoice({})
    held_out = HeldOutLosses(columns, grams, possible_prior(robot.parameters, robot.link_names)[0])
    nonnegative = np.zeros(columns.size, dtype=bool)
    nonnegative[every_column] = columns.nonnegative(columns.first)

    def losses(chosen: Sequence[Pair]) -> NDArray:
        tried = np.concatenate([uncoupled, *(columns_of_pair[pair] for pair in chosen)])
        return held_out.of_columns(tried, nonnegative[tried])

    first: tuple[Pair, ...] = ()
    selection = ForwardSelection(grams, losses, first)
    names = robot.joint_names
    chosen_gains: dict[tuple[str, str], NDArray] = {}
    while True:
        models = [(*selection.model, pair) for pair in pairs if pair not in selection.model]
        gains, taken = selection.try_models(
            models,
            lambda _, error: max(MIN_GAIN_RARE, MIN_GAIN_SE_RARE * error),
            lambda model: [[joint] for joint in model[-1]],
        )
        if taken is None:
            return CouplingChoice(chosen_gains)
        leader, follower = models[taken][-1]
        chosen_gains[names[leader], names[follower]] = gains[taken]


def _nearby_pairs(robot: RobotModel) -> list[Pair]:
    """Return pairs of revolute joints that are at most `MAX_JOINTS_APART` apart, the proximal joint first."""
    chain = robot.chain
    pairs = dict[Pair, None]()
    for link in range(chain.n_links):
        path = [int(chain.drivers[other]) for other in chain.path(link)]
        for other in path[-1 - MAX_JOINTS_APART : -1]:
            pair = other, int(chain.drivers[link])
            if pair[0] != pair[1] and not chain.prismatic[list(pair)].any():
                pairs[pair] = None
    return list(pairs)
