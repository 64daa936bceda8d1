"""Friction terms of a joint, linear in their coefficients.

Each term is one column of the torque regressor: the torque is the sum of coefficient times column. A column is written
once, as a Python expression. Identification evaluates it on arrays of samples, the control loop on floats, and the C
export translates it, so the three cannot disagree. All that other modules need to know of a term is in `TERM_KINDS` and
in a field of `JointFriction`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.files.disk_arrays import new_array, row_blocks
from dynid_ros.model.generated_code import FUNCTIONS_OF_ARRAYS, FUNCTIONS_OF_FLOATS, evaluate

MemoryKey = tuple[tuple[int, ...], float]
"""Joints whose positions are summed, and the sliding length, rad or m."""
Memory = Mapping[MemoryKey, NDArray]
"""Directions (N,) with a memory."""


@dataclass(frozen=True)
class FrictionDirection:
    """Model of the direction s of dry friction, between -1 and 1.

    Without a memory s = sign(v), or tanh(v / smoothing) if `smoothing` is positive. With a sliding length d the contact
    deflects before it slides: ds/dq = (1 − s sign(q̇)) / d (Dahl 1968, "A solid friction model", exponent 1). Then s
    depends on displacement only, so friction persists at standstill and a creeping joint has all of it.

    Attributes:
        smoothing: velocity scale of the smooth sign, rad/s or m/s; 0 for a sharp sign.
        dead_zone: largest speed with s = 0, rad/s or m/s.
        sliding_length: displacement d over which the contact deflects before it slides, rad or m; 0 for no memory.
    """

    smoothing: float = 0.0
    dead_zone: float = 0.0
    sliding_length: float = 0.0

    def evaluate(self, velocity: NDArray, position: NDArray | None = None, memory: NDArray | None = None) -> NDArray:
        """Return the directions at velocities; NaN gives NaN.

        Args:
            velocity: velocities of any shape, rad/s or m/s.
            position: (N,) of consecutive samples, rad or m; required for a sliding length without `memory`.
            memory: (N,) directions that were computed before.

        Raises:
            ModelError: there is a sliding length, and positions are missing.
        """
        if not self.sliding_length:
            direction = np.tanh(velocity / self.smoothing) if self.smoothing else np.sign(velocity)
            return np.where(np.abs(velocity) <= self.dead_zone, 0.0, direction) if self.dead_zone else direction
        if memory is not None:
            return memory
        if position is None:
            raise ModelError("friction: a sliding length needs positions of consecutive samples")
        return dahl_direction(position, self.sliding_length)

    def expression(self, velocity: str, memory_index: int | None = None) -> str:
        """Return the expression, in Python and in C, of the direction.

        Args:
            velocity: expression of the velocity.
            memory_index: place of the direction in a sequence `memory`; None for a direction without a memory.
        """
        if memory_index is not None:
            return f"memory[{memory_index}]"
        sign = f"1.0 * ({velocity} > 0.0) - ({velocity} < 0.0)"
        if self.smoothing:
            sign = f"tanh({velocity} / {self.smoothing!r})"
        if self.dead_zone:
            sign = f"(abs({velocity}) > {self.dead_zone!r}) * ({sign})"
        return f"({sign} + 0.0 * {velocity})"  # no comparison with NaN is true, the product is NaN


def sum_over(values: NDArray, joints: tuple[int, ...]) -> NDArray:
    """Return the sum (N,) of values (N, n) over some joints."""
    return values[:, joints[0]] if len(joints) == 1 else values[:, joints].sum(axis=1)


def dahl_direction(position: NDArray, sliding_length: float, initial_direction: float = 0.0) -> NDArray:
    """Return the Dahl directions (N,) along positions (N,) of consecutive samples; see `FrictionDirection`.

    Between two reversals the equation has the closed solution of `dahl_step`, so the loop runs over reversals.

    Args:
        position: (N,), rad or m.
        sliding_length: rad or m.
        initial_direction: direction at the first sample.
    """
    direction = np.full(len(position), initial_direction)
    velocity_sign = np.sign(np.diff(position))
    moving = np.flatnonzero(velocity_sign)
    reversals = moving[np.flatnonzero(np.diff(velocity_sign[moving], prepend=0.0))]
    for first, last in pairwise([*reversals.tolist(), len(position) - 1]):
        displacement = np.abs(position[first + 1 : last + 1] - position[first])
        direction[first + 1 : last + 1] = dahl_step(
            direction[first], velocity_sign[first], displacement, sliding_length
        )
    return direction


def dahl_step(
    direction: NDArray, velocity_sign: NDArray, displacement: NDArray, sliding_length: NDArray | float
) -> NDArray:
    """Return the direction after a displacement (rad or m) without reversal, with sign `velocity_sign`.

    s(x) = sgn + (s_0 − sgn) exp(−x / d) solves ds/dx = (sgn − s) / d, where x is the distance travelled since s_0.
    """
    return velocity_sign + (direction - velocity_sign) * np.exp(-displacement / sliding_length)


class SlidingMemory:
    """Directions with a memory of samples that arrive in parts.

    Args:
        keys: joints and sliding length of each direction.
    """

    def __init__(self, keys: Sequence[MemoryKey]):
        self.keys = list(dict.fromkeys(keys))
        self._last: dict[MemoryKey, tuple[float, float]] = {}

    def restart(self) -> None:
        """Forget the past, because the joints have moved unobserved since the last sample."""
        self._last = {}

    def advance(self, q: NDArray, starts: Iterable[int] = ()) -> dict[MemoryKey, NDArray]:
        """Return the directions (N,) of each key at the next positions.

        Args:
            q: (N, n), rad or m.
            starts: samples before which the joints have moved unobserved.
        """
        directions = {key: new_array(len(q)) for key in self.keys}
        if not self.keys or not len(q):
            return directions
        for first, last in pairwise([0, *sorted({int(start) for start in starts} - {0}), len(q)]):
            if first:
                self.restart()
            for rows in row_blocks(last - first):
                part = slice(first + rows.start, first + rows.stop)
                for (joints, length), values in directions.items():
                    position = sum_over(q[part], joints)
                    before, state = self._last.get((joints, length), (position[0], 0.0))
                    values[part] = dahl_direction(np.append(before, position), length, state)[1:]
                    self._last[joints, length] = (float(position[-1]), float(values[part.stop - 1]))
        return directions


@dataclass(frozen=True)
class TermKind:
    """Kind of a friction term.

    Attributes:
        expression: column, in Python and in C (no powers). Variables: position q, velocity v, acceleration a, direction
            of dry friction s, torque of the links tau (rad, s and N m, or m, s and N), width w.
        label: short name in reports.
        unit: unit of the coefficient for a revolute joint.
        is_nonnegative: whether the coefficient cannot be negative.
        expression_with_width: column of a term with a width, if it differs.
    """

    expression: str
    label: str
    unit: str = "N m"
    is_nonnegative: bool = False
    expression_with_width: str = ""


TERM_KINDS: dict[str, TermKind] = {
    "coulomb": TermKind("s", "Coulomb", is_nonnegative=True),
    "viscous": TermKind("v", "Viscous", "N m s/rad", is_nonnegative=True, expression_with_width="w * tanh(v / w)"),
    "stribeck": TermKind("s * exp(-(v * v) / (w * w))", "Stribeck", is_nonnegative=True),
    "load": TermKind("s * abs(tau)", "Coulomb per load", "", is_nonnegative=True),
    "offset": TermKind("1.0", "Offset"),
    "spring": TermKind("q", "Spring", "N m/rad"),
    "cos": TermKind("cos(w * q)", "Cosine of its angle"),
    "sin": TermKind("sin(w * q)", "Sine of its angle"),
    "rotor_inertia": TermKind("a", "Rotor inertia", "kg m²", is_nonnegative=True),
    "coupling_inertia": TermKind("a", "Coupled inertia", "kg m²"),
    "coupling_viscous": TermKind("v", "Coupled viscous", "N m s/rad"),
    "coupling_coulomb": TermKind("s", "Coupled Coulomb"),
}
"""Kinds of terms by family, in the order of a joint's columns.

