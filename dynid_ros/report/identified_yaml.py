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
from dynid_ros.identified.flexible_joints import LINK_FRICTION
from dynid_ros.identified.friction import determined_friction
from dynid_ros.identified.identified_file import IdentifiedDocument, dof_of, file_of, is_number, mapping
from dynid_ros.identified.validation import Validation, read_validations
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import Body
from dynid_ros.report.drawing import Panel
from dynid_ros.report.formats import MISSING, as_fine_as, brief, joint_units, percent, significant
from dynid_ros.report.page import Tile, condition, write_page
from dynid_ros.report.plots import middle, prediction_plot

# What is in an `identified.yaml`, as tables.


SPRINGS = (
    ("stiffness", "Stiffness", "N m/rad"),
    ("motor_inertia", "Motor inertia", "kg m²"),
    ("motor_viscous", "Motor viscous", "N m s/rad"),
    (LINK_FRICTION["coulomb"], "Link Coulomb", "N m"),
    (LINK_FRICTION["viscous"], "Link viscous", "N m s/rad"),
)
FRICTION = (
    ("torque_positive", "Moving up", "N m"),
    ("torque_negative", "Moving down", "N m"),
    ("coulomb", "Coulomb", "N m"),
    ("viscous", "Viscous", "N m s/rad"),
    ("offset", "Offset", "N m"),
    ("rotor_inertia", "Rotor inertia", "kg m²"),
)
TORSION = (("stiffness", "Stiffness", "N m/rad"), ("low", "95 %: from", "N m/rad"), ("high", "to", "N m/rad"))
SENSORS = (("gain", "Gain", "read ÷ true"), ("offset", "Offset", "as read"))
LEADING = re.compile(r" [+-] ")


@dataclass(frozen=True)
class Section:
    """A table with its title.

    Attributes:
        title: of the section.
        said: one sentence for the top of the page.
        explain: what the numbers are.
        columns: label and unit of each; the first names the row.
        rows: text, one entry per column.
        words: whether the last column holds words, not numbers.

    """

    title: str
    said: str
    explain: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]
    words: bool = False


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
    return Section(
        "Gravity",
        f"Gravity parameters of {known} of {len(rows)} joints.",
        "Mass times distance of what each joint carries, along x and y of its frame (of a sliding joint its mass, kg), "
        "with 95 % intervals.",
        (("Joint", ""), ("n x", "kg m"), ("n y", "kg m"), ("Why not", ""))[: 3 + (known < len(rows))],
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
                _joined(1000 * body.centre, brief),
                _joined(body.inertia, lambda value: significant(value, 2)),
            ]
        )
    return Section(
        "Links",
        f"{len(rows)} links of {significant(total)} kg in all.",
        "Centre of mass in the link's frame, principal inertia about it. What torques show only in combination is "
        "divided among the links: the torques are right, the single number need not be.",
        (("Link", ""), ("Mass", "kg"), ("Centre of mass", "x, y, z in mm"), ("Principal inertia", "kg m²")),
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
    told = {}
    for joint in filter(section.get, _joints(document)):
        entry = mapping(section, joint, f"{file_of(document)}: torsion")
        low, high = _list(document, entry, "stiffness_interval", 2)
        told[joint] = {"stiffness": entry.get("stiffness"), "low": low, "high": high}
    return _per_joint({**document, "torsion": told}, "torsion", "Torsion", "Torsion of {n} joints.", TORSION)


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
    return Section(
        title,
        said.format(n=len(rows)),
        "With 95 % intervals where they are known; units are those of turning joints, sliding ones have N and m.",
        (("Joint", ""), *((label, unit) for _, label, unit in shown)),
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
    return Section("Load", said, explain, (("What", ""), ("Value", "")), rows, words=True)


def _base(document: dict) -> Section:
    entries = document["base_parameters"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IdentifiedFileError(f"{file_of(document)}: base_parameters must be a list of mappings; identify again")
    rows = []
    for entry in entries:
        expression = str(entry.get("expression", ""))
        value = _with_error(document, {**entry, "std": {"value": entry.get("std")}}, "value")
        rows.append([LEADING.split(expression)[0], value, expression])
    return Section(
        "Base parameters",
        f"{len(rows)} combinations of link parameters and friction that torques show.",
        "By the data alone, with 95 % intervals, each named by the parameter that leads it; in kg, kg m and kg m², "
        "friction as above.",
        (("Parameter", ""), ("Value", ""), ("Combination", "")),
        rows,
        words=True,
    )


def _validations(document: dict) -> Iterator[Section]:
    joints = _joints(document)
    try:
        found = read_validations(document, joints)
    except IdentifiedFileError:
        return  # of flexible joints, which are validated by other numbers
    for validation in found:
        rows = [
            [joint, significant(rms), percent(relative), f"{r2:.4f}" if np.isfinite(r2) else MISSING]
            for joint, rms, relative, r2 in zip(
                joints, validation.rms, validation.relative_rms, validation.r2, strict=True
            )
        ]
        worst = float(np.max(validation.relative_rms, initial=0.0, where=np.isfinite(validation.relative_rms)))
        yield Section(
            "Validation",
            f"On a recording that was not fitted it was off by {percent(worst)} of the torque at most (RMS, by joint).",
            f"Predicted against measured torque of {validation.recording}.",
            (("Joint", ""), ("Error", "RMS, N m or N"), ("Error ÷ measured", "both RMS"), ("R²", "1: all explained")),
            rows,
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
    if not (np.isfinite(half) and half > 0):
        return significant(value)
    return f"{as_fine_as(value, half)} ± {as_fine_as(half, half)}"


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
    return write_page(
        path,
        "file.html.j2",
        robot=robot or _robot(document),
        sections=tables,
        sentences=[table.said for table in tables],
        tiles=_tiles(document, predictions),
        predictions=[(one, list(_panels(robot, one))) for one in predictions if robot is not None],
        units=[] if robot is None else joint_units(robot),
        remarks=[str(remark) for remark in remarks] if isinstance(remarks, list) else [],
        source=source,
        settings=mapping(source, "settings", f"{file_of(document)}: source"),
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
        tiles.append(Tile("Condition number", significant(number), condition(number).word))
    worst = [one.validation.relative_rms[np.isfinite(one.validation.relative_rms)] for one in predictions]
    if worst and np.concatenate(worst).size:
        value = percent(float(np.concatenate(worst).max()))
        tiles.append(Tile("Torque error", value, "worst joint, of the recordings given here, RMS"))
    return tiles


def _panels(robot: RobotModel, one: Predicted) -> list[Panel]:
    rows = middle(slice(0, len(one.time)))
    panels = []
    for joint, (name, unit) in enumerate(zip(robot.joint_names, joint_units(robot), strict=True)):
        label = f"Torque of {name} over time, measured and predicted"
        series = (one.time[rows], one.measured[rows, joint], one.predicted[rows, joint])
        picture = prediction_plot(label, f"torque ({unit.effort})", *series)
        panels.append(Panel(name, "", picture, float(one.validation.rms[joint]), unit.effort))
    return panels
