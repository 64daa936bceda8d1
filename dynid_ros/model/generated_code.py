"""Straight-line code for the torque equations of one robot, written as text and compiled once.

On 3-vectors numpy spends its time in calls, so scalar code is some hundred times faster for one sample. The many zeros
and ones in the transforms of real arms are folded away. A text takes floats (one sample) or arrays (many samples);
called with arrays, it is faster than numpy on stacked vectors because it computes only the components that
differ from zero.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.model.chain import Chain

DIRECTION_DECIMALS = 15
"""Decimals of direction cosines: the cosine of 90 degrees is 6e-17 in floating point and becomes zero by rounding."""
MAX_BRACKET_DEPTH = 16
"""Largest number of nested brackets in generated code, which a compiler has to follow."""


class Term(NamedTuple):
    """A constant times variables of the generated function."""

    factor: float
    variables: tuple[str, ...] = ()

    def __neg__(self) -> Term:
        return Term(-self.factor, self.variables)

    def times(self, other: Term) -> Term:
        """Return the product of two terms."""
        return Term(self.factor * other.factor, self.variables + other.variables)

    def __str__(self) -> str:
        size = abs(self.factor)
        factors = self.variables if self.variables and size == 1.0 else (repr(size), *self.variables)
        return f"{'-' if self.factor < 0.0 else '+'} {' * '.join(factors)}"


Vector = list[Term]
ZERO = Term(0.0)


def variable(name: str) -> Term:
    """Return the term that consists of one variable."""
    return Term(1.0, (name,))


def constants(values: ArrayLike) -> Vector:
    """Return the constant terms of numbers (k,)."""
    return [Term(float(value)) for value in np.asarray(values, dtype=float)]


class Lines(list[str]):
    """Assignments, one per line."""

    def sum(self, name: str, *terms: Term) -> Term:
        """Add the line `name = ± terms` and return the sum; a constant or a single variable needs no line."""
        factors: dict[tuple[str, ...], float] = {}
        for factor, variables in terms:
            factors[variables] = factors.get(variables, 0.0) + factor
        constant = factors.pop((), 0.0)
        kept = [Term(factor, variables) for variables, factor in factors.items() if factor != 0.0]
        if constant != 0.0 or not kept:
            kept.append(Term(constant))
        if len(kept) == 1 and (not kept[0].variables or (len(kept[0].variables) == 1 and abs(kept[0].factor) == 1.0)):
            return kept[0]
        # A leading minus would cost one more operation, so the sign of a negative sum moves to where the sum is used.
        kept.sort(key=lambda term: term.factor < 0.0)
        if negative := kept[0].factor < 0.0:
            kept = [-term for term in kept]
        self.append(f"{name} = {text(*kept)}")
        return -variable(name) if negative else variable(name)

    def rotated(self, name: str, rotation: np.ndarray, vector: Sequence[Term]) -> Vector:
        """Return a constant matrix (3, 3) times a vector."""
        return [
            self.sum(f"{name}{axis}", *(Term(c).times(term) for c, term in zip(row, vector, strict=True)))
            for axis, row in zip("xyz", np.round(rotation, DIRECTION_DECIMALS).tolist(), strict=True)
        ]

    def turned(self, name: str, cos: Term, sin: Term, vector: Sequence[Term]) -> Vector:
        """Return a vector turned about z."""
        x, y, z = vector
        return [
            self.sum(f"{name}x", cos.times(x), -sin.times(y)),
            self.sum(f"{name}y", sin.times(x), cos.times(y)),
            z,
        ]

    def needed(self, results: Sequence[Term]) -> tuple[list[str], set[str]]:
        """Return the lines that `results` need, and the names of all variables in both."""
        names = {name for result in results for name in result.variables}
        kept: list[str] = []
        for line in reversed(self):
            variable_name, expression = line.split(" = ")
            if variable_name in names:
                names.update(expression.split())
                kept.append(line)
        return kept[::-1], names


class JointVariables(NamedTuple):
    """Position, velocity and acceleration of the joint that moves a link, and sine and cosine of its position."""

    position: Term
    velocity: Term
    acceleration: Term
    sin: Term
    cos: Term


def joint_variables(lines: Lines, chain: Chain) -> list[JointVariables]:
    """Return the variables of each link's joint; for joints that mimic others, lines that compute them are added.

    An independent joint i has qi, vi, ai, si and ci. Mimic joints are numbered after the independent ones.
    """
    numbers = chain.drivers.tolist()
    for link in sorted(set(range(chain.n_links)) - set(chain.own_links.tolist())):
        driver = numbers[link]
        numbers[link] = chain.n_joints + link
        for letter, offset in (("q", float(chain.offsets[link])), ("v", 0.0), ("a", 0.0)):
            followed = Term(float(chain.ratios[link]), (f"{letter}{driver}",))
            lines.append(f"{letter}{numbers[link]} = {text(followed, *[Term(offset)] * (offset != 0.0))}")
        lines += [
            f"{letter}{numbers[link]} = {name}( q{numbers[link]} )" for letter, name in (("s", "sin"), ("c", "cos"))
        ]
    return [JointVariables(*(variable(f"{letter}{number}") for letter in "qvasc")) for number in numbers]


FUNCTIONS_OF_FLOATS: dict[str, Any] = {
    **{name: getattr(math, name) for name in ("exp", "tanh", "cos", "sin")},
    "abs": abs,
    "max": max,
    "min": min,
}
FUNCTIONS_OF_ARRAYS: dict[str, Any] = {
    **{name: getattr(np, name) for name in ("exp", "tanh", "cos", "sin", "abs")},
    "max": np.maximum,
    "min": np.minimum,
}


def compiled(
    source: str, name: str, array: Callable = np.array, functions: Mapping[str, Any] = FUNCTIONS_OF_FLOATS
) -> Callable:
    """Compile a text that this package wrote and return its function `name`, which makes its result with `array`."""
    namespace: dict = {**functions, "array": array}
    # The text holds operators, names made in these files and floats, nothing that was read from anywhere.
    exec(source, namespace)
    return namespace[name]


def evaluate(expression: str, functions: dict[str, Any], variables: Mapping[str, Any]) -> Any:
    """Return the value of an expression that this package wrote.

    Args:
        expression: the expression.
        functions: `FUNCTIONS_OF_FLOATS` or `FUNCTIONS_OF_ARRAYS`.
        variables: floats or arrays by name.
    """
    return eval(_compiled_expression(expression), functions, variables)


@lru_cache(maxsize=256)
def _compiled_expression(expression: str) -> CodeType:
    return compile(expression, "<expression>", "eval")


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
    frees: bool = False,
) -> str:
    """Return the text of a function that computes `results`, from the lines that they need.

    Args:
        name: name of the function.
        arguments: names of its arguments by the letters that the names of their entries begin with. The argument `q` is
            among them.
        lines: assignments, which may use `s0` and `c0`, the sine and the cosine of `q0`.
        results: results, flat.
        n: number of joints.
        given: text that makes lists of the arguments; empty if they are sequences already.
        sizes: sizes of arguments that are not (n,), by letter.
        made: text that makes the result of its values.
        frees: whether variables are deleted after their last use, so that arrays reuse memory that is in the cache.
    """
    sizes = sizes or {}
    kept, needed = lines.needed(results)
    kept, values = _nested(kept, [text(result) for result in results])
    kept = [
        *(f"s{i} = sin(q{i})" for i in range(n) if f"s{i}" in needed),
        *(f"c{i} = cos(q{i})" for i in range(n) if f"c{i}" in needed),
        *kept,
    ]
    body = [
        *(
            "".join(f"{letter}{i}, " for i in range(sizes.get(letter, n))) + f"= {array}{given}"
            for letter, array in arguments.items()
        ),
        *(_freed(kept, values) if frees else kept),
        f"return {made.format(', '.join(values))}",
    ]
    head = f"def {name}({', '.join(arguments.values())}, sin=sin, cos=cos, array=array):"
    return "\n    ".join([head, *body])


def _nested(lines: Sequence[str], values: Sequence[str]) -> tuple[list[str], list[str]]:
    """Insert expressions that are used once in the place of use, because storing and loading a variable takes time."""
    assignments = [line.split(" = ") for line in lines]
    uses = Counter(part for expression in (*(e for _, e in assignments), *values) for part in expression.split())
    used_once: dict[str, str] = {}

    def insert(expression: str) -> str:
        return " ".join(used_once.pop(part, part) for part in expression.split())

    kept = []
    for name, expression in assignments:
        whole = insert(expression)
        if uses[name] == 1 and whole.count("(") < MAX_BRACKET_DEPTH:
            used_once[name] = f"({whole})"
        else:
            kept.append(f"{name} = {whole}")
    return kept, [insert(value) for value in values]


def _freed(lines: Sequence[str], values: Sequence[str]) -> Iterator[str]:
    """Yield the lines, with a line that deletes the assigned variables that are not used later."""
    last_use: dict[str, int] = {}
    for i, expression in enumerate([*lines, " ".join(values)]):
        last_use |= dict.fromkeys(re.findall(r"[A-Za-z]\w*", expression), i)
    assigned = {line.partition(" = ")[0] for line in lines}
    unused: dict[int, list[str]] = {}
    for name, i in last_use.items():
        if name in assigned:
            unused.setdefault(i, []).append(name)
    for i, line in enumerate(lines):
        yield line
        if i in unused:
            yield f"del {', '.join(unused[i])}"


def text(*terms: Term) -> str:
    """Return the Python text of a sum of terms."""
    return " ".join(map(str, terms)).removeprefix("+ ")