A term of a coupled pair has the motion of the other joint, and the direction of the sum of both motions.
"""
COUPLING_TERMS = ("coupling_inertia", "coupling_viscous", "coupling_coulomb")
"""Terms of a coupled pair of joints."""
ASYMMETRIC_TERMS = ("coulomb", "viscous")
"""Terms that `JointFriction.asymmetric` divides by the direction of motion."""


def term_family(name: str) -> str:
    """Return the key of `TERM_KINDS` of a term such as "coulomb_positive" or "cos_2"."""
    return name if name in TERM_KINDS else name.partition("_")[0]


def acts_at_standstill(name: str) -> bool:
    """Return whether a term depends on the joint's position, so that it acts at standstill, too."""
    return "q" in _variables(TERM_KINDS[term_family(name)].expression)


@lru_cache(maxsize=256)
def _template(expression: str) -> str:
    return re.sub(r"\b(q|v|a|s|tau|w)\b", r"{\1}", expression)


@lru_cache(maxsize=256)
def _variables(expression: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", expression))


@dataclass(frozen=True)
class FrictionTerm:
    """One term of a joint's friction; equal terms share a column of a regressor.

    Attributes:
        name: name such as "coulomb", "viscous_positive" or "cos_2".
        direction: direction of dry friction, if the term depends on it.
        width: Stribeck or saturation velocity, rad/s or m/s, or periods per turn of "cos" and "sin".
    """

    name: str
    direction: FrictionDirection | None = None
    width: float | None = None

    @property
    def family(self) -> str:
        """Name without the side of motion or the number of periods."""
        return term_family(self.name)

    @cached_property
    def needs_position(self) -> bool:
        """Whether the column depends on positions."""
        return acts_at_standstill(self.name) or bool(self.direction and self.direction.sliding_length)

    @cached_property
    def needs_load(self) -> bool:
        """Whether the column depends on the torque of the links."""
        return "tau" in _variables(self._expression)

    def column(self, position: Any, velocity: Any, acceleration: Any, direction: Any, load: Any) -> Any:
        """Return the column at one sample (floats) or at N samples (arrays (N,)); a constant column is a float.

        Args:
            position: rad or m.
            velocity: rad/s or m/s.
            acceleration: rad/s² or m/s².
            direction: direction of dry friction, between -1 and 1; None for a term without it.
            load: torque of the links, N m or N.
        """
        functions = FUNCTIONS_OF_ARRAYS if isinstance(velocity, np.ndarray) else FUNCTIONS_OF_FLOATS
        variables = {"q": position, "v": velocity, "a": acceleration, "s": direction, "tau": load, "w": self.width}
        return evaluate(self._expression, functions, variables)

    def text(self, joint: int, direction: str = "") -> str:
        """Return the expression in the variables qi, vi, ai and li (load) of a joint i and the name of a direction."""
        variables = {"q": f"q{joint}", "v": f"v{joint}", "a": f"a{joint}", "tau": f"l{joint}"}
        return _template(self._expression).format(**variables, s=direction, w=repr(self.width))

    @cached_property
    def _expression(self) -> str:
        kind = TERM_KINDS[self.family]
        expression = kind.expression
        if self.width is not None and kind.expression_with_width:
            expression = kind.expression_with_width
        side = self.name.rpartition("_")[2]
        bound = {"positive": "max", "negative": "min"}.get(side)
        return f"{bound}({expression}, 0.0)" if bound else expression


@dataclass(frozen=True)
class JointFriction:
    """Terms of one joint's friction, where v is its velocity and s the direction of dry friction.

    A field that is a bool switches the term of its name on. The direction is sign(v), or tanh(v / smoothing) without a
    step, and zero within the dead zone, where a measured velocity does not determine it. With a sliding length it has a
    memory, see `FrictionDirection`.

    Attributes:
        coulomb: s.
        viscous: v, or w tanh(v / w) that saturates.
        offset: 1.
        rotor_inertia: acceleration; the rotor's inertia seen through the gear.
        asymmetric: separate Coulomb and viscous terms for positive and for negative velocity. An offset then adds
            nothing to the two Coulomb terms, and counts as combined with them.
        load: s |τ|, where τ is the torque of the links at the joint: friction of gears that grows with their load.
        spring: position, rad or m; with the offset a spring towards a rest angle, as of a counterbalance or of cables.
        smoothing: velocity scale of the direction, rad/s or m/s; 0: none.
        dead_zone: highest speed without a direction, rad/s or m/s.
        sliding_length: displacement over which the direction reverses, rad or m; 0: no memory.
        stribeck_velocity: w of an added term s exp(-(v/w)²), rad/s or m/s (Armstrong-Hélouvry, Dupont and Canudas de
            Wit 1994). With a sliding length this term is the breakaway friction after standstill. None: no such term.
        saturation_velocity: w of the viscous term, rad/s or m/s; None: it does not saturate.
        harmonics: h of the terms cos(h q) and sin(h q) of the joint's own angle, each above 0: cables, eccentric gears,
            counterbalances.

    Raises:
        ModelError: a number is negative or not finite, or zero where it must not be.
    """

    coulomb: bool = True
    viscous: bool = True
    offset: bool = False
    rotor_inertia: bool = False
    asymmetric: bool = False
    load: bool = False
    spring: bool = False
    smoothing: float = 0.0
    dead_zone: float = 0.0
    sliding_length: float = 0.0
    stribeck_velocity: float | None = None
    saturation_velocity: float | None = None
    harmonics: tuple[float, ...] = ()

    def __post_init__(self):
        for name, unit in SHAPE_PARAMETERS.items():
            value = getattr(self, name)
            may_be_zero = name not in SHAPES_ABOVE_ZERO
            if value is None and not may_be_zero:
                continue
            if not (math.isfinite(value) and (value > 0.0 or (value == 0.0 and may_be_zero))):
                bound = "of 0 or more" if may_be_zero else "above 0, or None"
                raise ModelError(f"friction: {name} is {value}; expected {unit}, {bound}")
        if self.sliding_length and (self.smoothing or self.dead_zone):
            raise ModelError(
                "friction: sliding_length excludes smoothing and dead_zone, because a direction with memory has neither"
            )
        object.__setattr__(self, "harmonics", tuple(self.harmonics))
        is_valid = all(math.isfinite(h) and h > 0.0 for h in self.harmonics)
        if not is_valid or len(set(self.harmonics)) < len(self.harmonics):
            raise ModelError(f"friction: harmonics are {list(self.harmonics)}; expected different numbers above 0")

    @classmethod
    def none(cls) -> JointFriction:
        """Return a joint without any term."""
        return cls(coulomb=False, viscous=False)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms, in the order of `parts`."""
        return tuple(part.name for part in self.parts)

    @cached_property
    def parts(self) -> tuple[FrictionTerm, ...]:
        """Terms with their directions and widths, in the order of `TERM_KINDS`."""
        widths = {"viscous": self.saturation_velocity, "stribeck": self.stribeck_velocity}
        parts: list[FrictionTerm] = []
        for family, kind in TERM_KINDS.items():
            if family == "cos":
                parts += [FrictionTerm(f"{wave}_{h:g}", None, h) for h in self.harmonics for wave in ("cos", "sin")]
            if self.stribeck_velocity is None if family == "stribeck" else not getattr(self, family, False):
                continue
            direction = self.direction_model if "s" in _variables(kind.expression) else None
            is_divided = self.asymmetric and family in ASYMMETRIC_TERMS
            for side in ("_positive", "_negative") if is_divided else ("",):
                parts.append(FrictionTerm(f"{family}{side}", direction, widths.get(family)))
        return tuple(parts)

    @property
    def shapes(self) -> tuple[str, ...]:
        """Shape parameters in use with their values, such as "saturation_velocity=0.4"."""
        values = {name: getattr(self, name) for name in SHAPE_PARAMETERS}
        return tuple(f"{name}={value:g}" for name, value in values.items() if value)

    @cached_property
    def direction_model(self) -> FrictionDirection:
        """Model of the direction of dry friction."""
        return FrictionDirection(self.smoothing, self.dead_zone, self.sliding_length)


SHAPE_PARAMETERS: Mapping[str, str] = {
    "smoothing": "a velocity, rad/s or m/s",
    "dead_zone": "a velocity, rad/s or m/s",
    "sliding_length": "a displacement, rad or m",
    "stribeck_velocity": "a velocity, rad/s or m/s",
    "saturation_velocity": "a velocity, rad/s or m/s",
}
"""Fields of `JointFriction` that shape terms, with their units."""
SHAPES_ABOVE_ZERO = ("stribeck_velocity", "saturation_velocity")
TERM_FLAGS = tuple(field.name for field in fields(JointFriction) if isinstance(field.default, bool))
"""Fields of `JointFriction` that switch terms."""
HARMONIC = "harmonic"
FRICTION_TERMS = (
    *TERM_FLAGS,
    f"{HARMONIC}=H",
    *(f"{name}={'W' if 'length' in name else 'V'}" for name in SHAPE_PARAMETERS),
)
"""Words of `friction_terms`."""


def coupling_parts(first: JointFriction) -> tuple[FrictionTerm, ...]:
    """Return the terms of a coupled pair; the direction of the sum reverses as that of the first joint does."""
    inertia, viscous, coulomb = COUPLING_TERMS
    return FrictionTerm(inertia), FrictionTerm(viscous), FrictionTerm(coulomb, first.direction_model)


def friction_terms(text: str) -> JointFriction | Literal["auto"]:
    """Return the terms of all joints from "auto", "none", or words of `FRICTION_TERMS` with commas between.

    An example is "coulomb,viscous,stribeck_velocity=0.1,harmonic=1,harmonic=2"; velocities are in rad/s or m/s, lengths
    in rad or m.

    Raises:
        ModelError: an unknown term, or a value that is not possible.
    """
    if text == "auto":
        return "auto"
    words = [] if text == "none" else [word.strip() for word in text.split(",")]
    chosen: dict[str, Any] = dict.fromkeys(TERM_FLAGS, False)
    harmonics: list[float] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name in TERM_FLAGS and not equals:
            chosen[name] = True
        elif name in SHAPE_PARAMETERS and equals:
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
        expected = SHAPE_PARAMETERS.get(name, "a number of periods per turn")
        raise ModelError(f"friction: {name} is '{value}'; expected {expected}") from error
