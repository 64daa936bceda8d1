"""Stiffness of a joint from its torsion, with an interval that allows for what the model lacks."""

from collections.abc import Sequence

import numpy as np

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
