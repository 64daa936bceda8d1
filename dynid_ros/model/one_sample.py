"""The gravity torque of one sample: straight-line Python on floats, written once per robot.

On 3-vectors numpy spends its time in calls; scalar code is some hundred times faster. Zeros and ones, of which the
transforms of real arms are full, are folded away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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
        self.append(f"{name} = {_text(*kept)}")
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
    chain: Chain, gravity: np.ndarray, moments: Sequence[np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """Function from positions (n,) to gravity torques (n,); the arguments are those of `gravity_source`."""
    namespace: dict = {"sin": math.sin, "cos": math.cos, "array": np.array}
    # The text holds operators, names made in this file and floats, nothing that was read from anywhere.
    exec(gravity_source(chain, gravity, moments), namespace)
    return namespace["gravity_torque"]


def gravity_source(chain: Chain, gravity: np.ndarray, moments: Sequence[np.ndarray]) -> str:
    """Text of a function `gravity_torque(q)`.

    Gravity is turned from frame to frame towards the tip, the mass moment of all that is carried from frame to frame
    towards the base (Ma and Hollerbach 1996, eqs 7 and 18).

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        moments: for each joint its minimal moments, (n_x, n_y), or (mass,) if it is prismatic.

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
    moment = [Term(0.0)] * 3
    torques = [Term(0.0)] * n
    for i in reversed(range(n)):
        if chain.prismatic[i]:
            mass = Term(float(moments[i][0]))
            torques[i] = lines.sum(f"t{i}", -mass.times(downs[i][2]))
            moment[2] = lines.sum(f"m{i}z", moment[2], mass.times(slide[i]))
        else:
            for k, own in enumerate(moments[i]):
                moment[k] = lines.sum(f"m{i}{'xy'[k]}", moment[k], Term(float(own)))
            torques[i] = lines.sum(f"t{i}", downs[i][0].times(moment[1]), -downs[i][1].times(moment[0]))
            moment = lines.turned(f"r{i}", cos[i], sin[i], moment)
        moment = lines.rotated(f"p{i}", rotations[i], moment)
    return _function(n, lines, torques)


def _function(n: int, lines: Lines, torques: Iterable[Term]) -> str:
    """The text of the function, without the lines that no torque needs."""
    results = ", ".join(_text(torque) for torque in torques)
    needed = set(results.replace(",", "").split())
    kept: list[str] = []
    for line in reversed(lines):
        name, expression = line.split(" = ")
        if name in needed:
            needed.update(expression.split())
            kept.append(line)
    body = [
        "".join(f"q{i}, " for i in range(n)) + "= q.tolist()",
        *(f"s{i} = sin(q{i})" for i in range(n) if f"s{i}" in needed),
        *(f"c{i} = cos(q{i})" for i in range(n) if f"c{i}" in needed),
        *reversed(kept),
        f"return array(({results},))",
    ]
    return "\n    ".join(["def gravity_torque(q, sin=sin, cos=cos, array=array):", *body])


def _text(*terms: Term) -> str:
    return " ".join(map(str, terms)).removeprefix("+ ")
