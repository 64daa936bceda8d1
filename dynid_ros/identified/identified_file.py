"""Reading and writing of `identified.yaml`: plain YAML with a format version, whose values are checked when read.

Each error names the file, the path inside it and the expected value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import yaml
from numpy.typing import NDArray

from dynid_ros import __version__
from dynid_ros.errors import IdentifiedFileError
from dynid_ros.files import MEGABYTE, read_yaml, require_name, write_atomically
from dynid_ros.model import RobotModel

UNSAVED_FILE = "identified.yaml"
"""Name in messages for a document that has not been saved."""
MAX_MAGNITUDE = 1e100
"""Largest accepted magnitude of a number: products of a few larger numbers would overflow."""
DOF = "degrees_of_freedom"
"""Key of the degrees of freedom of standard errors: one number for all, or a mapping with the same labels as `std`."""


class Section(dict):
    """Mapping in the file that knows its place, for error messages.

    Attributes:
        place: the file and the path inside it, such as "arm.yaml: friction: joint 'elbow'".
    """

    def __init__(self, content: Mapping, place: str):
        super().__init__(content)
        self.place = place

    @classmethod
    def required(cls, document: Mapping, name: str, kind: str) -> Section:
        """Return the top-level section `name`; if it is missing, the error advises an identification of that `kind`."""
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
    """Return the mapping at `key`, empty if there is none; `where` is the place in an error message."""
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


FORMAT = "dynid/1"
FORMATS = (FORMAT, "dynid/2")
"""Formats, oldest first. The second has friction terms that readers of the first do not know."""
DIRECTION_KEY = "gravity_direction"
"""Key in the section `robot`, with the uncertainty of gravity that was estimated instead of configured."""
MAX_FILE_BYTES = 10 * MEGABYTE
GRAVITY_TOLERANCE = 1e-3
"""Largest difference of components of two gravity vectors that count as equal, m/s²."""


class IdentifiedDocument(dict):
    """Content of a file.

    Attributes:
        path: path of the file, for messages.
    """

    def __init__(self, content: dict, path: str | Path):
        super().__init__(content)
        self.path = Path(path)


@dataclass(frozen=True)
class RecordedJoints:
    """Robot of which only the names of the joints are known, in place of a `RobotModel`; it has the same attributes."""

    joint_names: tuple[str, ...]
    name: str = "robot"
    base: str = ""
    tip: str = ""
    gravity: tuple[float, ...] = ()
    urdf_sha256: str | None = None
    kinematics_sha256: str = ""
    held: Mapping[str, float] = field(default_factory=dict)


def new_document(
    robot: RobotModel | RecordedJoints, sources: Sequence[str], settings: dict, direction: Any = None
) -> dict:
    """Return the head of a document: format, robot and source.

    Args:
        robot: the arm.
        sources: names of the recordings.
        settings: settings of the identification, as plain data.
        direction: estimated `GravityDirection`; None: gravity was configured.
    """
    return {
        "format": FORMAT,
        "robot": {
            "name": robot.name,
            "joints": list(robot.joint_names),
            "base": robot.base,
            "tip": robot.tip,
            "gravity": [float(g) for g in robot.gravity],
            "urdf_sha256": robot.urdf_sha256,
            "kinematics_sha256": robot.kinematics_sha256,
            **({} if direction is None else {DIRECTION_KEY: direction.section()}),
            **({"held": {joint: float(position) for joint, position in robot.held.items()}} if robot.held else {}),
        },
        "source": {"recordings": list(sources), "settings": dict(settings), "version": __version__},
    }


def save_identified(path: str | Path, document: dict) -> Path:
    """Write a document to a file atomically, and return the path."""
    return write_atomically(path, yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=120))


def load_identified(path: str | Path) -> IdentifiedDocument:
    """Read an `identified.yaml`.

    Raises:
        IdentifiedFileError: the file is unreadable, not plain YAML (tags are refused), or of another format.
    """
    try:
        document = read_yaml(path, MAX_FILE_BYTES)
    except OSError as error:
        raise IdentifiedFileError(
            f"{path}: cannot be read ({error.strerror}); give the file that an identification wrote"
        ) from error
    except ValueError as error:
        raise IdentifiedFileError(f"{path}: not plain YAML ({error}); tags and binary data are refused") from error
    if not isinstance(document, dict) or document.get("format") not in FORMATS:
        present = repr(document.get("format")) if isinstance(document, dict) else "missing"
        source = document.get("source") if isinstance(document, dict) else None
        version = source.get("version") if isinstance(source, dict) else None
        newer = f" read it with dynid_ros {version} or newer, or" if version else ""
        raise IdentifiedFileError(
            f"{path}: format is {present}, expected {' or '.join(FORMATS)};{newer} run the identification again"
        )
    if not isinstance(document.get("robot"), dict):
        raise IdentifiedFileError(f"{path}: section 'robot' is missing; run the identification again")
    _check_robot(document["robot"], path)
    return IdentifiedDocument(document, path)


def _check_robot(section: dict, path: str | Path) -> None:
    """Refuse invalid names, and positions of held joints that are not numbers."""
    for key in ("name", "base", "tip"):
        if section.get(key) is not None:
            require_name(section[key], f"{path}: robot.{key}", IdentifiedFileError)
    joints = section.get("joints")
    if joints is not None and not isinstance(joints, list):
        raise IdentifiedFileError(f"{path}: robot.joints is {joints!r}, expected a list of names")
    for joint in joints or ():
        require_name(joint, f"{path}: a joint in robot.joints", IdentifiedFileError)
    for joint, position in mapping(section, "held", f"{path}: robot").items():
        require_name(joint, f"{path}: a joint in robot.held", IdentifiedFileError)
        if not is_number(position):
            raise IdentifiedFileError(f"{path}: robot.held: {joint} is {position!r}, expected a number, rad or m")


def check_same_robot(document: Mapping, robot: RobotModel) -> None:
    """Refuse a file of another robot: joints, kinematics and gravity must agree; inertias may differ."""
    section = document["robot"]
    if section.get("joints") != list(robot.joint_names):
        raise IdentifiedFileError(
            f"{file_of(document)} is of robot '{section.get('name')}' with joints {section.get('joints')}; "
            f"this robot has {list(robot.joint_names)}; give the file of this robot, or the same base and tip"
        )
    if section.get("kinematics_sha256") == "":
        raise IdentifiedFileError(
            f"{file_of(document)} was identified without a URDF: leave the URDF out, or identify with it"
        )
    if section.get("kinematics_sha256") != robot.kinematics_sha256:
        raise IdentifiedFileError(
            f"{file_of(document)} is of another robot '{section.get('name')}': same joint names, other axes or "
            "placements; identify again with this URDF"
        )
    gravity = section.get("gravity")
    if not is_numbers(gravity, 3) or not np.allclose(gravity, robot.gravity, atol=GRAVITY_TOLERANCE):
        raise IdentifiedFileError(
            f"{file_of(document)} was made with gravity {gravity} in the base frame, this robot has "
            f"{list(robot.gravity)}; set the parameter gravity to the same direction, or identify again"
        )


def estimated_gravity(document: Mapping) -> tuple[float, ...] | None:
    """Return the gravity (3,) of a file, m/s², if it was estimated; None if it was configured."""
    robot = document["robot"]
    if not mapping(robot, DIRECTION_KEY, f"{file_of(document)}: robot"):
        return None
    gravity = robot.get("gravity")
    if not (is_numbers(gravity, 3) and any(gravity)):
        raise IdentifiedFileError(f"{file_of(document)}: robot.gravity is {gravity!r}, expected three numbers, m/s^2")
    return tuple(map(float, gravity))


def gravity_of(document: Mapping, configured: Sequence[float], default: Sequence[float]) -> tuple[float, ...]:
    """Return the gravity (3,) for a model, m/s²: the configured one, or if that is the default, the estimated one."""
    is_default = len(configured) == len(default) and np.allclose(configured, default, atol=1e-9)
    estimate = estimated_gravity(document) if is_default else None
    return tuple(map(float, configured)) if estimate is None else estimate
