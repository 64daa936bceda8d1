"""Numbers of flexible joints as a reader wants them: with intervals, or the word that they are not decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid_ros.estimation.estimate import half_width, interval
from dynid_ros.identification.flexible.flexible_result import DECIDED, FlexibleResult, RunFound
from dynid_ros.mocap.registration import Registration
from dynid_ros.model import RobotModel
from dynid_ros.report.formats import MISSING, as_fine_as, percent, significant
from dynid_ros.report.units import JointUnits, joint_units

NOT_DECIDED = "not decided"
TERMS = {
    "stiffness": "Stiffness",
    "motor_inertia": "Motor inertia",
    "motor_viscous": "Viscous, motor",
    "motor_coulomb": "Coulomb, motor",
    "coulomb": "Coulomb, link",
    "viscous": "Viscous, link",
    "torque_offset": "Torque offset",
}


class Cell(NamedTuple):
    """A number and its 95 % interval, as text."""

    value: str
    interval: str


class JointRow(NamedTuple):
    """A joint: cells in the order of `headings`."""

    joint: str
    law: str
    cells: list[Cell]


class MarkerRow(NamedTuple):
    """A marker: residual in m, share of its positions that were used."""

    name: str
    link: str
    residual: float
    used: float


def headings(result: FlexibleResult) -> list[str]:
    """Of the columns."""
    return [*(label for term, label in TERMS.items() if term in _terms(result)), "Resonance, motor held"]


def joint_rows(result: FlexibleResult) -> list[JointRow]:
    """A row per joint."""
    intervals, rows = result.confidence_intervals(), []
    for i, (joint, unit) in enumerate(zip(result.joint_names, joint_units(result.layout.robot), strict=True)):
        cells = []
        for term in (term for term in TERMS if term in _terms(result)):
            at = result.names.index(f"{term} {joint}")
            value, error = result.parameters[at], result.standard_errors[at]
            cells.append(_cell(value, error, intervals[at], _unit(term, unit)))
        frequency, error = result.resonances[i], result.resonance_errors[i]
        cells.append(_cell(frequency, error, interval(frequency, error), "Hz"))
        law = result.layout.springs[i]
        values = dict(zip(law.names, result.model.springs[i], strict=True))
        words = ", ".join(f"{name} {significant(value)}" for name, value in values.items() if name != "stiffness")
        rows.append(JointRow(joint, words or "linear", cells))
    return rows


def sum_rows(result: FlexibleResult) -> list[tuple[str, Cell]]:
    """What a rigid arm shows too."""
    found = []
    for entry in result.sums:
        ends = interval(entry.value, entry.standard_error)
        found.append((entry.expression, _cell(entry.value, entry.standard_error, ends, "")))
    return found


def base_rows(result: FlexibleResult) -> list[tuple[str, Cell, str]]:
    """Base parameters of the links: expression, value, and what the URDF says."""
    layout, intervals = result.layout, result.confidence_intervals()
    nominal = layout.base.project(layout.robot.parameters)
    return [
        (
            expression,
            # Moments near zero are known well though not in parts of themselves.
            _cell(result.parameters[k], result.standard_errors[k], intervals[k], "", limit=np.inf),
            significant(nominal[k]),
        )
        for k, expression in enumerate(layout.base.expressions)
    ]


def clock_rows(runs: Sequence[RunFound]) -> list[tuple[str, str, str]]:
    """Recording, offset in ms and drift in ppm of the links' sensor, where it has a clock of its own."""
    return [
        (
            run.source,
            _with_half(1e3 * run.clock_offset, 1e3 * run.clock_offset_error),
            _with_half(1e6 * run.clock_drift, 1e6 * run.clock_drift_error) if run.clock_drift_error else MISSING,
        )
        for run in runs
        if run.clock_offset_error
    ]


def marker_rows(robot: RobotModel, registration: Registration) -> list[MarkerRow]:
    """A row per marker."""
    markers, links = registration.markers, (*robot.link_names, robot.base)
    return [
        MarkerRow(name, links[markers.links[p]], float(registration.residual_rms[p]), float(registration.used[p]))
        for p, name in enumerate(markers.names)
    ]


def repeat_rows(repeats: Sequence[tuple[str, float, float]]) -> list[tuple[str, str, str]]:
    """Parameter, mean, coefficient of variation."""
    return [(name, significant(mean, 4), percent(variation)) for name, mean, variation in repeats]


def _terms(result: FlexibleResult) -> tuple[str, ...]:
    return ("stiffness", "coulomb", "viscous", *result.layout.motor_terms)


def _unit(term: str, unit: JointUnits) -> str:
    if term == "stiffness":
        return "N m/rad" if unit.effort == "N m" else "N/m"
    if "viscous" in term:
        return unit.viscous
    return unit.inertia if term == "motor_inertia" else unit.effort


def _cell(value: float, error: float, ends: np.ndarray, unit: str, limit: float = DECIDED) -> Cell:
    if not np.isfinite(error) or (limit < np.inf and not error < limit * abs(value)):
        low, high = ends
        bounds = f"at least {significant(low)} {unit}" if np.isfinite(low) and low > 0 and np.isinf(high) else ""
        return Cell(NOT_DECIDED, bounds)
    half = float(half_width(error))
    text = f"{as_fine_as(value, half)} {unit}".strip()
    return Cell(text, f"{as_fine_as(ends[0], half)} to {as_fine_as(ends[1], half)}")


def _with_half(value: float, error: float) -> str:
    half = float(half_width(error))
    return f"{as_fine_as(value, half)} ± {significant(half, 2)}"
