"""Friction and drives: what the joints add to the torque of the rigid bodies, linear in its coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import ModelError

if TYPE_CHECKING:
    from dynid_ros.model.robot import RobotModel


COUPLING_TERMS = ("coupling_inertia", "coupling_viscous", "coupling_coulomb")


@dataclass(frozen=True)
class JointFriction:
    """Which terms the torque of one joint has, v being its velocity and s(v) the direction of its motion.

    The direction is sign(v), or tanh(v / smoothing) that has no step, and zero within the dead zone, where a measured
    velocity does not determine it.

    Attributes:
        coulomb: s(v).
        viscous: v.
        offset: 1.
        rotor_inertia: acceleration; the rotor's inertia seen through the gear.
        asymmetric: Coulomb and viscous terms of their own for positive and for negative velocity. An offset then adds
            nothing to the two Coulomb terms, and counts as combined with them.
        smoothing: velocity, rad/s or m/s; 0: none.
        dead_zone: highest |v| without a direction, rad/s or m/s.
        stribeck_velocity: w of an added term s(v) exp(-(v/w)^2), rad/s or m/s (Armstrong-Helouvry, Dupont and Canudas
            de Wit 1994); None: no such term.

    Raises:
        ModelError: a velocity that is negative, zero (of the Stribeck term) or not finite.
    """

    coulomb: bool = True
    viscous: bool = True
    offset: bool = False
    rotor_inertia: bool = False
    asymmetric: bool = False
    smoothing: float = 0.0
    dead_zone: float = 0.0
    stribeck_velocity: float | None = None

    def __post_init__(self):
        for name in ("smoothing", "dead_zone"):
            if not (math.isfinite(value := getattr(self, name)) and value >= 0.0):
                raise ModelError(f"friction: {name} is {value}; expected a velocity of 0 or more, rad/s or m/s")
        width = self.stribeck_velocity
        if width is not None and not (math.isfinite(width) and width > 0.0):
            raise ModelError(
                f"friction: stribeck_velocity is {width}; expected a velocity above 0, rad/s or m/s, or None"
            )

    @classmethod
    def none(cls) -> JointFriction:
        """A joint without any term."""
        return cls(coulomb=False, viscous=False)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms, in the order of `values`."""
        chosen = [name for name in ("coulomb", "viscous") if getattr(self, name)]
        if self.asymmetric:
            chosen = [f"{name}_{side}" for name in chosen for side in ("positive", "negative")]
        if self.stribeck_velocity is not None:
            chosen.append("stribeck")
        return (*chosen, *(name for name in ("offset", "rotor_inertia") if getattr(self, name)))

    def values(self, velocity: np.ndarray, acceleration: np.ndarray) -> Iterator[np.ndarray]:
        """Values (N,) of each term at velocities and accelerations (N,)."""
        direction = self.direction(velocity)
        for chosen, value in ((self.coulomb, direction), (self.viscous, velocity)):
            if chosen and self.asymmetric:
                yield np.maximum(value, 0.0)
                yield np.minimum(value, 0.0)
            elif chosen:
                yield value
        if self.stribeck_velocity is not None:
            yield direction * np.exp(-((velocity / self.stribeck_velocity) ** 2))
        if self.offset:
            yield np.ones_like(velocity)
        if self.rotor_inertia:
            yield acceleration

    def direction(self, velocity: np.ndarray) -> np.ndarray:
        """Direction s(v) of motion at velocities of any shape, -1 to 1; NaN where the velocity is."""
        direction = np.tanh(velocity / self.smoothing) if self.smoothing else np.sign(velocity)
        direction[np.abs(velocity) <= self.dead_zone] = 0.0
        return direction


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
    """

    def __init__(
        self,
        joints: JointFriction | Sequence[JointFriction] = JointFriction(),
        coupled: Iterable[tuple[int, int]] = (),
    ):
        self.joints = joints
        self.coupled = tuple(coupled)

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
            robot: the arm.
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
        )

    def names(self, robot: RobotModel) -> tuple[str, ...]:
        """Names of the k coefficients, such as "coulomb joint_2" or "coupling_viscous joint_5 joint_6".

        Raises:
            ModelError: the model is for another number of joints.
        """
        own = [
            f"{term} {name}"
            for name, joint in zip(robot.joint_names, self.of(robot.n_joints), strict=True)
            for term in joint.terms
        ]
        pairs = [f"{robot.joint_names[i]} {robot.joint_names[j]}" for i, j in self.coupled]
        return (*own, *(f"{term} {pair}" for pair in pairs for term in COUPLING_TERMS))

    def regressor(self, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Matrix (N, n, k) from the coefficients to the torques, at velocities and accelerations (N, n).

        Raises:
            ModelError: arrays of unlike shapes, or of another number of joints than the model's.
        """
        qd, qdd = np.asarray(qd, dtype=float), np.asarray(qdd, dtype=float)
        if qd.ndim != 2 or qd.shape != qdd.shape:
            raise ModelError(f"qd and qdd have shapes {qd.shape} and {qdd.shape}; expected (N, n) for both")
        joints = self.of(qd.shape[1])
        size = sum(len(joint.terms) for joint in joints) + len(COUPLING_TERMS) * len(self.coupled)
        matrix = np.zeros((*qd.shape, size))
        column = 0
        for row, joint in enumerate(joints):
            for value in joint.values(qd[:, row], qdd[:, row]):
                matrix[:, row, column] = value
                column += 1
        for i, j in self.coupled:
            for source in (qdd, qd):
                matrix[:, i, column], matrix[:, j, column] = source[:, j], source[:, i]
                column += 1
            matrix[:, [i, j], column] = joints[i].direction(qd[:, i] + qd[:, j])[:, None]
            column += 1
        return matrix

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


