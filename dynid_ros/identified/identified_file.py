"""`identified.yaml`: the identified model of a robot with its source; safe YAML, versioned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dynid_ros import __version__
from dynid_ros.errors import IdentifiedFileError
from dynid_ros.files import MEGABYTE, read_yaml, require_name, write_atomically
from dynid_ros.identified.section import file_of, is_number, is_numbers, mapping
from dynid_ros.model import RobotModel

FORMAT = "dynid/1"
FORMATS = (FORMAT, "dynid/2")
"""Formats by age. The second has friction terms that readers of the first do not know."""
DIRECTION_KEY = "gravity_direction"
"""Key in `robot` of a file whose gravity was estimated rather than configured."""
MAX_FILE_BYTES = 10 * MEGABYTE
GRAVITY_TOLERANCE = 1e-3
"""Difference of two gravity vectors that count as equal, m/s²."""


class IdentifiedDocument(dict):
    """Content of a file that knows its path, for messages."""

    def __init__(self, content: dict, path: str | Path):
        super().__init__(content)
        self.path = Path(path)


@dataclass(frozen=True)
class RecordedJoints:
    """Robot known by the names of its joints only, in place of a `RobotModel`."""

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
    """Return the head of a file: format, robot and source."""
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
    """Write the file atomically and return its path."""
    return write_atomically(path, yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=120))


def load_identified(path: str | Path) -> IdentifiedDocument:
    """Read a file.

    Raises:
        IdentifiedFileError: it is unreadable, not plain YAML (tags are refused), or of another format.
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
        found = repr(document.get("format")) if isinstance(document, dict) else "missing"
        source = document.get("source") if isinstance(document, dict) else None
        version = source.get("version") if isinstance(source, dict) else None
        newer = f" read it with dynid_ros {version} or newer, or" if version else ""
        raise IdentifiedFileError(
            f"{path}: format is {found}, expected {' or '.join(FORMATS)};{newer} run the identification again"
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
    """Return the gravity (3,) of a file in which it was estimated; None if it was configured."""
    robot = document["robot"]
    if not mapping(robot, DIRECTION_KEY, f"{file_of(document)}: robot"):
        return None
    gravity = robot.get("gravity")
    if not (is_numbers(gravity, 3) and any(gravity)):
        raise IdentifiedFileError(f"{file_of(document)}: robot.gravity is {gravity!r}, expected three numbers, m/s^2")
    return tuple(map(float, gravity))


def gravity_of(document: Mapping, configured: Sequence[float], default: Sequence[float]) -> tuple[float, ...]:
    """Return the gravity (3,) for a model: the estimate of the file, unless something but the default is configured."""
    is_default = len(configured) == len(default) and np.allclose(configured, default, atol=1e-9)
    estimate = estimated_gravity(document) if is_default else None
    return tuple(map(float, configured)) if estimate is None else estimate
