"""What a friction term needs of a motion, and which terms a motion cannot show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import random_motion
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.friction_direction import dahl_direction
from dynid_ros.model.friction_terms import FrictionTerm

LEAST_TURNS = 0.95
"""Turns of a joint below which harmonics look like a line within its travel, and like nothing known beyond it."""
LEAST_RANGE, LEAST_SLIDE = 0.5, 0.05
"""Travel that shows a spring, rad and m."""
LEAST_SHARE, LEAST_BEND = 0.05, 0.02
"""RMS part of a term's column that all others must leave: with less, its error is twenty times as large. Of viscous
friction that saturates the second: real excitation leaves 0.03 to 0.1 of it, and of other terms 0.1 and more."""
STILL = 0.01
"""Travel of a joint up to which it stands still, rad or m: then it lacks more than what one term needs."""
BOTH_WAYS = 0.1
"""Part of a joint's RMS velocity that noise or a filter may make."""
PARALLEL = 1e-6
"""Difference of a cosine from one up to which an axis is parallel to gravity."""


@dataclass(frozen=True)
class Need:
    """What shows a term.

    Attributes:
        what: the motion has, as a sentence.
        remedy: the motion to record.
        without: changes of `JointFriction` that leave the simpler model, which must not do as well.
        least: RMS part of the term's column that the simpler model must leave.
    """

    what: str
    remedy: str
    without: dict[str, Any]
    least: float = LEAST_SHARE


NEEDS = {
    "viscous": Need(
        "viscous friction shows in different velocities", "record motion at several speeds", {"viscous": False}
    ),
    "stribeck_velocity": Need(
        "a Stribeck velocity shows in motion slower and faster than it",
        "record slow motion besides fast",
        {"stribeck_velocity": None},
    ),
    "saturation_velocity": Need(
        "a saturation velocity shows in motion slower and faster than it",
        "record motion at several speeds, fast ones too",
        {"saturation_velocity": None},
        LEAST_BEND,
    ),
    "load": Need(
        "friction that grows with the load shows in different gravity torques at equal velocities",
        "record motion of it with the other joints in different poses",
        {"load": False},
    ),
    "spring": Need("a spring shows over a range of angles", "record a wider motion of it", {"spring": False}),
    "harmonics": Need(
        "harmonics of its angle need a whole turn",
        "record a motion over the whole turn, or leave them out (spring is what less shows)",
        {"harmonics": ()},
    ),
    "sliding_length": Need(
        "a sliding length shows where the joint reverses",
        "record slow reversals of it, with rests, or leave sliding_length out",
        {"sliding_length": 0.0},
    ),
}
"""By attribute of `JointFriction`; Coulomb friction, offset and rotor inertia need no more than what links need."""


@dataclass(frozen=True)
class UnseenTerm:
    """A term that a motion cannot show.

    Attributes:
        joint: its name.
        term: key of `NEEDS`.
        found: what the motion has instead.
    """

    joint: str
    term: str
    found: str

    def __str__(self) -> str:
        return self.of(self.joint)

    def of(self, joints: str) -> str:
        """The same of several joints, as a sentence."""
        need = NEEDS[self.term]
        return f"friction of {joints}: {need.what}, and {self.found}; {need.remedy}"


def describe_unseen_terms(unseen: Sequence[UnseenTerm]) -> list[str]:
    """A sentence for each term and what was found, of all its joints."""
    kinds = dict.fromkeys((each.term, each.found) for each in unseen)
    return [
        UnseenTerm("", *kind).of(", ".join(each.joint for each in unseen if (each.term, each.found) == kind))
        for kind in kinds
    ]


