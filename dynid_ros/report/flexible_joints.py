"""The report of an identification of flexible joints: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width, interval
from dynid_ros.identification.flexible.flexible_prediction import FlexiblePrediction
from dynid_ros.identification.flexible.flexible_result import DECIDED, FlexibleResult, MeasuredSpring, RunFound
from dynid_ros.identified.identified_file import new_document
from dynid_ros.mocap.recorded_links import MocapLinks
from dynid_ros.mocap.registration import Registration
from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import LIGHT, WIDTH, Panel, label_axes, plot_area, svg
from dynid_ros.report.formats import (
    MISSING,
    REVOLUTE,
    JointUnits,
    as_fine_as,
    brief,
    joint_units,
    listed,
    percent,
    significant,
)
from dynid_ros.report.page import Condition, Tile, condition, write_page
from dynid_ros.report.plots import middle, prediction_plot

# What a joint's spring passes on over its deflection, as measured, identified and in truth.


HEIGHT = 220
POINTS = 800


def spring_plot(
    joint: str,
    deflection: NDArray,
    torque: NDArray,
    across: NDArray,
    identified: NDArray,
    *,
    true: NDArray | None = None,
    unit: JointUnits = REVOLUTE,
) -> str:
    """SVG of one joint's spring.

    Args:
        joint: its name.
        deflection: (N,) motor less link, rad or m.
        torque: (N,) that passes through the spring, N m or N.
        across: (M,) deflections of the lines.
        identified: (M,) torque by what was identified; NaN: not determined.
        true: (M,) likewise, where it is known.
        unit: of the joint.

    """
    # Evenly spread over the deflection: most of the time is spent at its ends.
    some = np.argsort(deflection)[np.unique(np.linspace(0, len(deflection) - 1, POINTS).astype(int))]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        points = unit.scale * deflection[some], torque[some]
        axes.plot(*points, linestyle="none", marker="o", markersize=1.6, color=LIGHT["measured"], alpha=0.5)
        if true is not None:
            axes.plot(unit.scale * across, true, color=LIGHT["truth"], linewidth=3.0)
        axes.plot(unit.scale * across, identified, color=LIGHT["identified"], linewidth=1.4)
        label_axes(axes, f"deflection ({unit.position})", f"torque ({unit.effort})")

    what = ", measured and identified" if true is None else ", measured, identified and true"
    return svg(f"Spring of {joint}: torque over deflection{what}", WIDTH, HEIGHT, draw)


# Springs as measured and as identified, and what a flexible arm's motors and links do over time.


def spring_panels(result: FlexibleResult, springs: Sequence[MeasuredSpring]) -> Iterator[tuple[Panel, float]]:
    """For each joint deflection and torque with the identified law, and the squared correlation of both."""
    model = result.model
    for i, (spring, unit) in enumerate(zip(springs, joint_units(result.layout.robot), strict=True)):
        law, values = model.laws[i], model.springs[i]
        at = law.torque(spring.deflection, values)
        rms = float(np.sqrt(np.mean((spring.torque - at) ** 2))) if len(at) else np.nan
        r2 = float(np.corrcoef(at, spring.torque)[0, 1] ** 2) if len(at) > 2 and np.ptp(at) > 0 else np.nan
        across = np.linspace(spring.deflection.min(), spring.deflection.max(), 200) if len(at) else np.zeros(0)
        decided = bool(np.isfinite(result.stiffness[i]))
        line = law.torque(across, values) if decided else np.full_like(across, np.nan)
        plot = spring_plot(spring.joint, spring.deflection, spring.torque, across, line, unit=unit)
        yield Panel(spring.joint, "", plot, rms if decided else np.nan, unit.effort), r2


def shown_rows(prediction: FlexiblePrediction) -> slice:
    """Rows that are shown: the middle of the longest stretch."""
    steps = np.diff(prediction.time)
    cuts = np.flatnonzero((steps < 0) | (steps > 1.5 * np.median(steps))) + 1
    edges = np.concatenate([[0], cuts, [len(prediction.time)]])
    k = int(np.argmax(np.diff(edges)))
    return middle(slice(int(edges[k]), int(edges[k + 1])))


def torque_panels(result: FlexibleResult, prediction: FlexiblePrediction) -> Iterator[Panel]:
    """The motors' torque, a panel per joint; its RMS is that of the whole recording."""
    for i, (name, unit) in enumerate(zip(result.joint_names, joint_units(result.layout.robot), strict=True)):
        both = prediction.measured_torque[:, i], prediction.torque[:, i]
        yield _panel(prediction, name, "torque", *both, unit=unit.effort)


def deflection_panels(result: FlexibleResult, prediction: FlexiblePrediction) -> Iterator[Panel]:
    """Motor less link, a panel per joint whose link was measured."""
    for i, (name, unit) in enumerate(zip(result.joint_names, joint_units(result.layout.robot), strict=True)):
        motor = prediction.link[:, i] + prediction.deflection[:, i]
        measured, predicted = (
            unit.scale * (motor - link[:, i]) for link in (prediction.measured_link, prediction.link)
        )
        if np.isfinite(measured).any():
            yield _panel(prediction, name, "deflection", measured, predicted, unit=unit.position)


def _panel(
    prediction: FlexiblePrediction, joint: str, quantity: str, measured: NDArray, predicted: NDArray, *, unit: str
) -> Panel:
    rows = shown_rows(prediction)
    rms = float(np.sqrt(np.nanmean((measured - predicted) ** 2)))
    label = f"{quantity.capitalize()} of {joint} over time, measured and predicted"
    series = prediction.time[rows], measured[rows], predicted[rows]
    return Panel(joint, "", prediction_plot(label, f"{quantity} ({unit})", *series), rms, unit)


