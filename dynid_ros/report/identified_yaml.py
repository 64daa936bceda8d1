"""The page of an `identified.yaml`: all that the file says, and how well it predicts recordings that are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.flexible_joints import LINK_FRICTION_KEYS
from dynid_ros.identified.identified_file import IdentifiedDocument
from dynid_ros.identified.joint_friction import determined_friction
from dynid_ros.identified.section import dof_of, file_of, is_number, mapping
from dynid_ros.identified.validation import Validation, read_validations
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import Body
from dynid_ros.report.formats import MISSING, brief, joint_units, percent, plus_minus, significant
from dynid_ros.report.link_parameters import LINK_COLUMNS, body_cells
from dynid_ros.report.page import (
    UNKNOWN_VERSION,
    Figures,
    Legend,
    Page,
    Section,
    Table,
    Text,
    Tile,
    agreement_table,
    condition,
    remarks_section,
    source_section,
)
from dynid_ros.report.plots import prediction_panels, shown_rows

# What is in an `identified.yaml`, as tables.


LONG_TABLE = 20
"""Rows above which a table is folded."""
SPRINGS = (
    ("stiffness", "Stiffness", "N m/rad"),
    ("motor_inertia", "Motor inertia", "kg m²"),
    ("motor_viscous", "Motor viscous", "N m s/rad"),
    (LINK_FRICTION_KEYS["coulomb"], "Link Coulomb", "N m"),
    (LINK_FRICTION_KEYS["viscous"], "Link viscous", "N m s/rad"),
)
FRICTION = (
    ("torque_positive", "Moving up", "N m"),
    ("torque_negative", "Moving down", "N m"),
    ("coulomb", "Coulomb", "N m"),
    ("viscous", "Viscous", "N m s/rad"),
    ("offset", "Offset", "N m"),
    ("rotor_inertia", "Rotor inertia", "kg m²"),
)
TORSION = (("stiffness", "Stiffness", "N m/rad; of slides N/m"), ("low", "95 %: from", ""), ("high", "to", ""))
SENSORS = (("gain", "Gain", "read ÷ true"), ("offset", "Offset", "as read"))
LEADING = re.compile(r" [+-] ")


def sections(document: dict) -> list[Section]:
    """All that is known how to show, in the order of the page.

    Raises:
        IdentifiedFileError: a section is malformed, or none is there.
    """
    makers: dict[str, Callable[[dict], Section]] = {
        "gravity": _gravity,
        "links": _links,
        "friction": _friction,
        "load": _load,
        "flexible_joints": _flexible,
        "torsion": _torsion,
        "torque_sensors": _sensors,
        "base_parameters": _base,
    }
    found = [make(document) for name, make in makers.items() if document.get(name)]
    if not found:
        raise IdentifiedFileError(
            f"{file_of(document)}: nothing in it that can be shown; expected one of {', '.join(makers)}"
        )
    return [*found, *_validations(document)]


def _section(
    title: str,
    said: str,
    explain: str,
    columns: Sequence[str | tuple[str, str]],
    rows: Sequence[Sequence[str]],
    *,
    words: bool = False,
) -> Section:
    """A table; with `words` its last column holds words."""
    folded = f"All {len(rows)} in numbers" if len(rows) > LONG_TABLE else ""
    return Section(title, [explain, Table(columns, rows, [len(columns) - 1] * words, folded)], said)


def _gravity(document: dict) -> Section:
    section, rows, known = mapping(document, "gravity", file_of(document)), [], 0
    for joint in _joints(document):
        entry = mapping(section, joint, f"{file_of(document)}: gravity")
        if entry.get("observable") is True:
            known += 1
            labels = ("mass",) if "mass" in entry else ("n_x", "n_y")
            cells = [_with_error(document, entry, label) for label in labels]
            rows.append([joint, *cells, *[""] * (2 - len(cells)), ""])
        else:
            rows.append([joint, MISSING, MISSING, str(entry.get("reason", "not identified"))])
    return _section(
        "Gravity",
        f"Gravity parameters of {known} of {len(rows)} joints.",
        "Mass times distance of what each joint carries, along x and y of its frame (of a prismatic joint its mass, "
        "kg), with 95 % intervals.",
        ("Joint", ("n x", "kg m"), ("n y", "kg m"), "Why not")[: 3 + (known < len(rows))],
        rows if known < len(rows) else [row[:3] for row in rows],
        words=known < len(rows),
    )


def _links(document: dict) -> Section:
    section, rows, total = mapping(document, "links", file_of(document)), [], 0.0
    for link in section:
        entry = mapping(section, link, f"{file_of(document)}: links")
        values = [entry.get("mass"), *_list(document, entry, "mass_moment", 3), *_list(document, entry, "inertia", 6)]
        body = Body.of(np.array([_number(value) for value in values]))
        total += body.mass
        rows.append(
            [
                str(link),
                significant(body.mass) + ("" if body.possible else " – impossible"),
                *body_cells(body),
            ]
        )
    return _section(
        "Links",
        f"{len(rows)} links of {significant(total)} kg in all.",
        "Centre of mass in the link's frame, principal inertia about it. What torques determine only in combination is "
        "divided among the links: the torques are right, the single number need not be.",
        LINK_COLUMNS,
        rows,
    )


def _friction(document: dict) -> Section:
    shown = IdentifiedDocument({**document, "friction": determined_friction(document)}, file_of(document))
    return _per_joint(shown, "friction", "Friction", "Friction of {n} joints.", FRICTION)


def _flexible(document: dict) -> Section:
    said = "Springs and motors of {n} joints."
    return _per_joint(document, "flexible_joints", "Flexible joints", said, SPRINGS)


def _torsion(document: dict) -> Section:
    section = mapping(document, "torsion", file_of(document))
    found = {}
    for joint in filter(section.get, _joints(document)):
        entry = mapping(section, joint, f"{file_of(document)}: torsion")
        low, high = _list(document, entry, "stiffness_interval", 2)
        found[joint] = {"stiffness": entry.get("stiffness"), "low": low, "high": high}
    return _per_joint({**document, "torsion": found}, "torsion", "Torsion", "Torsion of {n} joints.", TORSION)


def _sensors(document: dict) -> Section:
    said = "Gains and offsets of the torque sensors of {n} joints."
    return _per_joint(document, "torque_sensors", "Torque sensors", said, SENSORS)


def _per_joint(document: dict, name: str, title: str, said: str, columns: Sequence[tuple[str, str, str]]) -> Section:
    section = mapping(document, name, file_of(document))
    entries = {
        joint: mapping(section, joint, f"{file_of(document)}: {name}")
        for joint in _joints(document)
        if section.get(joint)
    }
    if not entries:
        raise IdentifiedFileError(
            f"{file_of(document)}: section '{name}' names none of the robot's joints; identify again"
        )
    shown = [column for column in columns if any(is_number(entry.get(column[0])) for entry in entries.values())]
    rows = [[joint, *(_with_error(document, entry, key) for key, _, _ in shown)] for joint, entry in entries.items()]
    return _section(
        title,
        said.format(n=len(rows)),
        "With 95 % intervals where they are known; units are those of revolute joints, prismatic ones have N and m.",
        ("Joint", *((label, unit) for _, label, unit in shown)),
        rows,
    )


def _load(document: dict) -> Section:
    load = mapping(document, "load", file_of(document))
    if load.get("loaded") is False:
        said = "No load is shown."
        rows = [["Mass", "0 kg"]]
    else:
        mass, interval = _number(load.get("mass")), (load.get("interval") or {}).get("mass") or [None, None]
        low, high = (significant(_number(value), 4) for value in interval)
        said = f"A load of {significant(mass, 4)} kg."
        rows = [
            ["Mass", f"{significant(mass, 4)} kg, 95 %: {low} to {high}"],
            [
                "Centre",
                f"{_joined(1000 * _numbers(document, load.get('center'), 3), brief)} mm from {load.get('frame', '')}",
            ],
            ["Inertia", f"{_joined(_numbers(document, load.get('inertia'), 6), lambda v: significant(v, 2))} kg m²"],
        ]
    explain = "What the arm carries, in the frame of the tip; inertia is xx, xy, xz, yy, yz, zz about its centre."
    return _section("Load", said, explain, ("What", "Value"), rows, words=True)


def _base(document: dict) -> Section:
    entries = document["base_parameters"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IdentifiedFileError(f"{file_of(document)}: base_parameters must be a list of mappings; identify again")
    rows = []
    for entry in entries:
        expression = str(entry.get("expression", ""))
        value = _with_error(document, {**entry, "std": {"value": entry.get("std")}}, "value")
        rows.append([LEADING.split(expression)[0], value, expression])
    return _section(
        "Base parameters",
        f"{len(rows)} combinations of link parameters and friction that torques determine.",
        "By the data alone, with 95 % intervals, each named by the parameter that leads it; in kg, kg m and kg m², "
        "friction as above.",
        ("Parameter", "Value", "Combination"),
        rows,
        words=True,
    )


def _validations(document: dict) -> Iterator[Section]:
    try:
        found = read_validations(document, _joints(document))
    except IdentifiedFileError:
        return  # of flexible joints, which are validated by other numbers
    for validation in found:
        worst = float(np.max(validation.relative_rms, initial=0.0, where=np.isfinite(validation.relative_rms)))
        yield Section(
            "Validation",
            [f"Predicted against measured torque of {validation.recording}.", agreement_table(validation)],
            f"On a recording that was not fitted it was off by {percent(worst)} of the torque at most (RMS, by joint).",
        )


def _joints(document: dict) -> list[str]:
    joints = document["robot"].get("joints")
    if not isinstance(joints, list) or not all(isinstance(joint, str) for joint in joints):
        raise IdentifiedFileError(f"{file_of(document)}: robot.joints is {joints!r}, expected a list of names")
    return joints


def _with_error(document: dict, entry: dict, label: str) -> str:
    value, errors = _number(entry.get(label)), entry.get("std")
    ends = entry.get(f"{label}_interval")
    if isinstance(ends, list) and len(ends) == 2:
        low, high = map(_number, ends)
        return f"{significant(value)}, {significant(low)} to {significant(high) if np.isfinite(high) else 'rigid'}"
    error = _number(errors.get(label) if isinstance(errors, dict) else None)
    half = float(half_width(error, dof_of(document, entry, label)))
    return plus_minus(value, half) if np.isfinite(half) and half > 0 else significant(value)


def _number(value: object) -> float:
    return float(value) if is_number(value) else float("nan")


def _numbers(document: dict, values: object, length: int) -> NDArray:
    return np.array([_number(value) for value in _list(document, {"": values}, "", length)])


def _list(document: dict, entry: dict, name: str, length: int) -> list:
    values = entry.get(name)
    if values is None:
        return [None] * length
    if not isinstance(values, list) or len(values) != length:
        raise IdentifiedFileError(f"{file_of(document)}: {name or 'an entry'} is {values!r}, expected {length} numbers")
    return values


def _joined(values: NDArray, text: Callable[[float], str]) -> str:
    return ", ".join(map(text, values.tolist()))


@dataclass(frozen=True, eq=False)
class Predicted:
    """A recording and what the file predicts of it.

    Attributes:
        validation: agreement per joint.
        time: (N,) s.
        measured, predicted: (N, n) torque, both through the same low-pass.
    """

    validation: Validation
    time: NDArray
    measured: NDArray
    predicted: NDArray


def write_file_report(
    path: str | Path, document: dict, robot: RobotModel | None = None, predictions: Sequence[Predicted] = ()
) -> Path:
    """Write the page.

    Args:
        path: of the HTML file; folders are made.
        document: content of the file.
        robot: the arm; needed where there are predictions.
        predictions: of recordings.

    Raises:
        IdentifiedFileError: malformed, or nothing in it that can be shown.
    """
    tables = sections(document)
    source = mapping(document, "source", file_of(document))
    remarks = document.get("remarks")
    about = robot or _robot(document)
    return Page(
        f"{about.name}: what was identified",
        "What identified.yaml holds",
        about.name,
        [table.said for table in tables],
        _tiles(document, predictions),
        [
            *(_prediction_section(robot, one) for one in predictions if robot is not None),
            *tables,
            remarks_section([str(remark) for remark in remarks] if isinstance(remarks, list) else []),
            Section(
                "What is not here",
                [
                    Text(
                        "Plots of the fit, what its errors are made of and how well its motion was chosen: those need "
                        "the fit. They are in the report.html that dynid identify wrote beside the file, and writes "
                        "again."
                    )
                ],
            ),
            source_section(
                about, source.get("recordings") or (), mapping(source, "settings", f"{file_of(document)}: source")
            ),
        ],
        source.get("version", UNKNOWN_VERSION),
    ).write(path)


def _prediction_section(robot: RobotModel, one: Predicted) -> Section:
    units = joint_units(robot)
    efforts = [unit.effort for unit in units]
    return Section(
        "Measured and predicted torque",
        [
            f"The middle of {one.validation.recording}, both through the same low-pass; below the torque is the "
            "error, magnified. Errors in the captions are RMS over the whole recording. The file does not say whether "
            "it was fitted to this recording.",
            Legend({"measured": "measured", "identified": "identified model"}),
            Figures(
                prediction_panels(
                    robot.joint_names, efforts, one.time, one.measured, one.predicted, rows=shown_rows(one.time)
                )
            ),
            agreement_table(one.validation, units),
        ],
    )


def _robot(document: dict) -> SimpleNamespace:
    """What the file says of the robot."""
    section = mapping(document, "robot", file_of(document))
    joints, gravity = section.get("joints"), section.get("gravity")
    if not isinstance(joints, list) or not isinstance(gravity, list) or not all(map(is_number, gravity)):
        raise IdentifiedFileError(f"{file_of(document)}: robot needs joints and gravity; identify again")
    names = {key: str(section.get(key, "not named")) for key in ("name", "base", "tip")}
    digests = {key: str(section.get(key) or "") for key in ("urdf_sha256", "kinematics_sha256")}
    return SimpleNamespace(**names, **digests, joint_names=joints, gravity=gravity)


def _tiles(document: dict, predictions: Sequence[Predicted]) -> list[Tile]:
    tiles = []
    number = document.get("condition_number")
    if is_number(number):
        tiles.append(condition(number).tile)
    worst = [one.validation.relative_rms[np.isfinite(one.validation.relative_rms)] for one in predictions]
    if worst and np.concatenate(worst).size:
        value = percent(float(np.concatenate(worst).max()))
        tiles.append(Tile("Torque error", value, "worst joint, of the recordings given here, RMS"))
    return tiles
