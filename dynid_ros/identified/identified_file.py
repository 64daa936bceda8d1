"""`identified.yaml`: what was identified, for which robot, from what; safe YAML, versioned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import yaml

from dynid_ros import __version__
from dynid_ros.errors import IdentifiedFileError
from dynid_ros.files import MEGABYTE, read_yaml, require_name, write_atomically
from dynid_ros.model import RobotModel

FORMAT = "dynid/1"
FORMATS = (FORMAT, "dynid/2")
"""The second has terms of friction that readers of the first do not know, and is written for these alone."""
UNNAMED = "identified.yaml"
DIRECTION = "gravity_direction"
"""Key in `robot` of a file whose gravity was found, not configured."""
DOF = "degrees_of_freedom"
"""Key of the whole file, or of an entry: a number, or one for each label as in its `std`."""
LARGEST_FILE = 10 * MEGABYTE
LARGEST_MOMENT = 1e6
"""kg m or kg: no arm has more."""
LARGEST_NUMBER = 1e100
"""Products of more than that overflow."""


class IdentifiedDocument(dict):
    """Content of a file, which knows the file, for messages.

    Args:
        content: as read.
        path: of the file.
    """

    def __init__(self, content: dict, path: str | Path):
        super().__init__(content)
        self.path = Path(path)


def file_of(document: Mapping) -> str:
    """Where a document is from, for messages; "identified.yaml" if it is no file yet."""
    return str(getattr(document, "path", UNNAMED))


@dataclass(frozen=True)
class RecordedJoints:
    """A robot of which nothing is known but the names of its joints, in place of a `RobotModel`."""

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
    """Head of the file: format, robot and source; `direction`: a `GravityDirection`, where gravity was found."""
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
            **({} if direction is None else {DIRECTION: direction.section()}),
            **({"held": {joint: float(at) for joint, at in robot.held.items()}} if robot.held else {}),
        },
        "source": {"recordings": list(sources), "settings": dict(settings), "version": __version__},
    }


def save_identified(path: str | Path, document: dict) -> Path:
    """Write the file atomically."""
    return write_atomically(path, yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=120))


def load_identified(path: str | Path) -> IdentifiedDocument:
    """Read the file.

    Raises:
        IdentifiedFileError: unreadable, not plain YAML (tags are refused), or of another format.
    """
    try:
        document = read_yaml(path, LARGEST_FILE)
    except OSError as error:
        raise IdentifiedFileError(
            f"{path}: cannot be read ({error.strerror}); give the file that an identification wrote"
        ) from error
    except ValueError as error:
        raise IdentifiedFileError(f"{path}: not plain YAML ({error}); tags and binary data are refused") from error
    if not isinstance(document, dict) or document.get("format") not in FORMATS:
        found = repr(document.get("format")) if isinstance(document, dict) else "missing"
        source = document.get("source") if isinstance(document, dict) else None
        version = source.get("version") if isinstance(source, dict) else None
        newer = f" with dynid_ros {version} or newer, which wrote it, read it, or" if version else ""
        raise IdentifiedFileError(
            f"{path}: format is {found}, expected {' or '.join(FORMATS)};{newer} run the identification again"
        )
    if not isinstance(document.get("robot"), dict):
        raise IdentifiedFileError(f"{path}: section 'robot' is missing; run the identification again")
    _check_robot(document["robot"], path)
    return IdentifiedDocument(document, path)


def _check_robot(section: dict, path: str | Path) -> None:
    """Refuse names that are no names, and positions of held joints that are no numbers.

    Raises:
        IdentifiedFileError: says which.
    """
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
    """Refuse a file of another robot: joints, kinematics and gravity must agree; inertias may differ.

    Raises:
        IdentifiedFileError: says what differs.
    """
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
    if not _is_numbers(gravity, 3) or not np.allclose(gravity, robot.gravity, atol=1e-3):
        raise IdentifiedFileError(
            f"{file_of(document)} was made with gravity {gravity} in the base frame, this robot has "
            f"{list(robot.gravity)}; set the parameter gravity to the same direction, or identify again"
        )


def found_gravity(document: Mapping) -> tuple[float, ...] | None:
    """Gravity (3,) of a file in which it was found, not configured; None: it was configured.

    Raises:
        IdentifiedFileError: it is no vector, or what is known of it is no mapping.
    """
    robot = document["robot"]
    if not mapping(robot, DIRECTION, f"{file_of(document)}: robot"):
        return None
    gravity = robot.get("gravity")
    if not (isinstance(gravity, list) and _is_numbers(gravity, 3) and any(gravity)):
        raise IdentifiedFileError(f"{file_of(document)}: robot.gravity is {gravity!r}, expected three numbers, m/s^2")
    return tuple(map(float, gravity))


def gravity_of(document: Mapping, configured: Sequence[float], default: Sequence[float]) -> tuple[float, ...]:
    """Gravity (3,) for a model of a file: what was found, where nobody configured anything else than the default."""
    usual = len(configured) == len(default) and np.allclose(configured, default, atol=1e-9)
    found = found_gravity(document) if usual else None
    return tuple(map(float, configured)) if found is None else found


def mapping(parent: Mapping, key: str, where: str) -> dict:
    """The mapping at `key`, empty if there is none; `where` goes into the error if it is something else.

    Raises:
        IdentifiedFileError: it is no mapping.
    """
    child = parent.get(key)
    if child is None:
        return {}
    if not isinstance(child, dict):
        raise IdentifiedFileError(f"{where}: '{key}' is {child!r}, expected a mapping; run the identification again")
    return child


def section_of(document: Mapping, name: str, kind: str) -> dict:
    """The section `name`, which the identification of this kind writes.

    Raises:
        IdentifiedFileError: it is missing, or no mapping.
    """
    section = document.get(name)
    if not isinstance(section, dict):
        raise IdentifiedFileError(f"{file_of(document)} has no section '{name}'; run the {kind} identification")
    return section


def read_number(document: Mapping, entry: Mapping, label: str, where: str) -> float:
    """The number at `label`; NaN for null, what is missing and what is too large to be counted with.

    Raises:
        IdentifiedFileError: it is something else.
    """
    value = entry.get(label)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise IdentifiedFileError(f"{file_of(document)}: {label}, {where}, is {value!r}, expected a number or null")
    return float(value) if is_number(value) else math.nan


def read_finite(document: Mapping, entry: Mapping, label: str, where: str) -> float:
    """The number at `label`.

    Raises:
        IdentifiedFileError: it is none.
    """
    value = entry.get(label)
    if not is_number(value):
        raise IdentifiedFileError(f"{file_of(document)}: {label}, {where}, is {value!r}, expected a number")
    return float(value)


def dof_of(document: Mapping, entry: Mapping | None = None, label: str = "") -> float:
    """Degrees of freedom of a standard error; infinite where the file says none.

    Args:
        document: the file's content.
        entry: that has the standard error; None: any of the file.
        label: of the number in it.
    """
    found: Any = document.get(DOF) if entry is None or DOF not in entry else entry[DOF]
    if isinstance(found, dict):
        found = found.get(label)
    usable = isinstance(found, (int, float)) and not isinstance(found, bool) and found > 0
    return float(found) if usable else math.inf


def as_number(value: float) -> float | None:
    """A number as the file holds it: null for what is NaN or infinite."""
    return float(value) if math.isfinite(value) else None


def as_numbers(values: Iterable[float]) -> list[float | None]:
    """Numbers as the file holds them."""
    return [as_number(value) for value in values]


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value of the file is a number that can be counted with."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def _is_numbers(values: object, length: int) -> bool:
    return isinstance(values, list) and len(values) == length and all(map(is_number, values))
