"""Which friction terms each joint gets: those that predict best what was not fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import parameter_spread
from dynid_ros.model.link_columns import LinkColumns

SMOOTHINGS = (0.02, 0.08)
"""Velocity over which Coulomb friction reverses, in parts of the joint's RMS velocity."""
STRIBECK = (0.25, 1.0)
"""Stribeck velocities, in the same unit: a grid, since the term is linear but for its velocity."""
WEIGHTS = (1.0, 10.0, 100.0, 1000.0, 10000.0)
WORTH = 0.03
"""Gain in the logarithm of one joint's squared error below which another model is not worth having."""
ROUNDS = 2


@dataclass(frozen=True)
class FrictionChoice:
    """One candidate per joint.

    Attributes:
        choice: (n,) index of each joint's candidate.
        gains: for each joint that did not keep the first candidate, by how much its choice lowered the logarithm of the
            squared error on samples left out, as if all of it were this joint's.
    """

    choice: tuple[int, ...]
    gains: dict[str, float]


def friction_candidates(speed: float, rotor_inertia: bool = True) -> tuple[JointFriction, ...]:
    """Friction models worth trying for a joint that moves at an RMS velocity of `speed`, the simplest first."""
    scale = speed if speed > 0 else 1.0
    found = [
        JointFriction(
            offset=True,
            smoothing=_rounded(share * scale),
            asymmetric=kind == "asymmetric",
            stribeck_velocity=_rounded(kind * scale) if isinstance(kind, float) else None,
            rotor_inertia=rotor,
        )
        for rotor in ((False, True) if rotor_inertia else (False,))
        for kind in ("plain", "asymmetric", *STRIBECK)
        for share in SMOOTHINGS
    ]
    return tuple(found)


def choose_friction(columns: LinkColumns, grams: FoldGrams, prior: NDArray) -> FrictionChoice:
    """Go through the joints, trying each one's candidates while the others stay, as long as something improves.

    Predictions are from a fit with a quadratic prior towards the nominal parameters: the entropic one of
    `ConsistentProblem` to second order, of the best of some weights.

    Args:
        columns: with the candidates.
        grams: of all columns.
        prior: (10 n,) possible nominal parameters.
    """
    choice = [0] * len(columns.candidates)
    if not grams.folds or all(len(own) == 1 for own in columns.candidates):
        return FrictionChoice(tuple(choice), {})
    base, spread = columns.base.combinations, parameter_spread(prior)
    penalty = np.linalg.inv(base @ spread @ base.T)
    center = columns.base.project(prior)

    def loss(tried: Sequence[int], weight: float) -> float:
        chosen = columns.chosen(tried)
        full, middle = np.zeros((len(chosen), len(chosen))), np.zeros(len(chosen))
        full[: len(center), : len(center)], middle[: len(center)] = weight * penalty, center
        return grams.loss(chosen, full, middle, columns.nonnegative(tried))

    weight = min(WEIGHTS, key=lambda w: loss(choice, w))
    best = loss(choice, weight)
    gains: dict[str, float] = {}
    for _ in range(ROUNDS):
        before = best
        for j, own in enumerate(columns.candidates):
            scores = [loss([*choice[:j], index, *choice[j + 1 :]], weight) for index in range(len(own))]
            index = int(np.argmin(scores))
            gain = (best - scores[index]) * len(choice)
            if gain > WORTH:
                joint = columns.robot.joint_names[j]
                gains[joint] = gain + gains.get(joint, 0.0)
                choice[j], best = index, scores[index]
        if best == before:
            break
    return FrictionChoice(tuple(choice), gains)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
