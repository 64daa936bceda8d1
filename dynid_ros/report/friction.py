"""Friction in reports: the coefficients of each joint with their intervals, and the curve over the velocity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.identified.identified_file import is_number
from dynid_ros.identified.joint_friction import DIRECTIONS
from dynid_ros.identified.links import LinkModel
from dynid_ros.model.friction_terms import COUPLING_TERMS, TERM_KINDS, JointFriction, acts_at_standstill
from dynid_ros.report.drawing import LIGHT, plot_area, spread_indices, svg
from dynid_ros.report.formats import UNKNOWN_TEXT, JointUnits, joint_units, significant
from dynid_ros.report.page import Cell, Figures, Plot, Section, Table
from dynid_ros.report.result_page import cell_unit, entries_of, joints_of, with_interval

if TYPE_CHECKING:
    from dynid_ros.report.link_quality import TorqueComparison

FAMILIES = {
    "torque": ("Friction and offset", "N m"),
    **{family: (kind.label, kind.unit) for family, kind in TERM_KINDS.items()},
}
"""Heading and unit for revolute joints, by the family of the terms."""
SIDES = {"positive": "+", "negative": "−"}
SHAPE_NAMES = {
    "stribeck_velocity": ("Stribeck velocity", "velocity"),
    "saturation_velocity": ("saturation velocity", "velocity"),
    "smoothing": ("reverses within", "velocity"),
    "sliding_length": ("sliding length", "position"),
    "dead_zone": ("no direction below", "velocity"),
}
"""Name, and field of `JointUnits`, by the key of the shape parameter."""
CURVE_WIDTH = 210
CURVE_HEIGHT = 160


def friction_section(
    document: Mapping[str, Any],
    units: Mapping[str, JointUnits],
    model: LinkModel | None = None,
    fitted: Sequence[TorqueComparison] = (),
) -> Section | None:
    """Return the section on friction; None for an arm without friction.

    Args:
        document: content of `identified.yaml`.
        units: units of each joint.
        model: identified links and friction, to draw the curves.
        fitted: fitted recordings, to draw points next to the curves.
    """
    if not any((document.get("friction") or {}).get(joint) for joint in joints_of(document)):
        return None
    table = _friction_table(document, units)
    if len(table.columns) == 1:
        return None
    curves: list[Any] = []
    if model is not None and fitted:
        curves = [
            "Line: identified friction over the velocity of the joint. Points: measured minus rigid-body torque.",
            Figures(_friction_curves(model, fitted), size="small"),
        ]
    return Section(
        "Friction",
        [
            *curves,
            "Coefficients of the identified model with the 95 % intervals of the data alone. Friction and offset are "
            "given as the torque in the + and in the − direction of motion where the data determine only their sum: an "
            "offset of the sensor looks like friction that differs by direction.",
            table,
        ],
    )


def _friction_table(document: Mapping[str, Any], units: Mapping[str, JointUnits]) -> Table:
    """Return a row for each joint and each coupled pair, a column for each family of terms, and the shapes."""
    rows: dict[str, dict[str, list[str]]] = {}
    shapes: dict[str, str] = {}
    for joint, entry in entries_of(document, "friction").items():
        terms = [str(term) for term in entry.get("terms") or ("coulomb", "viscous", "offset")]
        terms += [] if "rotor_inertia" in terms else ["rotor_inertia"]
        if any(is_number(entry.get(label)) for label in DIRECTIONS):
            terms = [*DIRECTIONS, *(term for term in terms if not term.startswith(("coulomb", "offset")))]
        rows[joint] = _lines_by_family(document, entry, terms, units[joint])
        shapes[joint] = _describe_shapes(entry, units[joint])
    for pair in document["friction"].get("coupled") or ():
        first, second = pair["joints"]
        name = f"{first} and {second}"
        rows[name] = _lines_by_family(document, pair, COUPLING_TERMS, units[first])
        shapes[name] = "one motor drives both"
    families = [family for family in FAMILIES if any(family in lines for lines in rows.values())]
    columns: dict[str | tuple[str, str], list[str | Cell]] = {}
    for family in families:
        heading, unit = FAMILIES[family]
        lines = [row.get(family, [UNKNOWN_TEXT]) for row in rows.values()]
        columns[heading, unit] = [Cell(texts[0], texts[1:]) for texts in lines]
    if any(shapes.values()):
        columns["Shape"] = list(shapes.values())
    return Table.by_column("Joint", list(rows), columns, words=[len(families) + 1])


def _lines_by_family(
    document: Mapping[str, Any], entry: Mapping[str, Any], terms: Sequence[str], unit: JointUnits
) -> dict[str, list[str]]:
    """Return the coefficients as text by family; a direction or harmonic comes before its coefficient."""
    lines: dict[str, list[str]] = {}
    for term in terms:
        if not is_number(entry.get(term)):
            continue
        is_divided = term.endswith(tuple(SIDES)) or term.startswith(("cos_", "sin_"))
        family, _, side = term.rpartition("_") if is_divided else (term, "", "")
        value = with_interval(document, entry, term, cell_unit(FAMILIES[family][1], unit))
        lines.setdefault(family, []).append(f"{SIDES.get(side, side)}: {value}" if side else value)
    return lines


def _describe_shapes(entry: Mapping[str, Any], unit: JointUnits) -> str:
    texts = []
    for key, (name, field) in SHAPE_NAMES.items():
        value = entry.get(key)
        if is_number(value) and value:
            scale = unit.scale if field == "position" else 1.0
            texts.append(f"{name} {significant(scale * value, 2)} {getattr(unit, field)}")
    return ", ".join(texts)


def _friction_curves(model: LinkModel, fitted: Sequence[TorqueComparison]) -> list[Plot]:
    """Return the curve of each joint that has friction, with points at the recorded velocities."""
    robot = model.robot
    velocity = np.concatenate([comparison.motion.velocity for comparison in fitted])
    residual = np.concatenate([comparison.residual for comparison in fitted])
    loads = [model.friction.load_torque(robot, *comparison.motion) for comparison in fitted]
    known = [load for load in loads if load is not None]
    mean_load = np.mean(np.abs(np.concatenate(known)), axis=0) if known else np.zeros(robot.n_joints)
    plots = []
    first = 0
    for i, (joint, unit, friction) in enumerate(zip(robot.joint_names, joint_units(robot), model.joints, strict=True)):
        coefficients = model.coefficients[first : first + len(friction.terms)]
        first += len(friction.terms)
        if friction.terms:
            curve = _steady_friction(friction, coefficients, mean_load[i])
            plots.append(Plot(_draw_curve(joint, unit, curve, velocity[:, i], residual[:, i]), joint))
    return plots


def _steady_friction(friction: JointFriction, coefficients: NDArray, load: float) -> Callable[[NDArray], NDArray]:
    """Return the friction torque as a function of steady velocities (N,), without the terms of the joint's angle."""

    def torque(velocity: NDArray) -> NDArray:
        zero = np.zeros_like(velocity)
        direction = replace(friction.direction_model, sliding_length=0.0).evaluate(velocity)
        total = np.zeros_like(velocity)
        for coefficient, part in zip(coefficients, friction.parts, strict=True):
            if not acts_at_standstill(part.name):
                total += coefficient * part.column(zero, velocity, zero, direction, np.full_like(velocity, load))
        return total

    return torque


def _draw_curve(
    joint: str, unit: JointUnits, torque: Callable[[NDArray], NDArray], velocity: NDArray, residual: NDArray
) -> str:
    """Draw the friction curve, and at the recorded velocities the curve plus the residual, as SVG."""
    some = spread_indices(len(velocity), 150)
    top = np.abs(velocity).max(initial=1e-6)
    half = top * np.linspace(0, 1, 100) ** 2 + 1e-6 * top
    speeds = np.concatenate([-half[::-1], half])

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=42, bottom=38, top=6)
        axes.axhline(0, color=LIGHT["line"], linewidth=1)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        marker: dict[str, Any] = {"markersize": 2.2, "markeredgewidth": 0, "color": LIGHT["measured"], "alpha": 0.45}
        axes.plot(velocity[some], torque(velocity[some]) + residual[some], "o", **marker)
        axes.plot(speeds, torque(speeds), color=LIGHT["identified"], linewidth=1.8)
        axes.set_xlabel(f"velocity ({unit.velocity})")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(4))

    return svg(f"Friction of {joint} over its velocity", CURVE_WIDTH, CURVE_HEIGHT, draw)