# Numbers of flexible joints as a reader wants them: with intervals, or the word that they are not determined.


NOT_DECIDED = "not determined"
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


# What was found of flexible joints and how good it is, for those who read nothing else.


def sentences(result: FlexibleResult) -> list[str]:
    """Springs, what is not determined, and how well torque is predicted."""
    names, known = result.joint_names, np.isfinite(result.stiffness)
    found = []
    if known.any():
        softest = int(np.nanargmin(np.where(known, result.resonances, np.inf)))
        unit = "N m/rad" if joint_units(result.layout.robot)[softest].effort == "N m" else "N/m"
        which = f"joint {names[0]}" if len(names) == 1 else f"{known.sum()} of {len(names)} joints"
        subject = "It" if len(names) == 1 else f"The slowest, {names[softest]},"
        found.append(
            f"The stiffness of {which} was identified. {subject} has {significant(result.stiffness[softest])} {unit}, "
            f"and swings at {significant(result.resonances[softest])} Hz while its motor is held."
        )
    stiff = [name for name, told in zip(names, known, strict=True) if not told]
    if stiff:
        found.append(
            f"The stiffness of {listed(stiff)} is not determined: the deflection hardly rises above the noise, and a "
            "rigid joint would explain it too. Of such a joint only sums of link and motor are known."
        )
    split = [
        name
        for i, name in enumerate(names)
        if known[i] and not all(result.term(t).decided[i] for t in ("viscous", *result.layout.motor_terms[:2]))
    ]
    if split:
        found.append(
            f"Of {listed(split)} the motion does not distinguish motor from link in all of friction and inertia; it "
            "was too slow for that, or too far from the resonance."
        )
    error, where = _torque_error(result)
    if np.isfinite(error):
        found.append(
            f"On {where}, the torque predicted from the motors' motion alone is off by at most {percent(error)} "
            "of a joint's torque (RMS)"
            + ("." if result.validations else "; another recording would show how it predicts.")
        )
    return found


def tiles(result: FlexibleResult, conditioning: Condition) -> list[Tile]:
    """The same in numbers."""
    names, known = result.joint_names, np.isfinite(result.stiffness)
    found = [Tile("Springs identified", f"{known.sum()} of {len(names)}", "joints whose stiffness the data determine")]
    if known.any():
        slowest = int(np.nanargmin(np.where(known, result.resonances, np.inf)))
        found.append(Tile("Lowest resonance", f"{significant(result.resonances[slowest])} Hz", names[slowest]))
    error, where = _torque_error(result)
    if np.isfinite(error):
        found.append(Tile("Torque error, worst joint", percent(error), f"of the measured torque, on {where}"))
    found.append(Tile("Condition number", significant(result.condition_number), conditioning.word))
    return found


def _torque_error(result: FlexibleResult) -> tuple[float, str]:
    """Largest error over torque, both RMS, and the data that it is of."""
    if result.validations:
        return float(np.nanmax([v.relative_rms for v in result.validations])), "recordings that it was not fitted to"
    torque = np.concatenate([run.prediction.measured_torque for run in result.runs])
    return float(np.nanmax(result.residual_rms / np.sqrt(np.nanmean(torque**2, axis=0)))), "the fitted recordings"


def write_flexible_report(
    path: str | Path,
    result: FlexibleResult,
    springs: Sequence[MeasuredSpring],
    *,
    predictions: Sequence[FlexiblePrediction] = (),
    cameras: Sequence[MocapLinks] = (),
    repeats: Sequence[tuple[str, float, float]] = (),
) -> Path:
    """Write the report of what was identified, on which data, and how well it predicts.

    The same input gives the same file: it holds no date.

    Args:
        path: of the HTML file; folders are made.
        result: of the identification.
        springs: what the sensors say of each joint's spring.
        predictions: of the recordings of `result.validations`.
        cameras: where motion capture saw the links.
        repeats: name, mean and coefficient of variation of each parameter.

    Raises:
        IdentificationError: springs of other joints.

    """
    if tuple(spring.joint for spring in springs) != result.joint_names:
        raise IdentificationError(
            f"report: springs of {', '.join(spring.joint for spring in springs)}; expected "
            f"{', '.join(result.joint_names)}"
        )
    robot = result.layout.robot
    conditioning = condition(
        result.condition_number,
        "motion nearer to the resonances",
        "Move each joint near its resonance, with friction reversed often.",
    )
    source = new_document(robot, result.sources, result.settings)["source"]
    longest = max(result.runs, key=lambda run: len(run.prediction.time))
    shown, of = (
        (predictions[0], result.validations[0].recording) if predictions else (longest.prediction, longest.source)
    )
    rows = shown_rows(shown)
    return write_page(
        path,
        "flexible.html.j2",
        robot=robot,
        result=result,
        units=joint_units(robot),
        source=source,
        settings=source["settings"] | {"band": f"{brief(result.settings['band'])} Hz"},
        sentences=sentences(result),
        tiles=tiles(result, conditioning),
        conditioning=conditioning,
        headings=headings(result),
        rows=joint_rows(result),
        sums=sum_rows(result),
        base=base_rows(result),
        springs=list(spring_panels(result, springs)),
        torques=list(torque_panels(result, shown)),
        deflections=list(deflection_panels(result, longest.prediction)),
        shown_recording=of,
        shown_seconds=brief(float(shown.time[rows][-1] - shown.time[rows][0])),
        fresh=bool(predictions),
        link_recording=longest.source,
        clocks=clock_rows(result.runs),
        cameras=[(camera.registration.noise, marker_rows(robot, camera.registration)) for camera in cameras],
        repeats=repeat_rows(repeats),
    )
