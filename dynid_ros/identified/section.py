"""Checked reading of values from the mappings of `identified.yaml`.

Each error names the file, the path inside it and the expected value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError

UNSAVED_FILE = "identified.yaml"
"""Name in messages for a document that has not been saved."""
MAX_MAGNITUDE = 1e100
"""Largest magnitude of a number that is accepted: products of a few larger numbers would overflow."""
DOF = "degrees_of_freedom"
"""Key of the degrees of freedom of standard errors: one number for all, or a mapping with the same labels as `std`."""


class Section(dict):
    """Mapping in the file, with its place for error messages.

    Attributes:
        place: the file and the path inside it, such as "arm.yaml: friction: joint 'elbow'".
    """

    def __init__(self, content: Mapping, place: str):
        super().__init__(content)
        self.place = place

    @classmethod
    def required(cls, document: Mapping, name: str, kind: str) -> Section:
        """Return the top-level section `name`; where it is missing, the message advises the `kind` identification."""
        content = document.get(name)
        if not isinstance(content, dict):
            raise IdentifiedFileError(f"{file_of(document)} has no section '{name}'; run the {kind} identification")
        return cls(content, f"{file_of(document)}: {name}")

    @classmethod
    def optional(cls, document: Mapping, name: str) -> Section:
        """Return the top-level section `name`, empty if the file does not have it."""
        return cls(document, file_of(document)).child(name, name)

    def error(self, problem: str) -> IdentifiedFileError:
        """Return an error with the place of this mapping and the problem, for the caller to raise."""
        return IdentifiedFileError(f"{self.place}: {problem}; run the identification again")

    def entry(self, key: str, name: str) -> Section:
        """Return the required mapping at `key`; messages call it `name`."""
        if not isinstance(self.get(key), dict):
            raise self.error(f"{name} is missing")
        return Section(self[key], f"{self.place}: {name}")

    def joint(self, name: str) -> Section:
        """Return the required mapping of a joint."""
        return self.entry(name, f"joint '{name}'")

    def child(self, key: str, name: str | None = None) -> Section:
        """Return the optional mapping at `key`, empty if there is none; messages call it `name`, by default `key`."""
        return Section(mapping(self, key, self.place), f"{self.place}: {name or key}")

    def number(self, key: str) -> float:
        """Return the finite number at `key`."""
        value = self.get(key)
        if not is_number(value):
            raise self.error(f"{key} is {value!r}, expected a number")
        return float(value)

    def positive(self, key: str) -> float:
        """Return the number above zero at `key`."""
        value = self.number(key)
        if value <= 0:
            raise self.error(f"{key} is {value:g}, expected a number above 0")
        return value

    def number_or_nan(self, key: str) -> float:
        """Return the number at `key`; NaN for null, for a missing key and for magnitudes above `MAX_MAGNITUDE`."""
        value = self.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise self.error(f"{key} is {value!r}, expected a number or null")
        return float(value) if is_number(value) else math.nan

    def numbers_or_nan(self, key: str, size: int) -> NDArray:
        """Return the list (size,) of numbers at `key`, with NaN for null."""
        values = self.get(key)
        if not (isinstance(values, list) and len(values) == size and all(v is None or is_number(v) for v in values)):
            raise self.error(f"{key} is {values!r}, expected {size} numbers or nulls")
        return np.array([math.nan if value is None else value for value in values], dtype=float)

    def rows(self, key: str, sizes: Sequence[int]) -> list[list[float]]:
        """Return the rows of a matrix; the file has one string per row, with blanks between the numbers ("0.1 2 3").

        Args:
            key: key of the list of strings.
            sizes: expected number of values in each row; rows of a triangular matrix have different sizes.
        """
        try:
            values = [[float(number) for number in str(row).split()] for row in self[key]]
        except (KeyError, TypeError, ValueError):
            values = []
        if [len(row) for row in values] != list(sizes) or not all(math.isfinite(v) for row in values for v in row):
            raise self.error(f"{key} is malformed, expected {len(sizes)} rows of {sizes[0]} to {sizes[-1]} numbers")
        return values


def file_of(document: Mapping) -> str:
    """Return the path of a document for messages; `UNSAVED_FILE` if the document has no path."""
    return str(getattr(document, "path", UNSAVED_FILE))


def mapping(parent: Mapping, key: str, where: str) -> dict:
    """Return the mapping at `key`, empty if there is none; `where` is the first part of an error message."""
    child = parent.get(key)
    if child is None:
        return {}
    if not isinstance(child, dict):
        raise IdentifiedFileError(f"{where}: '{key}' is {child!r}, expected a mapping; run the identification again")
    return child


def dof_of(document: Mapping, entry: Mapping | None = None, label: str = "") -> float:
    """Return the degrees of freedom of a standard error, for Student's t; infinite if the file has no valid number.

    Args:
        document: the whole file; its number applies if `entry` has no degrees of freedom.
        entry: mapping that contains the standard error; None: use the number of the whole file.
        label: label of the standard error, if the entry has degrees of freedom by label.
    """
    value: Any = document.get(DOF) if entry is None or DOF not in entry else entry[DOF]
    if isinstance(value, dict):
        value = value.get(label)
    is_valid = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    return float(value) if is_valid else math.inf


def as_number(value: float) -> float | None:
    """Return a number for writing to the file; NaN and infinity become None, which YAML writes as null."""
    return float(value) if math.isfinite(value) else None


def as_numbers(values: Iterable[float]) -> list[float | None]:
    """Return numbers for writing to the file, see `as_number`."""
    return [as_number(value) for value in values]


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value of the file is a finite number of a magnitude up to `MAX_MAGNITUDE`."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MAX_MAGNITUDE


def is_numbers(values: object, length: int) -> bool:
    """Return whether a value of the file is a list of `length` numbers, see `is_number`."""
    return isinstance(values, list) and len(values) == length and all(map(is_number, values))