SWITCHES = ("coulomb", "viscous", "offset", "rotor_inertia", "asymmetric")
SHAPES = ("smoothing", "dead_zone", "stribeck_velocity")
FRICTION_TERMS = (*SWITCHES, *(f"{name}=V" for name in SHAPES))


def friction_terms(text: str) -> JointFriction | Literal["auto"]:
    """Terms of all joints: "auto", "none", or attributes of `JointFriction` with commas between.

    As in "coulomb,viscous,stribeck_velocity=0.1"; velocities are in rad/s or m/s.

    Raises:
        ModelError: an unknown term, or a velocity that makes no sense.
    """
    if text == "auto":
        return "auto"
    words = [] if text == "none" else [word.strip() for word in text.split(",")]
    chosen: dict[str, Any] = dict.fromkeys(SWITCHES, False)
    for word in words:
        name, equals, value = word.partition("=")
        if name in SWITCHES and not equals:
            chosen[name] = True
        elif name in SHAPES and equals:
            chosen[name] = _velocity(name, value)
        else:
            raise ModelError(
                f"friction: '{word}' is no term; expected auto, none, or some of {', '.join(FRICTION_TERMS)}"
            )
    return JointFriction(**chosen)


def _velocity(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise ModelError(f"friction: {name} is '{value}'; expected a velocity, rad/s or m/s") from error


class FrictionTerms:
    """What the regressor of friction holds.

    Args:
        friction: its terms.
        n_joints: n.

    Attributes:
        of: function from velocities and accelerations, n floats each, to a tuple of the p entries that are not zero.
        places: (p, n, k) of ones and zeros, where these are in the regressor: the sum of terms times places.

    Raises:
        ModelError: the model is for another number of joints.
    """

    def __init__(self, friction: FrictionModel, n_joints: int):
        entries: list[tuple[int, int, str]] = []
        lines: list[str] = []
        column = 0
        joints = friction.of(n_joints)
        for i, joint in enumerate(joints):
            lines.append(f"d{i} = {_direction(joint, f'v{i}')}")
            for term in joint.terms:
                entries.append((i, column, _term(term, joint, i)))
                column += 1
        for i, j in friction.coupled:
            for letter in "av":
                entries += [(i, column, f"{letter}{j}"), (j, column, f"{letter}{i}")]
                column += 1
            entries += [(k, column, _direction(joints[i], f"(v{i} + v{j})")) for k in (i, j)]
            column += 1
        unpack = ["".join(f"{letter}{i}, " for i in range(n_joints)) + f"= {name}" for letter, name in _ARGUMENTS]
        body = "\n    ".join([*unpack, *lines, f"return ({''.join(f'{text}, ' for *_, text in entries)})"])
        namespace: dict = {"exp": math.exp, "tanh": math.tanh}
        # The text holds operators, names made here and floats, nothing that was read from anywhere.
        exec(f"def terms(qd, qdd, exp=exp, tanh=tanh):\n    {body}", namespace)
        self.of: Callable[[Sequence[float], Sequence[float]], tuple[float, ...]] = namespace["terms"]
        self.places = np.zeros((len(entries), n_joints, column))
        for k, (row, place, _) in enumerate(entries):
            self.places[k, row, place] = 1.0


_ARGUMENTS = (("v", "qd"), ("a", "qdd"))


def _direction(joint: JointFriction, velocity: str) -> str:
    text = f"tanh({velocity} / {joint.smoothing!r})" if joint.smoothing else f"({velocity} > 0.0) - ({velocity} < 0.0)"
    if joint.dead_zone:
        text = f"0.0 if abs({velocity}) <= {joint.dead_zone!r} else {text}"
    # NaN, which no comparison knows, stays NaN.
    return f"(({text}) + 0.0 * {velocity})"


def _term(term: str, joint: JointFriction, i: int) -> str:
    value = {"coulomb": f"d{i}", "viscous": f"v{i}", "offset": "1.0", "rotor_inertia": f"a{i}"}
    if term == "stribeck":
        return f"d{i} * exp(-((v{i} / {joint.stribeck_velocity!r}) * (v{i} / {joint.stribeck_velocity!r})))"
    name, _, side = term.rpartition("_")
    if side in ("positive", "negative"):
        return f"{'max' if side == 'positive' else 'min'}({value[name]}, 0.0)"
    return value[term]
