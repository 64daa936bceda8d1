"""The gravity torque of one sample: straight-line Python on floats, written once per robot.

On 3-vectors numpy spends its time in calls; scalar code is some hundred times faster. Zeros and ones, of which the
transforms of real arms are full, are folded away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dynid_ros.model.chain import Chain

DIRECTION_DECIMALS = 15  # a cosine of 90 degrees is 6e-17 in floating point: rounded, it is the zero that it should be


class Term(NamedTuple):
    """A constant times variables of the generated function."""

    factor: float
    variables: tuple[str, ...] = ()

    def __neg__(self) -> Term:
        return Term(-self.factor, self.variables)

    def times(self, other: Term) -> Term:
        """Product of two terms."""
        return Term(self.factor * other.factor, self.variables + other.variables)

    def __str__(self) -> str:
        size = abs(self.factor)
        factors = self.variables if self.variables and size == 1.0 else (repr(size), *self.variables)
        return f"{'-' if self.factor < 0.0 else '+'} {' * '.join(factors)}"


def variable(name: str) -> Term:
    """The term that is a variable alone."""
    return Term(1.0, (name,))


class Lines(list[str]):
    """Assignments, one per line."""

    def sum(self, name: str, *terms: Term) -> Term:
        """Add the line `name = terms`, unless the sum is a constant or a variable with a sign: then it is returned."""
        constant = sum((term.factor for term in terms if not term.variables), start=0.0)
        kept = [term for term in terms if term.variables and term.factor != 0.0]
        if constant != 0.0 or not kept:
            kept.append(Term(constant))
        if len(kept) == 1 and (not kept[0].variables or (len(kept[0].variables) == 1 and abs(kept[0].factor) == 1.0)):
            return kept[0]
        kept.sort(key=lambda term: term.factor < 0.0)  # a leading minus would be one more operation
        self.append(f"{name} = {text(*kept)}")
        return variable(name)

    def rotated(self, name: str, rotation: np.ndarray, vector: Sequence[Term]) -> list[Term]:
        """Constant matrix (3, 3) times a vector."""
        return [
            self.sum(f"{name}{axis}", *(Term(float(c)).times(term) for c, term in zip(row, vector, strict=True)))
            for axis, row in zip("xyz", np.round(rotation, DIRECTION_DECIMALS), strict=True)
        ]

    def turned(self, name: str, cos: Term, sin: Term, vector: Sequence[Term]) -> list[Term]:
        """Vector turned about z."""
        x, y, z = vector
        return [
            self.sum(f"{name}x", cos.times(x), -sin.times(y)),
            self.sum(f"{name}y", sin.times(x), cos.times(y)),
            z,
        ]


def gravity_function(
    chain: Chain, gravity: np.ndarray, moments: Sequence[np.ndarray] | None = None
) -> Callable[..., np.ndarray]:
    """Function from positions (n,) to gravity torques (n,); the arguments are those of `gravity_source`."""
    return compiled(gravity_source(chain, gravity, moments), "gravity_torque")


def gravity_function_of_lists(chain: Chain, gravity: np.ndarray) -> Callable[..., list[float]]:
    """As above with moments left open, from lists to a list: half the time for who has no arrays."""
    return compiled(gravity_source(chain, gravity, given=""), "gravity_torque", list)


def compiled(source: str, name: str, array: Callable = np.array) -> Callable:
    """The function `name` of a text that this floor wrote, which returns its results as an `array`."""
    namespace: dict = {"sin": math.sin, "cos": math.cos, "array": array}
    # The text holds operators, names made in these files and floats, nothing that was read from anywhere.
    exec(source, namespace)
    return namespace[name]


def gravity_source(
    chain: Chain, gravity: np.ndarray, moments: Sequence[np.ndarray] | None = None, *, given: str = ".tolist()"
) -> str:
    """Text of a function `gravity_torque(q)`, or without moments of `gravity_torque(q, x, y)`.

    Gravity is turned from frame to frame towards the tip, the mass moment of all that is carried from frame to frame
    towards the base (Ma and Hollerbach 1996, eqs 7 and 18).

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        moments: for each joint its minimal moments, (n_x, n_y), or (mass,) if it is prismatic. None: the function takes
            them as x (n,), n_x or mass, and y (n,), n_y.
        given: what makes the arguments lists; none if they are.

    """
    n = chain.n_joints
    lines = Lines()
    rotations = chain.transforms[:, :3, :3]
    cos, sin, slide = ([variable(f"{letter}{i}") for i in range(n)] for letter in "csq")
    down = [Term(float(component)) for component in gravity]
    downs = []
    for i in range(n):
        down = lines.rotated(f"d{i}", rotations[i].T, down)
        if not chain.prismatic[i]:
            down = lines.turned(f"g{i}", cos[i], -sin[i], down)
        downs.append(down)
    if moments is None:
        arguments = {"q": "q", "x": "x", "y": "y"}
        owns = [[variable(f"x{i}"), variable(f"y{i}")] for i in range(n)]
    else:
        arguments = {"q": "q"}
        owns = [[Term(float(own)) for own in joint] for joint in moments]
    moment = [Term(0.0)] * 3
    torques = [Term(0.0)] * n
    for i in reversed(range(n)):
        if chain.prismatic[i]:
            mass = owns[i][0]
            torques[i] = lines.sum(f"t{i}", -mass.times(downs[i][2]))
            moment[2] = lines.sum(f"m{i}z", moment[2], mass.times(slide[i]))
        else:
            for k, own in enumerate(owns[i]):
                moment[k] = lines.sum(f"m{i}{'xy'[k]}", moment[k], own)
            torques[i] = lines.sum(f"t{i}", downs[i][0].times(moment[1]), -downs[i][1].times(moment[0]))
            moment = lines.turned(f"r{i}", cos[i], sin[i], moment)
        moment = lines.rotated(f"p{i}", rotations[i], moment)
    return function_text("gravity_torque", arguments, lines, torques, n, given=given)


def function_text(
    name: str, arguments: Mapping[str, str], lines: Lines, results: Sequence[Term], n: int, *, given: str = ".tolist()"
) -> str:
    """The text of a function that returns an array of `results`, without the lines that none of them needs.

    Args:
        name: of the function.
        arguments: names of its arguments, arrays (n,), by the letters that their entries begin with; there is a `q`.
        lines: assignments, which may use `s0` and `c0`, the sine and the cosine of `q0`.
        results: what is returned, flat.
        n: number of joints.
        given: what makes the arguments lists; none if they are.

    """
    values = ", ".join(text(result) for result in results)
    needed = set(values.replace(",", "").split())
    kept: list[str] = []
    for line in reversed(lines):
        variable_name, expression = line.split(" = ")
        if variable_name in needed:
            needed.update(expression.split())
            kept.append(line)
    body = [
        *("".join(f"{letter}{i}, " for i in range(n)) + f"= {array}{given}" for letter, array in arguments.items()),
        *(f"s{i} = sin(q{i})" for i in range(n) if f"s{i}" in needed),
        *(f"c{i} = cos(q{i})" for i in range(n) if f"c{i}" in needed),
        *reversed(kept),
        f"return array(({values},))",
    ]
    head = f"def {name}({', '.join(arguments.values())}, sin=sin, cos=cos, array=array):"
    return "\n    ".join([head, *body])


def text(*terms: Term) -> str:
    """Python text of a sum of terms."""
    return " ".join(map(str, terms)).removeprefix("+ ")
