"""Friction and drives: what the joints add to the torque of the rigid bodies, linear in its coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.friction_terms import (
    COUPLING_TERMS,
    Direction,
    FrictionTerm,
    Memory,
    MemoryKey,
    SlidingMemory,
)

if TYPE_CHECKING:
    from dynid_ros.model.robot import RobotModel


@dataclass(frozen=True)
class JointFriction:
    """Which terms the torque of one joint has, v being its velocity and s the direction of its motion.

    The direction is sign(v), or tanh(v / smoothing) that has no step, and zero within the dead zone, where a measured
    velocity does not determine it; or, with a sliding length, it has a memory, see `Direction`.

    Attributes:
        coulomb: s.
        viscous: v, or w tanh(v / w) that saturates.
        offset: 1.
        rotor_inertia: acceleration; the rotor's inertia seen through the gear.
        asymmetric: Coulomb and viscous terms of their own for positive and for negative velocity. An offset then adds
            nothing to the two Coulomb terms, and counts as combined with them.
        load: s |τ|, τ being the torque of the links at the joint: friction of gears that grows with what they carry.
        spring: position, rad or m; with the offset a spring towards a rest angle, as of a counterbalance or of cables.
        harmonics: h of the terms cos(h q) and sin(h q) of the joint's own angle, each above 0: cables, gears that are
            not round, counterbalances.
        smoothing: velocity, rad/s or m/s; 0: none.
        dead_zone: highest |v| without a direction, rad/s or m/s.
        sliding_length: way over which the direction reverses, rad or m; 0: no memory.
        stribeck_velocity: w of an added term s exp(-(v/w)^2), rad/s or m/s (Armstrong-Helouvry, Dupont and Canudas
            de Wit 1994); with a sliding length it is what breaks away after standstill; None: no such term.
        saturation_velocity: w of the viscous term, rad/s or m/s; None: it does not saturate.

    Raises:
        ModelError: a number that is negative or not finite, or zero where it must not be.
    """

    coulomb: bool = True
    viscous: bool = True
    offset: bool = False
    rotor_inertia: bool = False
    asymmetric: bool = False
    smoothing: float = 0.0
    dead_zone: float = 0.0
    stribeck_velocity: float | None = None
    load: bool = False
    spring: bool = False
    harmonics: tuple[float, ...] = ()
    sliding_length: float = 0.0
    saturation_velocity: float | None = None

    def __post_init__(self):
        for name, unit in _UNITS.items():
            value = getattr(self, name)
            may_be_zero = name not in _ABOVE_ZERO
            if value is None and not may_be_zero:
                continue
            if not (math.isfinite(value) and (value > 0.0 or (value == 0.0 and may_be_zero))):
                raise ModelError(
                    f"friction: {name} is {value}; expected {unit}"
                    + (" of 0 or more" if may_be_zero else " above 0, or None")
                )
        if self.sliding_length and (self.smoothing or self.dead_zone):
            raise ModelError(
                "friction: sliding_length is given besides smoothing or dead_zone; a direction with memory has neither"
            )
        object.__setattr__(self, "harmonics", tuple(self.harmonics))
        if not all(math.isfinite(h) and h > 0.0 for h in self.harmonics) or len(set(self.harmonics)) < len(
            self.harmonics
        ):
            raise ModelError(f"friction: harmonics are {list(self.harmonics)}; expected different numbers above 0")

    @classmethod
    def none(cls) -> JointFriction:
        """A joint without any term."""
        return cls(coulomb=False, viscous=False)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms, in the order of `parts`."""
        return tuple(part.name for part in self.parts)

    @cached_property
    def parts(self) -> tuple[FrictionTerm, ...]:
        """The terms with their shapes."""
        way, sides = self.way, ("_positive", "_negative") if self.asymmetric else ("",)
        found = [FrictionTerm(f"coulomb{side}", way) for side in sides if self.coulomb]
        found += [FrictionTerm(f"viscous{side}", None, self.saturation_velocity) for side in sides if self.viscous]
        if self.stribeck_velocity is not None:
            found.append(FrictionTerm("stribeck", way, self.stribeck_velocity))
        if self.load:
            found.append(FrictionTerm("load", way))
        found += [FrictionTerm(name) for name in ("offset", "spring") if getattr(self, name)]
        found += [FrictionTerm(f"{wave}_{h:g}", None, h) for h in self.harmonics for wave in ("cos", "sin")]
        return (*found, *([FrictionTerm("rotor_inertia")] if self.rotor_inertia else ()))

    @property
    def shapes(self) -> tuple[str, ...]:
        """Shape parameters that are in use with their values, as in "saturation_velocity=0.4"."""
        values = {name: getattr(self, name) for name in SHAPES}
        return tuple(f"{name}={value:g}" for name, value in values.items() if value)

    @property
    def way(self) -> Direction:
        """How the direction of motion is seen."""
        return Direction(self.smoothing, self.dead_zone, self.sliding_length)

    def direction(self, velocity: NDArray, position: NDArray | None = None) -> NDArray:
        """Direction s of motion at velocities of any shape, -1 to 1; NaN where the velocity is. See `Direction.of`."""
        return self.way.of(velocity, position)


