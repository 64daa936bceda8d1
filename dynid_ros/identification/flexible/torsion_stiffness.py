"""Stiffness of a joint from its torsion, with an interval that allows for what the model lacks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import chi2

from dynid_ros.identification.flexible.spring_stiffness import Stiffness
from dynid_ros.identification.flexible.torsion_choice import TermChoice, TermSet


def torsion_stiffness(choice: TermChoice, sets: Sequence[TermSet], column: int, torque_error: float) -> Stiffness:
    """What sets of terms that predict equally well say together, each completed to a whole drive.

    Three errors add up: what single blocks of time change, how much the sets differ, and an error of the torque. Of the
    torque only that part tells the compliance which acceleration, velocity, friction and eccentricity cannot make
    up for. Where it is a twentieth, an error of the torque of that size may be all that is seen.

    Args:
        choice: of the joint's terms.
        sets: that predict equally well.
        column: of the torque.
        torque_error: of the motor's torque, relative.

    """
    whole = choice.completed(sets)
    said = np.array([s.coefficients[column] for s in whole])
    blocks = np.array([s.leave_outs[:, column] for s in whole])
    freedom = blocks.shape[1] - 1
    wrong = torque_error * np.abs(said)
    shares = np.array([choice.own_share(s.terms, column, e) for s, e in zip(whole, wrong, strict=True)])
    own = freedom * np.var(blocks, axis=1) + (wrong / np.maximum(shares, 1e-6)) ** 2
    return Stiffness.of(float(said.mean()), float(np.sqrt(own.mean() + said.var())), freedom)


CHANCE = 0.01
"""Chance with which recordings of one joint differ as much, below which they contradict each other."""


def of_all(together: Stiffness, alone: Mapping[str, Stiffness]) -> Stiffness:
    """The stiffness from all recordings; where their common fit leaves it open, the mean of what each of them says.

    A recording that says little must not take away what another one knows. Where they contradict each other, none of
    them is believed: their errors are not those of the intervals.

    Args:
        together: from one fit to all recordings.
        alone: by name, from each of them.

    """
    told = {name: one for name, one in alone.items() if math.isfinite(sum(map(abs, one.compliance_interval)))}
    if together.determined or not any(one.determined for one in told.values()):
        return together
    values = np.array([one.compliance for one in told.values()])
    halves = np.array([np.ptp(one.compliance_interval) / 2 for one in told.values()])
    weights = 1 / halves**2
    mean = float(weights @ values / weights.sum())
    half = float(1 / np.sqrt(weights.sum()))
    # An interval of 95 % reaches two standard errors, or a little more.
    scatter = float(np.sum((2 * (values - mean) / halves) ** 2))
    freedom = len(told) - 1
    if freedom and chi2.sf(scatter, freedom) < CHANCE:
        said = "; ".join(f"{name}: {one}" for name, one in told.items())
        return replace(together, reason=f"{together.reason}; the recordings contradict each other: {said}")
    wider = half * max(1.0, math.sqrt(scatter / freedom)) if freedom else half
    return Stiffness.of_interval(mean, (mean - wider, mean + wider))
