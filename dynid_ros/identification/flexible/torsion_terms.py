"""What torsion may be made of: each term a column or two, linear in its coefficient.

Of a joint with the spring k between motor and link, k (q_m - q) = u - J q_m'' - b q_m' - c sign(q_m'). So torsion has a
part in the motor's torque u, the compliance 1/k, and parts in acceleration, velocity and direction of motion. Encoders
add their own: a link encoder that is read later than the motor's makes a torsion of delay times velocity, beside which
b / k may be nothing, and one whose disc is off centre errs once per turn. The torque of a neighbour may bend bearings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.flexible.torsion_signals import TorsionRun

ECCENTRICITY = 2e-4
"""Expected size of a once-per-turn error of encoders, rad: 20 um on a radius of 100 mm. Over part of a turn sine and
cosine fit anything smooth, and go astray beyond it; so they are drawn to zero by what is usual."""
TURNING = 0.02
"""Speed at which the direction of friction turns round, in parts of the joint's highest."""
ALWAYS = ("velocity",)
DRIVE = ("velocity", "torque", "acceleration", "coulomb")
"""What every flexible drive has, whether or not it shows in the prediction."""


@dataclass(frozen=True)
class Term:
    """One or more columns that come together.

    Attributes:
        name: of the term.
        unit: of its coefficients.
        size: expected size of each coefficient, which draws it to zero; infinite: nothing is expected.
        width: number of columns.
        neighbour: joint whose torque it is, counted from 0; None: the joint's own term.

    """

    name: str
    unit: str
    size: float = np.inf
    width: int = 1
    neighbour: int | None = None


OWN = (
    Term("velocity", "s"),
    Term("torque", "rad/(N m)"),
    Term("acceleration", "s^2"),
    Term("coulomb", "rad"),
    Term("eccentricity", "rad", size=ECCENTRICITY, width=2),
)


def joint_terms(joint: int, run: TorsionRun, joint_names: Sequence[str], *, neighbours: bool) -> tuple[Term, ...]:
    """Terms of a joint, in the order of its columns: its own, and if wanted the recorded torques of those beside it."""
    if not neighbours:
        return OWN
    beside = [j for j in (joint - 1, joint + 1) if 0 <= j < len(joint_names) and np.isfinite(run.torque[0, j])]
    return (*OWN, *(Term(f"torque of {joint_names[j]}", "rad/(N m)", neighbour=j) for j in beside))


def columns(run: TorsionRun, joint: int, terms: Sequence[Term], fastest: float) -> NDArray:
    """(M, k) columns of the terms, low-pass filtered; `fastest` speed of the joint in what was fitted, rad/s."""
    q, qd, qdd, u = (x[:, joint] for x in (run.position, run.velocity, run.acceleration, run.torque))
    direction = np.tanh(qd / (TURNING * fastest))
    own = {
        "velocity": (qd,),
        "torque": (u,),
        "acceleration": (qdd,),
        "coulomb": (direction,),
        "eccentricity": (np.sin(q), np.cos(q)),
    }
    found = [own[t.name] if t.neighbour is None else (run.torque[:, t.neighbour],) for t in terms]
    return run.low_pass.filter(np.stack([column for group in found for column in group], axis=1))


def columns_of(terms: Sequence[Term], name: str) -> NDArray:
    """Numbers of the columns of the term of this name."""
    owner = np.repeat([term.name for term in terms], [term.width for term in terms])
    return np.flatnonzero(owner == name)
