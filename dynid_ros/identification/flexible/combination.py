"""A sum of parameters."""

from typing import NamedTuple


class Combination(NamedTuple):
    """Value and standard error of a sum of parameters, and the sum to read."""

    expression: str
    value: float
    standard_error: float