def unseen_terms(
    robot: RobotModel,
    friction: FrictionModel,
    stretches: Sequence[Sequence[NDArray]],
    terms: Collection[str] = NEEDS.keys(),
) -> list[UnseenTerm]:
    """Terms that a motion cannot show, whatever is fitted.

    A term is shown if the joint's friction without it, and with an offset, leaves enough of its column. Harmonics and
    springs need a range besides.

    Args:
        robot: the arm; its links make up the terms `load`.
        friction: its terms.
        stretches: positions, velocities and accelerations (N, n) of consecutive samples.
        terms: those to look at.
    """
    each_asked = [
        [term for term in NEEDS if term in terms and getattr(joint, term)]
        for joint in friction.per_joint(robot.n_joints)
    ]
    if not any(each_asked):
        return []
    loads = [friction.load_torque(robot, *stretch) for stretch in stretches]
    found: list[UnseenTerm] = []
    gravity, slides = own_gravity(robot), robot.chain.prismatic
    for j, (name, joint) in enumerate(zip(robot.joint_names, friction.per_joint(robot.n_joints), strict=True)):
        if not (asked := each_asked[j]):
            continue
        motion = [[each[:, j] for each in stretch] for stretch in stretches]
        torque = [np.zeros(len(q)) if load is None else load[:, j] for load, (q, *_) in zip(loads, motion, strict=True)]
        position, velocity = (np.concatenate([stretch[k] for stretch in motion]) for k in (0, 1))
        way, unit = float(np.ptp(position)), "m" if slides[j] else "rad"
        limit = BOTH_WAYS * np.sqrt(np.mean(velocity**2))
        for term in asked:
            text = ""
            if term == "harmonics":
                text = f"it goes over {way:.3g} of 6.28 rad" if way < LEAST_TURNS * 2 * np.pi else ""
            elif way <= STILL:
                continue
            elif term == "spring" and way < (LEAST_SLIDE if slides[j] else LEAST_RANGE):
                text = f"it goes over {way:.3g} {unit}"
            elif term == "sliding_length" and not (velocity.max() > limit and velocity.min() < -limit):
                text = "it never does"
            else:
                angles = [position] if term == "spring" and gravity[j] else []
                share = _share(joint, replace(joint, **NEEDS[term].without), motion, torque, angles)
                text = f"here {share:.1%} of it is not as without it" if share < NEEDS[term].least else ""
            if text:
                found.append(UnseenTerm(name, term, text))
    return found


def _share(
    joint: JointFriction,
    simpler: JointFriction,
    motion: Sequence[Sequence[NDArray]],
    load: Sequence[NDArray],
    angles: Iterable[NDArray],
) -> float:
    """Largest RMS part of a column of `joint`'s friction that no sum of the simpler one's has."""
    remembers = joint.sliding_length > 0.0
    rivals = _columns(simpler, motion, load, remembers)
    columns = [column for part, column in _columns(joint, motion, load, remembers).items() if part not in rivals]
    gravity = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    matrix = np.column_stack([*rivals.values(), np.ones(len(columns[0])), *gravity])
    wanted = np.column_stack(columns)
    left = wanted - matrix @ np.linalg.lstsq(matrix, wanted, rcond=None)[0]
    size = np.linalg.norm(wanted, axis=0)
    return float(np.max(np.linalg.norm(left, axis=0)[size > 0] / size[size > 0], initial=0.0))


def _columns(
    joint: JointFriction, motion: Sequence[Sequence[NDArray]], load: Sequence[NDArray], remembers: bool
) -> dict[FrictionTerm, NDArray]:
    """Columns (N,) of the terms of a joint's friction, but for its rotor's.

    Beside one that `remembers` a direction is that of the last step, as there: velocities reverse half a sample later.
    """
    directions = []
    for q, qd, _ in motion:
        step = np.diff(q, prepend=2 * q[0] - q[min(1, len(q) - 1)])
        # Before its first motion friction is taken to be that of its direction: it is not known.
        first = float(np.sign(step[np.argmax(step != 0.0)]))
        memory = dahl_direction(q, joint.sliding_length, first) if joint.sliding_length else None
        directions.append(joint.direction_model.evaluate(step if remembers else qd, q, memory))
    return {
        part: np.concatenate(
            [
                part.column(stretch[0], stretch[1], stretch[2], direction, torque)
                for stretch, direction, torque in zip(motion, directions, load, strict=True)
            ]
        )
        for part in joint.parts
        if part.name != "rotor_inertia"
    }


def own_gravity(robot: RobotModel) -> NDArray:
    """(n,) whether gravity loads a joint as a function of its own angle alone, as the second joint of most arms.

    Then a spring or a first harmonic of that angle is what a mass moment of its link is, and torques cannot
    distinguish them.
    """
    q = random_motion(robot, n_samples=20)[0]
    down = robot.gravity / max(np.linalg.norm(robot.gravity), np.finfo(float).tiny)
    parallel = np.all(np.abs(robot.joint_axes(q) @ down) > 1 - PARALLEL, axis=0)
    # Joints before it that only slide, or turn about gravity, do not turn gravity in its frame.
    chain = robot.chain
    turns = ~(parallel | chain.prismatic)
    before = chain.moved[:, chain.own_links] & ~np.eye(chain.n_joints, dtype=bool)
    return ~(before & turns[:, None]).any(axis=0) & turns
