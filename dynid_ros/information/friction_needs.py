"""Requirements of friction terms on a motion, and the terms that a motion cannot show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import random_motion
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.friction_terms import FrictionTerm, dahl_direction

MIN_HARMONIC_PERIODS = 0.95
"""Periods of a harmonic below which it is indistinguishable from a line within the range."""
MIN_SPRING_RANGE_RAD = 0.5
MIN_SPRING_RANGE_M = 0.05
MIN_COLUMN_REMAINDER = 0.05
"""Smallest RMS remainder of a term's column after projection on all other columns, relative to the column.

With less, the standard error of the term is more than twenty times as large.
"""
MIN_SATURATION_REMAINDER = 0.02
"""Smallest remainder for saturating viscous friction; real excitation leaves 0.03 to 0.1, of others more."""
MAX_STANDSTILL_RANGE = 0.01
"""Largest range of a joint at standstill, rad or m; such a joint shows none of its parameters."""
MAX_NOISE_OF_RMS_VELOCITY = 0.1
"""Velocity that noise or a filter may cause, relative to a joint's RMS velocity."""
PARALLEL_TOLERANCE = 1e-6
"""Largest difference of a cosine from one for an axis that is parallel to gravity."""


@dataclass(frozen=True)
class Need:
    """Requirement of a friction term on a motion.

    Attributes:
        remedy: the motion to record.
        without: changes of `JointFriction` to the simpler model, which must not fit as well.
        min_remainder: smallest RMS remainder of the term's column after projection on the simpler model.
    """

    sentence: str
    remedy: str
    without: dict[str, Any]
    min_remainder: float = MIN_COLUMN_REMAINDER


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
        MIN_SATURATION_REMAINDER,
    ),
    "load": Need(
        "friction that grows with the load shows in different gravity torques at equal velocities",
        "record motion of it with the other joints in different poses",
        {"load": False},
    ),
    "spring": Need("a spring shows over a range of angles", "record a wider motion of it", {"spring": False}),
    "harmonics": Need(
        "a harmonic of its angle needs a whole period",
        "record a motion over 2π / harmonic, or leave it out (spring is what less shows)",
        {"harmonics": ()},
    ),
    "sliding_length": Need(
        "a sliding length shows where the joint reverses",
        "record slow reversals of it, with rests, or leave sliding_length out",
        {"sliding_length": 0.0},
    ),
}
"""Needs by attribute of `JointFriction`; Coulomb friction, offset and rotor inertia have no need of their own."""


@dataclass(frozen=True)
class UnseenTerm:
    """A friction term that a motion cannot show.

    Attributes:
        term: key of `NEEDS`.
        finding: description of the motion.
    """

    joint: str
    term: str
    finding: str

    def __str__(self) -> str:
        return describe_unseen_terms([self])[0]


def describe_unseen_terms(unseen: Sequence[UnseenTerm]) -> list[str]:
    """Return a sentence for each term and finding, with all of its joints."""
    joints: dict[tuple[str, str], list[str]] = {}
    for term in unseen:
        joints.setdefault((term.term, term.finding), []).append(term.joint)
    return [
        f"friction of {', '.join(names)}: {NEEDS[term].sentence}, and {finding}; {NEEDS[term].remedy}"
        for (term, finding), names in joints.items()
    ]


def unseen_terms(
    robot: RobotModel,
    friction: FrictionModel,
    stretches: Sequence[Sequence[NDArray]],
    terms: Collection[str] = NEEDS.keys(),
) -> list[UnseenTerm]:
    """Find the friction terms that a motion cannot show, whatever is fitted.

    A term shows if the joint's friction without it, together with an offset, leaves enough of its column. Harmonics and
    springs need a range of positions as well.

    Args:
        robot: the arm; its links give the load of the terms `load`.
        friction: terms of the joints.
        stretches: positions, velocities and accelerations (N, n) of consecutive samples.
        terms: terms to check.
    """
    checked_terms = [
        [term for term in NEEDS if term in terms and getattr(joint, term)]
        for joint in friction.per_joint(robot.n_joints)
    ]
    if not any(checked_terms):
        return []
    loads = [friction.load_torque(robot, *stretch) for stretch in stretches]
    has_own_gravity = own_gravity(robot)
    unseen: list[UnseenTerm] = []
    for j, (name, joint) in enumerate(zip(robot.joint_names, friction.per_joint(robot.n_joints), strict=True)):
        motion = [[field[:, j] for field in stretch] for stretch in stretches]
        load = [
            np.zeros(len(q)) if torque is None else torque[:, j] for torque, (q, *_) in zip(loads, motion, strict=True)
        ]
        for term in checked_terms[j]:
            slides = bool(robot.chain.prismatic[j])
            finding = _range_finding(joint, term, motion, slides=slides)
            if finding is None:
                remainder = _column_remainder(joint, term, motion, load, has_own_gravity=bool(has_own_gravity[j]))
                is_unseen = remainder < NEEDS[term].min_remainder
                finding = f"here {remainder:.1%} of it is not as without it" if is_unseen else ""
            if finding:
                unseen.append(UnseenTerm(name, term, finding))
    return unseen


