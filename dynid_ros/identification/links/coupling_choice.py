"""Which joints share a motor: those whose torques feel each other's motion, which links and own friction cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.identification.equations import LinkEquations, SampleEquations
from dynid_ros.identification.links.friction_choice import SURE_RARE, WORTH_RARE, DrawnLosses, friction_menus
from dynid_ros.model import RobotModel
from dynid_ros.model.friction_terms import COUPLING_TERMS
from dynid_ros.model.inertia import possible_prior
from dynid_ros.model.link_columns import LinkColumns

REACH = 2
"""Joints of one motor are at most so many apart: three of a wrist, driven from behind the elbow."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class CouplingChoice:
    """Joints that are driven together.

    Attributes:
        gains: of each pair, by name, by how much it lowered the logarithm of either's squared error on samples left
            out.
    """

    gains: dict[tuple[str, str], NDArray]

    @property
    def remarks(self) -> list[str]:
        """A sentence about each pair."""
        return [
            f"{first} and {second} are driven together: their torques feel each other's motion (squared error on "
            f"samples left out {-np.expm1(-gains[0]):.0%} and {-np.expm1(-gains[1]):.0%} lower)"
            for (first, second), gains in self.gains.items()
        ]


def choose_coupling(robot: RobotModel, equations: LinkEquations | SampleEquations) -> CouplingChoice:
    """Find the pairs that surely are driven together.

    With the simplest friction of all joints, one pair after the other, while the torques of both are predicted so much
    better on samples left out. A URDF that is wrong does not look like that: no link takes the velocity of one joint to
    the torque of another.

    Args:
        robot: the arm.
        equations: of all recordings.
    """
    if not (pairs := _neighbours(robot)):
        return CouplingChoice({})
    columns = LinkColumns(robot, [(menu.first,) for menu in friction_menus(robot, equations.speed_rms)], pairs)
    factors = equations.factors(columns)
    every = columns.chosen(columns.first)
    if factors.counts.sum() < len(every):
        return CouplingChoice({})
    own, terms = np.split(every, [len(every) - len(COUPLING_TERMS) * len(pairs)])
    of_pair = dict(zip(pairs, terms.reshape(len(pairs), -1), strict=True))
    grams = FoldGrams(factors, WeightedProblem(factors, own).weighted()[1])
    if not grams.folds:
        return CouplingChoice({})
    drawn = DrawnLosses(columns, grams, possible_prior(robot.parameters, robot.link_names)[0])
    nonnegative = np.zeros(columns.size, dtype=bool)
    nonnegative[every] = columns.nonnegative(columns.first)

    def losses(chosen: Sequence[Pair]) -> NDArray:
        tried = np.concatenate([own, *(of_pair[pair] for pair in chosen)])
        return drawn.of_columns(tried, nonnegative[tried])

    found: dict[Pair, NDArray] = {}
    before = losses(())
    while others := [pair for pair in pairs if pair not in found]:
        options = []
        for pair in others:
            after = losses([*found, pair])
            gains, errors = np.transpose([grams.gain(before[:, [j]], after[:, [j]]) for j in pair])
            options.append((float(np.min(gains - np.maximum(WORTH_RARE, SURE_RARE * errors))), pair, gains, after))
        enough, pair, gains, after = max(options, key=lambda option: option[0])
        if enough <= 0.0:
            break
        found[pair], before = gains, after
    names = robot.joint_names
    return CouplingChoice({(names[i], names[j]): gains for (i, j), gains in found.items()})


def _neighbours(robot: RobotModel) -> list[Pair]:
    """Turning joints that are near each other, each with those before it."""
    chain, found = robot.chain, dict[Pair, None]()
    for link in range(chain.n_links):
        before = [chain.drivers[other] for other in chain.path(link)]
        for other in before[-1 - REACH : -1]:
            pair = int(other), int(chain.drivers[link])
            if pair[0] != pair[1] and not chain.prismatic[list(pair)].any():
                found[pair] = None
    return list(found)
