"""The gravity torque of one sample: straight-line Python on floats, written once per robot.

On 3-vectors numpy spends its time in calls; scalar code is some hundred times faster. Zeros and ones, of which the
transforms of real arms are full, are folded away.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dynid_ros.model.chain import Chain

DIRECTION_DECIMALS = 15  # a cosine of 90 degrees is 6e-17 in floating point: rounded, it is the zero that it should be


DEEPEST = 16  # brackets in one another that a compiler has to follow


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
        """Add the line `name = ± terms`, and return the sum; one that is a constant or a variable needs no line."""
        constant = sum((term.factor for term in terms if not term.variables), start=0.0)
        kept = [term for term in terms if term.variables and term.factor != 0.0]
        if constant != 0.0 or not kept:
            kept.append(Term(constant))
        if len(kept) == 1 and (not kept[0].variables or (len(kept[0].variables) == 1 and abs(kept[0].factor) == 1.0)):
            return kept[0]
        # A leading minus would be one more operation: that of a whole sum goes to where it is used.
        kept.sort(key=lambda term: term.factor < 0.0)
        if negative := kept[0].factor < 0.0:
            kept = [-term for term in kept]
        self.append(f"{name} = {text(*kept)}")
        return -variable(name) if negative else variable(name)

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

    def needed(self, results: Sequence[Term]) -> tuple[list[str], set[str]]:
        """The lines that `results` need, and the names of all variables in both."""
        names = {name for result in results for name in result.variables}
        kept: list[str] = []
        for line in reversed(self):
            variable_name, expression = line.split(" = ")
            if variable_name in names:
                names.update(expression.split())
                kept.append(line)
        return kept[::-1], names


def compiled(source: str, name: str, array: Callable = np.array) -> Callable:
    """The function `name` of a text that this floor wrote, which returns its results as an `array`."""
    namespace: dict = {"sin": math.sin, "cos": math.cos, "array": array}
    # The text holds operators, names made in these files and floats, nothing that was read from anywhere.
    exec(source, namespace)
    return namespace[name]


def link_numbers(lines: Lines, chain: Chain) -> list[int]:
    """What q, v, a, s and c of each link are numbered by: its joint, if it is no mimic's; else lines are added first.

    These make up position, velocity, acceleration, sine and cosine of a joint that mimics another.
    """
    numbers = chain.drivers.tolist()
    for link in sorted(set(range(chain.n_links)) - set(chain.own_links.tolist())):
        driver, numbers[link] = numbers[link], chain.n_joints + link
        for letter, offset in (("q", float(chain.offsets[link])), ("v", 0.0), ("a", 0.0)):
            followed = Term(float(chain.ratios[link]), (f"{letter}{driver}",))
            lines.append(f"{letter}{numbers[link]} = {text(followed, *[Term(offset)] * (offset != 0.0))}")
        lines += [
            f"{letter}{numbers[link]} = {name}( q{numbers[link]} )" for letter, name in (("s", "sin"), ("c", "cos"))
        ]
    return numbers


def function_text(
    name: str,
    arguments: Mapping[str, str],
    lines: Lines,
    results: Sequence[Term],
    n: int,
    *,
    given: str = ".tolist()",
    sizes: Mapping[str, int] | None = None,
    made: str = "array(({},))",
) -> str:
    """The text of a function that returns an array of `results`, without the lines that none of them needs.

    Args:
        name: of the function.
        arguments: names of its arguments, arrays (n,), by the letters that their entries begin with; there is a `q`.
        lines: assignments, which may use `s0` and `c0`, the sine and the cosine of `q0`.
        results: what is returned, flat.
        n: number of joints.
        given: what makes the arguments lists; none if they are.
        sizes: of arguments that are not (n,), by letter.
        made: what makes the result of its values.
    """
    sizes = sizes or {}
    kept, needed = lines.needed(results)
    kept, values = _nested(kept, [text(result) for result in results])
    body = [
        *(
            "".join(f"{letter}{i}, " for i in range(sizes.get(letter, n))) + f"= {array}{given}"
            for letter, array in arguments.items()
        ),
        *(f"s{i} = sin(q{i})" for i in range(n) if f"s{i}" in needed),
        *(f"c{i} = cos(q{i})" for i in range(n) if f"c{i}" in needed),
        *kept,
        f"return {made.format(', '.join(values))}",
    ]
    head = f"def {name}({', '.join(arguments.values())}, sin=sin, cos=cos, array=array):"
    return "\n    ".join([head, *body])


def _nested(lines: Sequence[str], values: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines and values with what is used once where it is used: a variable takes time to store and to load."""
    assignments = [line.split(" = ") for line in lines]
    uses = Counter(part for expression in (*(e for _, e in assignments), *values) for part in expression.split())
    once: dict[str, str] = {}

    def filled(expression: str) -> str:
        return " ".join(once.pop(part, part) for part in expression.split())

    kept = []
    for name, expression in assignments:
        whole = filled(expression)
        if uses[name] == 1 and whole.count("(") < DEEPEST:
            once[name] = f"({whole})"
        else:
            kept.append(f"{name} = {whole}")
    return kept, [filled(value) for value in values]


def text(*terms: Term) -> str:
    """Python text of a sum of terms."""
    return " ".join(map(str, terms)).removeprefix("+ ")