def shows_harmonic(harmonic: float, span: float) -> bool:
    """Return whether positions over a range, rad, show a torque with a number of waves per turn."""
    return span * harmonic >= MIN_HARMONIC_PERIODS * 2 * np.pi


def _range_finding(joint: JointFriction, term: str, motion: Sequence[Sequence[NDArray]], *, slides: bool) -> str | None:
    """Describe the lack of range or of reversals in a joint's motion.

    The text is empty if nothing is to be reported; None: the term's column decides.
    """
    position = np.concatenate([stretch[0] for stretch in motion])
    span = float(np.ptp(position))
    if term == "harmonics":
        lowest = min(joint.harmonics)
        is_seen = shows_harmonic(lowest, span)
        return "" if is_seen else f"it goes over {span:.3g} of {2 * np.pi / lowest:.3g} rad"
    if span <= MAX_STANDSTILL_RANGE:
        return ""
    if term == "spring" and span < (MIN_SPRING_RANGE_M if slides else MIN_SPRING_RANGE_RAD):
        return f"it goes over {span:.3g} {'m' if slides else 'rad'}"
    if term == "sliding_length":
        velocity = np.concatenate([stretch[1] for stretch in motion])
        noise = MAX_NOISE_OF_RMS_VELOCITY * np.sqrt(np.mean(velocity**2))
        if not (velocity.max() > noise and velocity.min() < -noise):
            return "it never does"
    return None


def _column_remainder(
    joint: JointFriction,
    term: str,
    motion: Sequence[Sequence[NDArray]],
    load: Sequence[NDArray],
    *,
    has_own_gravity: bool,
) -> float:
    """Return the largest relative RMS remainder of the term's columns after projection on the simpler model.

    `motion` and `load` are positions, velocities and accelerations (N,) of the joint and torques (N,) of the links at
    it. Gravity may load the joint as a function of its own angle, as a spring does.
    """
    has_memory = joint.sliding_length > 0.0
    simpler = _columns(replace(joint, **NEEDS[term].without), motion, load, has_memory)
    columns = [column for part, column in _columns(joint, motion, load, has_memory).items() if part not in simpler]
    angle = np.concatenate([stretch[0] for stretch in motion])
    gravity = [np.sin(angle), np.cos(angle)] if term == "spring" and has_own_gravity else []
    matrix = np.column_stack([*simpler.values(), np.ones(len(angle)), *gravity])
    target = np.column_stack(columns)
    remainder = target - matrix @ np.linalg.lstsq(matrix, target, rcond=None)[0]
    size = np.linalg.norm(target, axis=0)
    return float(np.max(np.linalg.norm(remainder, axis=0)[size > 0] / size[size > 0], initial=0.0))


def _columns(
    joint: JointFriction, motion: Sequence[Sequence[NDArray]], load: Sequence[NDArray], has_memory: bool
) -> dict[FrictionTerm, NDArray]:
    """Return the columns (N,) of the terms of a joint's friction, without its rotor's inertia.

    With memory, the direction of all terms is that of the last step, because velocities reverse half a sample later.
    """
    directions = []
    for q, qd, _ in motion:
        step = np.diff(q, prepend=2 * q[0] - q[min(1, len(q) - 1)])
        # The friction before the first motion is unknown; it is assumed to have the direction of the first motion.
        first = float(np.sign(step[np.argmax(step != 0.0)]))
        memory = dahl_direction(q, joint.sliding_length, first) if joint.sliding_length else None
        directions.append(joint.direction_model.evaluate(step if has_memory else qd, q, memory))
    return {
        part: np.concatenate(
            [
                np.broadcast_to(part.column(stretch[0], stretch[1], stretch[2], direction, torque), torque.shape)
                for stretch, direction, torque in zip(motion, directions, load, strict=True)
            ]
        )
        for part in joint.parts
        if part.name != "rotor_inertia"
    }


def own_gravity(robot: RobotModel) -> NDArray:
    """Return a mask (n,) of the joints that gravity loads as a function of their own angle alone.

    The second joint of most arms is one. A spring or a first harmonic of its angle then equals the effect of a mass
    moment of its link, so torques cannot distinguish them.
    """
    q = random_motion(robot, n_samples=20)[0]
    down = robot.gravity / max(np.linalg.norm(robot.gravity), np.finfo(float).tiny)
    parallel = np.all(np.abs(robot.joint_axes(q) @ down) > 1 - PARALLEL_TOLERANCE, axis=0)
    # Earlier joints that slide, or that turn about gravity, do not turn gravity in the joint's frame.
    chain = robot.chain
    turns_gravity = ~(parallel | chain.prismatic)
    before = chain.moved[:, chain.own_links] & ~np.eye(chain.n_joints, dtype=bool)
    return ~(before & turns_gravity[:, None]).any(axis=0) & turns_gravity