_UNITS = {
    "smoothing": "a velocity, rad/s or m/s,",
    "dead_zone": "a velocity, rad/s or m/s,",
    "sliding_length": "a way, rad or m,",
    "stribeck_velocity": "a velocity, rad/s or m/s,",
    "saturation_velocity": "a velocity, rad/s or m/s,",
}
_ABOVE_ZERO = ("stribeck_velocity", "saturation_velocity")


def coupling_parts(first: JointFriction) -> tuple[FrictionTerm, ...]:
    """Return the terms of a pair: the direction of its sum reverses as that of its first joint does."""
    inertia, viscous, coulomb = COUPLING_TERMS
    return FrictionTerm(inertia), FrictionTerm(viscous), FrictionTerm(coulomb, first.way)


class FrictionModel:
    """Friction and drives of all joints: torque = regressor @ coefficients.

    Coefficients are in N m, N m s/rad and kg m^2 (in N, N s/m and kg for prismatic joints); friction that brakes and
    rotors have positive ones.

    Two coupled joints have a motor that drives both, as the last two of a Stäubli arm: its rotor feels the sum of their
    motions. The sum's parts that are not of a joint alone are three more terms: coupling_inertia and coupling_viscous
    take the acceleration and the velocity of each to the torque of the other, coupling_coulomb adds the direction of
    the sum to both torques.

    Args:
        joints: terms of every joint, or a sequence of n, from base to tip.
        coupled: pairs of coupled joints, counted from 0.
        load_parameters: (10 n,) of the links whose torque makes up the terms `load`; None: no joint has one.
    """

    def __init__(
        self,
        joints: JointFriction | Sequence[JointFriction] = JointFriction(),
        coupled: Iterable[tuple[int, int]] = (),
        load_parameters: ArrayLike | None = None,
    ):
        self.joints = joints
        self.coupled = tuple(coupled)
        self.load_parameters = None if load_parameters is None else np.asarray(load_parameters, dtype=float)

    @classmethod
    def by_name(
        cls,
        robot: RobotModel,
        joints: Mapping[str, JointFriction],
        others: JointFriction | None = None,
        coupled: Iterable[tuple[str, str]] = (),
    ) -> FrictionModel:
        """Model with terms by the names of joints.

        Args:
            robot: the arm; its links make up the terms `load`.
            joints: terms of the joints named.
            others: terms of all others; None: no friction.
            coupled: pairs of names of coupled joints.

        Raises:
            ModelError: the robot has no joint of such a name.
        """
        pairs = [tuple(pair) for pair in coupled]
        unknown = sorted({*joints, *(name for pair in pairs for name in pair)} - set(robot.joint_names))
        if unknown:
            raise ModelError(
                f"friction: {robot.name} has no joint {', '.join(unknown)}; its joints: {', '.join(robot.joint_names)}"
            )
        rest = others or JointFriction.none()
        index = robot.joint_names.index
        return cls(
            [joints.get(name, rest) for name in robot.joint_names],
            [(index(first), index(second)) for first, second in pairs],
            robot.parameters,
        )

    def names(self, robot: RobotModel) -> tuple[str, ...]:
        """Names of the k coefficients, such as "coulomb joint_2" or "coupling_viscous joint_5 joint_6".

        Raises:
            ModelError: the model is for another number of joints.
        """
        joints = robot.joint_names
        return tuple(" ".join([term, *(joints[j] for j in owners)]) for term, owners in self.keys(robot.n_joints))

    def keys(self, n_joints: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the term and the joints, counted from 0, of each of the k coefficients.

        Names of joints may have blanks, so no joint is found by splitting a name of `names`.

        Raises:
            ModelError: the model is for another number of joints.
        """
        single = [(term, (j,)) for j, joint in enumerate(self.of(n_joints)) for term in joint.terms]
        return (*single, *((term, pair) for pair in self.coupled for term in COUPLING_TERMS))

    def regressor(
        self,
        qd: ArrayLike,
        qdd: ArrayLike,
        q: ArrayLike | None = None,
        load: NDArray | None = None,
        memory: Memory | None = None,
    ) -> NDArray:
        """Matrix (N, n, k) from the coefficients to the torques, at velocities and accelerations (N, n).

        Args:
            qd: (N, n).
            qdd: (N, n).
            q: (N, n) positions, of consecutive samples where a joint has a sliding length; needed by springs,
                harmonics and sliding lengths alone.
            load: (N, n) torque of the links, for terms `load`; see `load_torque`.
            memory: directions that depend on what was before, see `memory`; None: nothing was.

        Raises:
            ModelError: arrays of unlike shapes, of another number of joints than the model's, or missing.
        """
        qd, qdd = np.asarray(qd, dtype=float), np.asarray(qdd, dtype=float)
        if qd.ndim != 2 or qd.shape != qdd.shape:
            raise ModelError(f"qd and qdd have shapes {qd.shape} and {qdd.shape}; expected (N, n) for both")
        joints = self.of(qd.shape[1])
        for name, given, needed in (
            ("q", q, any(part.needs_position for joint in joints for part in joint.parts)),
            ("load", load, self.needs_load),
        ):
            if needed and (given is None or np.shape(given) != qd.shape):
                raise ModelError(f"friction: its terms need {name}, expected shape {qd.shape}")
        q = np.zeros_like(qd) if q is None else np.asarray(q, dtype=float)
        load = np.zeros_like(qd) if load is None else load
        memory = self.memory(q) if memory is None else memory
        size = sum(len(joint.terms) for joint in joints) + len(COUPLING_TERMS) * len(self.coupled)
        matrix = np.zeros((*qd.shape, size))
        column = 0
        for j, joint in enumerate(joints):
            direction = joint.way.of(qd[:, j], q[:, j], memory.get(((j,), joint.sliding_length)))
            for part in joint.parts:
                matrix[:, j, column] = part.value(q[:, j], qd[:, j], qdd[:, j], direction, load[:, j])
                column += 1
        for i, j in self.coupled:
            direction = joints[i].way.of(
                qd[:, i] + qd[:, j], q[:, i] + q[:, j], memory.get(((i, j), joints[i].sliding_length))
            )
            for part in coupling_parts(joints[i]):
                for own, other in ((i, j), (j, i)):
                    values = part.value(q[:, other], qd[:, other], qdd[:, other], direction, load[:, other])
                    matrix[:, own, column] = values
                column += 1
        return matrix

    def of_motion(
        self, robot: RobotModel, q: NDArray, qd: NDArray, qdd: NDArray, memory: Memory | None = None
    ) -> NDArray:
        """As `regressor`, (N, n, k), of a motion (N, n) of the arm."""
        return self.regressor(qd, qdd, q, self.load_torque(robot, q, qd, qdd), memory)

    def load_torque(self, robot: RobotModel, q: NDArray, qd: NDArray, qdd: NDArray) -> NDArray | None:
        """(N, n) torque of the links that load the gears, N m; None: no joint has a term `load`."""
        return robot.inverse_dynamics(q, qd, qdd, self.load_parameters) if self.needs_load else None

    @property
    def needs_load(self) -> bool:
        """Whether a joint has a term `load`."""
        joints = [self.joints] if isinstance(self.joints, JointFriction) else self.joints
        return any(joint.load for joint in joints)

    def memory(self, q: NDArray, starts: Iterable[int] = ()) -> Memory:
        """Directions of motion with a memory, along positions (N, n) of consecutive samples.

        Args:
            q: (N, n).
            starts: samples before which the joints were elsewhere; the first is one anyway.
        """
        return SlidingMemory(self.memory_keys(q.shape[1])).advance(q, starts)

    def memory_keys(self, n_joints: int) -> list[tuple[tuple[int, ...], float]]:
        """Joints, of which the positions are summed, and sliding length of each direction with a memory."""
        joints = self.of(n_joints)
        found: list[MemoryKey] = [((j,), joint.sliding_length) for j, joint in enumerate(joints)]
        found += [((i, j), joints[i].sliding_length) for i, j in self.coupled]
        return [key for key in found if key[1]]

    def of(self, n_joints: int) -> Sequence[JointFriction]:
        """Terms of each of n joints.

        Raises:
            ModelError: the model is for another number of joints.
        """
        joints = [self.joints] * n_joints if isinstance(self.joints, JointFriction) else self.joints
        if len(joints) != n_joints:
            raise ModelError(f"friction: it is given for {len(joints)} joints; expected the {n_joints} of the robot")
        for pair in self.coupled:
            if len(set(pair)) != 2 or not set(pair) <= set(range(n_joints)):
                raise ModelError(f"friction: coupled joints {pair}; expected two of the joints 0 to {n_joints - 1}")
        return joints


SWITCHES = ("coulomb", "viscous", "offset", "rotor_inertia", "asymmetric", "load", "spring")
SHAPES = ("smoothing", "dead_zone", "sliding_length", "stribeck_velocity", "saturation_velocity")
HARMONIC = "harmonic"
FRICTION_TERMS = (*SWITCHES, f"{HARMONIC}=H", *(f"{name}={'W' if 'length' in name else 'V'}" for name in SHAPES))


def friction_terms(text: str) -> JointFriction | Literal["auto"]:
    """Terms of all joints: "auto", "none", or attributes of `JointFriction` with commas between.

    As in "coulomb,viscous,stribeck_velocity=0.1,harmonic=1,harmonic=2"; velocities are in rad/s or m/s, ways in rad
    or m.

    Raises:
        ModelError: an unknown term, or a number that makes no sense.
    """
    if text == "auto":
        return "auto"
    words = [] if text == "none" else [word.strip() for word in text.split(",")]
    chosen: dict[str, Any] = dict.fromkeys(SWITCHES, False)
    harmonics: list[float] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name in SWITCHES and not equals:
            chosen[name] = True
        elif name in SHAPES and equals:
            chosen[name] = _number(name, value)
        elif name == HARMONIC and equals:
            harmonics.append(_number(name, value))
        else:
            raise ModelError(
                f"friction: '{word}' is no term; expected auto, none, or some of {', '.join(FRICTION_TERMS)}"
            )
    return JointFriction(**chosen, harmonics=tuple(harmonics))


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        what = _UNITS.get(name, "a number of waves per turn").rstrip(",")
        raise ModelError(f"friction: {name} is '{value}'; expected {what}") from error


def friction_code(friction: FrictionModel, n_joints: int) -> tuple[list[str], list[tuple[int, int, str]]]:
    """Assignments, and row, column and expression of each entry of the regressor that is not zero, for one sample.

    Expressions are of Python and, but for the names of functions, of C: of positions qi, velocities vi, accelerations
    ai, torques of the links li, and directions with a memory, `memory[k]` in the order of `FrictionModel.memory_keys`.
    """
    entries: list[tuple[int, int, str]] = []
    lines: list[str] = []
    column = 0
    joints, keys = friction.of(n_joints), friction.memory_keys(n_joints)
    for i, joint in enumerate(joints):
        own: MemoryKey = ((i,), joint.sliding_length)
        lines.append(f"d{i} = {joint.way.text(f'v{i}', keys.index(own) if own in keys else None)}")
        for part in joint.parts:
            entries.append((i, column, part.text(i)))
            column += 1
    for i, j in friction.coupled:
        for letter in "av":
            entries += [(i, column, f"{letter}{j}"), (j, column, f"{letter}{i}")]
            column += 1
        own = ((i, j), joints[i].sliding_length)
        text = joints[i].way.text(f"(v{i} + v{j})", keys.index(own) if own in keys else None)
        entries += [(k, column, text) for k in (i, j)]
        column += 1
    return lines, entries


class FrictionTerms:
    """What the regressor of friction holds.

    Args:
        friction: its terms.
        n_joints: n.

    Attributes:
        of: function from positions, velocities and accelerations, n floats each, the directions with a memory in the
            order of `FrictionModel.memory_keys`, and the n torques of the links, to a tuple of the p entries that are
            not zero.
        places: (p, n, k) of ones and zeros, where these are in the regressor: the sum of terms times places.

    Raises:
        ModelError: the model is for another number of joints.
    """

    def __init__(self, friction: FrictionModel, n_joints: int):
        lines, entries = friction_code(friction, n_joints)
        unpack = ["".join(f"{letter}{i}, " for i in range(n_joints)) + f"= {name}" for letter, name in _ARGUMENTS]
        body = "\n    ".join([*unpack, *lines, f"return ({''.join(f'{text}, ' for *_, text in entries)})"])
        namespace: dict = {name: getattr(math, name) for name in ("exp", "tanh", "cos", "sin")}
        # The text holds operators, names made here and floats, nothing that was read from anywhere.
        exec(f"def terms(q, qd, qdd, memory, load, exp=exp, tanh=tanh, cos=cos, sin=sin):\n    {body}", namespace)
        self.of: Callable[..., tuple[float, ...]] = namespace["terms"]
        self.places = np.zeros((len(entries), n_joints, 1 + max((column for _, column, _ in entries), default=-1)))
        for k, (row, place, _) in enumerate(entries):
            self.places[k, row, place] = 1.0


_ARGUMENTS = (("q", "q"), ("v", "qd"), ("a", "qdd"), ("l", "load"))
