"""Page of a result from the content of `identified.yaml`, and the sections that all kinds of results share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.gravity_direction import GravityDirection
from dynid_ros.identified.identified_file import dof_of, file_of, is_number, mapping
from dynid_ros.identified.validation import Validation, read_repeatability, read_validations
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import prismatic_unit
from dynid_ros.report.formats import (
    PRISMATIC,
    REVOLUTE,
    UNKNOWN_TEXT,
    JointUnits,
    fixed,
    joint_units,
    percent,
    plus_minus,
    significant,
)
from dynid_ros.report.page import Bullets, Cell, Facts, Page, Section, Table, Text, Tile

UNKNOWN_VERSION = "of unknown version"
SETTING_WORDS = {"True": "yes", "False": "no", "None": "none"}


@dataclass(frozen=True)
class ResultPart:
    """Part of a page on one kind of result.

    Attributes:
        title: name of the result, such as "Links".
        sentences: summary at the top of the page.
        tiles: important numbers at the top of the page.
        sections: details; None is skipped.
    """

    title: str
    sentences: Sequence[str]
    tiles: Sequence[Tile]
    sections: Sequence[Section | None]


def result_page(document: Mapping[str, Any], *parts: ResultPart, settings: Mapping[str, str] | None = None) -> Page:
    """Return the page of a result.

    Args:
        document: content of `identified.yaml`.
        parts: kinds of results, the most important first.
        settings: further settings, as text by name.
    """
    file = file_of(document)
    robot = mapping(document, "robot", file)
    source = mapping(document, "source", file)
    remarks = document.get("remarks")
    direction = GravityDirection.of_document(document)
    return Page(
        title=f"{parts[0].title} of {robot.get('name')}",
        kind=f"Identification: {', '.join(part.title.lower() for part in parts)}",
        heading=str(robot.get("name", "robot")),
        sentences=[
            *(sentence for part in parts for sentence in part.sentences),
            *([] if direction is None else [direction.sentence]),
        ],
        tiles=[tile for part in parts for tile in part.tiles],
        sections=[
            *(section for part in parts for section in part.sections),
            validation_section(document),
            repeatability_section(document),
            Section("Remarks", [Bullets([str(remark) for remark in remarks])]) if isinstance(remarks, list) else None,
            _source_section(document, robot, source, settings or {}),
        ],
        version=str(source.get("version", UNKNOWN_VERSION)),
    )


def joints_of(document: Mapping[str, Any]) -> list[str]:
    """Return the names of the robot's joints.

    Raises:
        IdentifiedFileError: the document has no list of names.
    """
    joints = document["robot"].get("joints")
    if not isinstance(joints, list) or not all(isinstance(joint, str) for joint in joints):
        raise IdentifiedFileError(f"{file_of(document)}: robot.joints is {joints!r}, expected a list of names")
    return joints


def entries_of(document: Mapping[str, Any], section: str, names: Sequence[str] | None = None) -> dict[str, dict]:
    """Return the entries of a section by joint, in the order of the joints; joints without an entry are left out.

    Args:
        document: content of `identified.yaml`.
        section: key of the section.
        names: names of the entries; None: joints of the robot.

    Raises:
        IdentifiedFileError: the section has no entry with one of these names.
    """
    file = file_of(document)
    content = mapping(document, section, file)
    present = [name for name in (joints_of(document) if names is None else names) if content.get(name)]
    if not present:
        raise IdentifiedFileError(f"{file}: section '{section}' names none of the robot's joints; identify again")
    return {name: mapping(content, name, f"{file}: {section}") for name in present}


def units_of(document: Mapping[str, Any], robot: RobotModel | None) -> dict[str, JointUnits]:
    """Return the units of each joint; without a robot, a joint is prismatic if its gravity parameter is a mass."""
    names = joints_of(document)
    if robot is not None:
        return dict(zip(names, joint_units(robot), strict=True))
    gravity = document.get("gravity")
    entries = gravity if isinstance(gravity, dict) else {}
    return {name: PRISMATIC if "mass" in (entries.get(name) or {}) else REVOLUTE for name in names}


def number_of(entry: Mapping[str, Any], label: str) -> float:
    """Return the number at `label`; NaN if it is missing or not a number."""
    value = entry.get(label)
    return float(value) if is_number(value) else float("nan")


def numbers_of(document: Mapping[str, Any], entry: Mapping[str, Any], label: str, length: int) -> np.ndarray:
    """Return the numbers (length,) at `label`; NaN for null, and for all if the list is missing.

    Raises:
        IdentifiedFileError: the list has another length.
    """
    values = entry.get(label)
    if values is None:
        return np.full(length, np.nan)
    if not isinstance(values, list) or len(values) != length:
        raise IdentifiedFileError(f"{file_of(document)}: {label} is {values!r}, expected {length} numbers")
    return np.array([float(value) if is_number(value) else np.nan for value in values])


def half_width_of(document: Mapping[str, Any], entry: Mapping[str, Any], label: str) -> float:
    """Return half of the 95 % interval of the number at `label`, from its standard error; NaN: not known."""
    errors = entry.get("std")
    error = number_of(errors, label) if isinstance(errors, dict) else float("nan")
    return float(half_width(error, dof_of(document, entry, label)))


def with_interval(document: Mapping[str, Any], entry: Mapping[str, Any], label: str, unit: str = "") -> str:
    """Return the number at `label` with its 95 % interval as "value ± half unit"; a dash if it is null."""
    value = number_of(entry, label)
    half = half_width_of(document, entry, label)
    text = plus_minus(value, half) if np.isfinite(value) and half > 0 else significant(value)
    return f"{text} {unit}" if unit and text != UNKNOWN_TEXT else text


def joint_table(
    document: Mapping[str, Any],
    section: str,
    columns: Mapping[str, tuple[str, str]],
    units: Mapping[str, JointUnits],
) -> Table:
    """Return the table of a section with a row for each joint; columns without any number are omitted.

    Args:
        document: content of `identified.yaml`.
        section: key of the section.
        columns: heading and unit for revolute joints, by the label in the entries.
        units: units of each joint. A prismatic joint has its unit in the cell if other joints are revolute.
    """
    entries = entries_of(document, section)
    only_prismatic = all(units[joint] is PRISMATIC for joint in entries)
    shown: dict[str | tuple[str, str], Sequence[str | Cell]] = {}
    for label, (heading, unit) in columns.items():
        if any(is_number(entry.get(label)) for entry in entries.values()):
            shown[heading, prismatic_unit(unit) if only_prismatic else unit] = [
                with_interval(document, entry, label, "" if only_prismatic else cell_unit(unit, units[joint]))
                for joint, entry in entries.items()
            ]
    return Table.by_column("Joint", list(entries), shown)


def cell_unit(unit: str, joint: JointUnits) -> str:
    """Return the unit for a cell of a prismatic joint whose heading has the unit for revolute joints, otherwise ""."""
    prismatic = prismatic_unit(unit)
    return prismatic if joint is PRISMATIC and prismatic != unit else ""


def base_table(document: Mapping[str, Any]) -> Table:
    """Return the folded table of the base parameters: linear combination, estimate by the data alone, URDF."""
    entries = document.get("base_parameters")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IdentifiedFileError(f"{file_of(document)}: base_parameters must be a list of mappings; identify again")
    estimates = [with_interval(document, {**entry, "std": {"value": entry.get("std")}}, "value") for entry in entries]
    return Table.by_column(
        "Base parameter",
        [str(entry.get("expression", "")) for entry in entries],
        {"Estimate": estimates, "URDF": [significant(number_of(entry, "urdf")) for entry in entries]},
        folded=f"All {len(entries)} base parameters",
    )


def validation_section(document: Mapping[str, Any]) -> Section | None:
    """Return the section of residuals on recordings that were not fitted; None if there are none."""
    validations = read_validations(document, joints_of(document))
    tables = [part for one in validations for part in (Text(one.recording, "heading"), agreement_table(one))]
    return Section("Validation", ["Residuals on recordings that were not fitted.", *tables]) if tables else None


def repeatability_section(document: Mapping[str, Any]) -> Section | None:
    """Return the section on differences of torque between repetitions of a motion; None without repetitions."""
    measured = read_repeatability(document, joints_of(document))
    if measured is None or not measured.sentences():
        return None
    return Section(
        "Repeatability",
        [
            "The robot repeated a motion. The RMS difference of the torques of two runs, divided by √2, is the floor: "
            "the smallest RMS residual of any model that predicts torque from motion. Drift is the fraction of the "
            "squared difference that a change of offset, dry and viscous friction between the runs explains.",
            *(f"{sentence[0].upper()}{sentence[1:]}." for sentence in measured.sentences()),
            Table.by_column("Joint", measured.joint_names, measured.cells()),
        ],
    )


def repeatability_tile(document: Mapping[str, Any]) -> list[Tile]:
    """Return a tile with the residual as a multiple of the floor; empty without repetitions."""
    measured = read_repeatability(document, joints_of(document))
    if measured is None or not np.isfinite(measured.total_ratio):
        return []
    low, high = measured.total_interval
    note = f"{low:.2g} to {high:.2g} (95 %); 1: as exact as the robot repeats, sum of the joints"
    return [Tile("Residual over repeatability", f"{measured.total_ratio:.2g} ×", note)]


def agreement_table(validation: Validation) -> Table:
    """Return the table of residuals of the predicted torque by joint."""
    return Table.by_column(
        "Joint",
        validation.joint_names,
        {
            ("Residual", f"RMS, {validation.unit}"): [significant(value) for value in validation.rms],
            ("Relative residual", "over the measured RMS"): [percent(value) for value in validation.relative_rms],
            ("R²", "centred"): [fixed(value, 4) for value in validation.r2],
        },
    )


def robot_facts(section: Mapping[str, Any]) -> dict[str, str]:
    """Return name, joints, gravity and hashes from the section `robot`; without a URDF, only name and joints."""
    gravity = section.get("gravity")
    if not isinstance(gravity, list) or not all(map(is_number, gravity)):
        raise IdentifiedFileError(f"robot.gravity is {gravity!r}, expected numbers; identify again")
    name = str(section.get("name", "robot"))
    joints = ", ".join(map(str, section.get("joints") or ()))
    if not gravity:
        return {"Robot": f"{name}, without URDF", "Joints": joints}
    base = section.get("base", "the base")
    digests = {"URDF": section.get("urdf_sha256"), "kinematics": section.get("kinematics_sha256")}
    shown = [f"{what} {str(digest)[:16]}" for what, digest in digests.items() if digest]
    return {
        "Robot": f"{name}, from {base} to {section.get('tip', 'the tip')}",
        "Joints": joints,
        "Gravity": f"{', '.join(significant(value, 6) for value in gravity)} m/s² along x, y, z of {base}",
        "Fingerprints": f"{', '.join(shown)} (first digits of SHA-256)" if shown else "none",
    }


def _source_section(
    document: Mapping[str, Any], robot: Mapping[str, Any], source: Mapping[str, Any], further: Mapping[str, str]
) -> Section:
    """Return the section on robot, recordings and settings."""
    settings = mapping(source, "settings", f"{file_of(document)}: source") | dict(further)
    written = [f"{name}: {SETTING_WORDS.get(str(value), value)}" for name, value in settings.items()]
    recordings = ", ".join(map(str, source.get("recordings") or ())) or "not named"
    facts = robot_facts(robot) | {"Recordings": recordings, "Settings": ", ".join(written)}
    return Section("Robot and source", [Facts(facts)])
