"""The report of an identification of flexible joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import MAX_RELATIVE_ERROR, half_width, interval
from dynid_ros.identification.flexible.flexible_prediction import FlexiblePrediction
from dynid_ros.identification.flexible.flexible_result import FlexibleResult, MeasuredSpring, RunFound
from dynid_ros.identified.validation import Validation
from dynid_ros.mocap.recorded_links import MocapLinks
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg
from dynid_ros.report.formats import (
    MISSING,
    REVOLUTE,
    JointUnits,
    as_fine_as,
    brief,
    fixed,
    joint_units,
    listed,
    percent,
    significant,
    with_unit,
)
from dynid_ros.report.page import (
    Cell,
    Condition,
    Figures,
    Legend,
    Plot,
    Section,
    Table,
    Text,
    Tile,
    agreement_table,
    condition,
    remarks_section,
    result_page,
)
from dynid_ros.report.plots import prediction_panels, shown_rows

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
        identified: (M,) torque by what was identified; NaN: undetermined.
        true: (M,) likewise, where it is known.
        unit: of the joint.
    """
    # Evenly spread over the deflection: most of the time is spent at its ends.
    some = np.argsort(deflection)[np.unique(np.linspace(0, len(deflection) - 1, POINTS).astype(int))]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        points = unit.scale * deflection[some], torque[some]
        axes.plot(*points, "o", markersize=1.6, color=LIGHT["measured"], alpha=0.5)
        if true is not None:
            axes.plot(unit.scale * across, true, color=LIGHT["truth"], linewidth=3.0)
        axes.plot(unit.scale * across, identified, color=LIGHT["identified"], linewidth=1.4)
        label_axes(axes, f"deflection ({unit.position})", f"torque ({unit.effort})")

    what = ", measured and identified" if true is None else ", measured, identified and true"
    return svg(f"Spring of {joint}: torque over deflection{what}", WIDTH, HEIGHT, draw)


def spring_agreement(result: FlexibleResult, joint: int, spring: MeasuredSpring) -> tuple[float, float]:
    """Return RMS and squared correlation of the measured spring and the identified law."""
    if not len(spring.deflection):
        return np.nan, np.nan
    at = result.model.laws[joint].torque(spring.deflection, result.model.springs[joint])
    related = len(at) > 2 and np.ptp(at) > 0
    rms = float(np.sqrt(np.mean((spring.torque - at) ** 2)))
    return rms, float(np.corrcoef(at, spring.torque)[0, 1] ** 2) if related else np.nan


def _spring_section(result: FlexibleResult, springs: Sequence[MeasuredSpring]) -> Section:
    plots = []
    for i, (spring, unit) in enumerate(zip(springs, joint_units(result.layout.robot), strict=True)):
        known = len(spring.deflection) > 0
        across = np.linspace(spring.deflection.min(), spring.deflection.max(), 200) if known else np.zeros(0)
        determined = bool(np.isfinite(result.stiffness[i]))
        line = (
            result.model.laws[i].torque(across, result.model.springs[i]) if determined else np.full_like(across, np.nan)
        )
        picture = spring_plot(spring.joint, spring.deflection, spring.torque, across, line, unit=unit)
        rms, r2 = spring_agreement(result, i, spring)
        agreement = f"r² {fixed(r2, 4)}, off by {with_unit(rms, unit.effort, 2)} RMS"
        plots.append(Plot(picture, spring.joint, agreement if determined and known else "stiffness not determined"))
    return Section(
        "Springs",
        [
            "Points: measured motor less measured link, and measured torque less what accelerates and brakes the "
            "motor. Line: the spring as identified. r² is the squared correlation of both. A loop is friction or a "
            "clock that is off; a bend at zero is play.",
            Figures(plots),
        ],
    )


def _torque_section(result: FlexibleResult, predictions: Sequence[FlexiblePrediction], longest: RunFound) -> Section:
    robot, fresh = result.layout.robot, bool(predictions)
    units = joint_units(robot)
    shown = predictions[0] if fresh else longest.prediction
    rows = shown_rows(shown.time)
    seconds = brief(float(shown.time[rows][-1] - shown.time[rows][0]))
    source = result.validations[0].recording if fresh else longest.source
    efforts = [unit.effort for unit in units]
    each = [
        part for one in result.validations for part in (Text(one.recording, "heading"), agreement_table(one, units))
    ]
    return Section(
        "Torque of the motors",
        [
            f"{seconds} s from the middle of {source}, {'which was not fitted, ' if fresh else ''}predicted from the "
            "motion of the motors alone. Below is the error, magnified; errors in the captions are RMS over the whole "
            "recording.",
            Legend({"measured": "measured", "identified": "predicted"}),
            Figures(
                prediction_panels(
                    result.joint_names, efforts, shown.time, shown.measured_torque, shown.torque, rows=rows
                )
            ),
            *each,
        ],
    )


def _link_section(result: FlexibleResult, longest: RunFound) -> Section:
    units, prediction = joint_units(result.layout.robot), longest.prediction
    scale, motor = np.array([unit.scale for unit in units]), prediction.link + prediction.deflection
    seen = np.flatnonzero(np.isfinite(prediction.measured_link).any(axis=0))
    both = [(scale * (motor - link))[:, seen] for link in (prediction.measured_link, prediction.link)]
    names, shown = ([each[i] for i in seen] for each in (result.joint_names, [unit.position for unit in units]))
    rows = [
        (
            name,
            with_unit(run.torque_rms[i], unit.effort),
            with_unit(run.link_rms[i] * unit.scale, unit.position),
            with_unit(run.zero[i] * unit.scale, unit.position),
            run.source,
        )
        for run in result.runs
        for i, (name, unit) in enumerate(zip(result.joint_names, units, strict=True))
    ]
    zero = ("Zero of the link", "less that of the motor")
    return Section(
        "Deflection of the links",
        [
            f"Motor less link in {longest.source}: measured, and by the model from the motion of the motors alone.",
            Figures(
                prediction_panels(
                    names, shown, prediction.time, *both, rows=shown_rows(prediction.time), quantity="deflection"
                )
            ),
            Table(("Joint", ("Torque residual", "RMS"), ("Link residual", "RMS"), zero, "Recording"), rows, words=[4]),
        ],
    )


# Numbers of flexible joints with their intervals, or the word that they are undetermined.


TERMS = {
    "stiffness": "Stiffness",
    "motor_inertia": "Motor inertia",
    "motor_viscous": "Viscous, motor",
    "motor_coulomb": "Coulomb, motor",
    "coulomb": "Coulomb, link",
    "viscous": "Viscous, link",
    "torque_offset": "Torque offset",
}


def _joint_section(result: FlexibleResult) -> Section:
    headings = [*(label for term, label in TERMS.items() if term in _terms(result)), "Resonance, motor held"]
    layout, intervals = result.layout, result.confidence_intervals()
    nominal = layout.base.project(layout.robot.parameters)
    base = [
        # Moments near zero are known well though not in parts of themselves.
        (
            name,
            *_cells(result.parameters[k], result.standard_errors[k], intervals[k], limit=np.inf),
            significant(nominal[k]),
        )
        for k, name in enumerate(layout.base.expressions)
    ]
    sums = [
        (entry.expression, *_cells(entry.value, entry.standard_error, interval(entry.value, entry.standard_error)))
        for entry in result.sums
    ]
    return Section(
        "Joints",
        [
            "Seen from the links: torque is the motor's times the gear ratio, inertia the rotor's times its square. "
            "Below each number is its 95 % interval. “Not determined” stands where the standard error is more than 30 "
            "% of the value.",
            Table(["Joint", *headings, "Spring"], joint_rows(result), words=[len(headings) + 1]),
            *(
                [
                    Text("Sums of link and motor", "heading"),
                    "A rigid arm shows these too. They are known where slow motion hides their parts. SI units.",
                    Table(("Sum", "Value", "95 % interval"), sums),
                ]
                if sums
                else []
            ),
            Table(("Expression", "Value", "95 % interval", "URDF"), base, folded="Base parameters of the links"),
        ],
    )


def joint_rows(result: FlexibleResult) -> list[Sequence[str | Cell]]:
    """Return a row per joint: name, terms, resonance, law of the spring."""
    rows: list[Sequence[str | Cell]] = []
    intervals = result.confidence_intervals()
    for i, (joint, unit) in enumerate(zip(result.joint_names, joint_units(result.layout.robot), strict=True)):
        cells = []
        for term in (term for term in TERMS if term in _terms(result)):
            at = result.names.index(f"{term} {joint}")
            cells.append(_cells(result.parameters[at], result.standard_errors[at], intervals[at], _unit(term, unit)))
        frequency, error = result.resonances[i], result.resonance_errors[i]
        cells.append(_cells(frequency, error, interval(frequency, error), "Hz"))
        law = result.layout.springs[i]
        values = dict(zip(law.names, result.model.springs[i], strict=True))
        words = ", ".join(f"{name} {significant(value)}" for name, value in values.items() if name != "stiffness")
        rows.append([joint, *(Cell(value, [ends] * bool(ends)) for value, ends in cells), words or "linear"])
    return rows


def _sensor_section(result: FlexibleResult, cameras: Sequence[MocapLinks]) -> Section | None:
    clocks = [
        (
            run.source,
            _with_half(1e3 * run.clock_offset, 1e3 * run.clock_offset_error),
            _with_half(1e6 * run.clock_drift, 1e6 * run.clock_drift_error) if run.clock_drift_error else MISSING,
        )
        for run in result.runs
        if run.clock_offset_error
    ]
    if not clocks and not cameras:
        return None
    parts: list = []
    if clocks:
        parts = [
            "The clock of the links' sensor: the robot's time less its own. It was identified with the joints, for a "
            "link behind a spring lags its motor as a late clock would.",
            Table(("Recording", ("Offset", "ms"), ("Drift", "ppm")), clocks),
        ]
    for number, camera in enumerate(cameras, start=1):
        found, robot = camera.registration, result.layout.robot
        links = (*robot.link_names, robot.base)
        rows = [
            (name, with_unit(1000 * found.residual_rms[p], "mm"), percent(found.used[p]), links[found.markers.links[p]])
            for p, name in enumerate(found.markers.names)
        ]
        parts += [
            Text(f"Markers{f', recording {number}' if len(cameras) > 1 else ''}", "heading"),
            f"Noise of a coordinate {with_unit(1000 * found.noise, 'mm')}.",
            Table(("Marker", ("Residual", "RMS"), "Used", "Link"), rows, words=[3]),
        ]
    return Section("Motion capture" if cameras else "Clocks", parts)


def _repeat_section(repeats: Sequence[tuple[str, float, float]]) -> Section | None:
    rows = [(name, significant(mean, 4), percent(variation)) for name, mean, variation in repeats]
    explain = "Each recording by itself: mean, and coefficient of variation (standard deviation over mean)."
    return Section("Repetitions", [explain, Table(("Parameter", "Mean", "Variation"), rows)]) if rows else None


def _terms(result: FlexibleResult) -> tuple[str, ...]:
    return ("stiffness", "coulomb", "viscous", *result.layout.motor_terms)


def _unit(term: str, unit: JointUnits) -> str:
    if term == "stiffness":
        return "N m/rad" if unit.effort == "N m" else "N/m"
    if "viscous" in term:
        return unit.viscous
    return unit.inertia if term == "motor_inertia" else unit.effort


def _cells(
    value: float, error: float, ends: NDArray, unit: str = "", limit: float = MAX_RELATIVE_ERROR
) -> tuple[str, str]:
    """Return the number and its 95 % interval."""
    if not np.isfinite(error) or (limit < np.inf and not error < limit * abs(value)):
        low, high = ends
        bounds = f"at least {significant(low)} {unit}" if np.isfinite(low) and low > 0 and np.isinf(high) else ""
        return "not determined", bounds
    half = float(half_width(error))
    text = f"{as_fine_as(value, half)} {unit}".strip()
    return text, f"{as_fine_as(ends[0], half)} to {as_fine_as(ends[1], half)}"


def _with_half(value: float, error: float) -> str:
    half = float(half_width(error))
    return f"{as_fine_as(value, half)} ± {significant(half, 2)}"


# What was found of flexible joints and how good it is, for those who read nothing else.


def _sentences(result: FlexibleResult) -> list[str]:
    """Springs, what is undetermined, and how well torque is predicted."""
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
    stiff = [name for name, own in zip(names, known, strict=True) if not own]
    if stiff:
        found.append(
            f"The stiffness of {listed(stiff)} is not determined: the deflection hardly rises above the noise, and a "
            "rigid joint would fit it too. Of such a joint only sums of link and motor are known."
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


def _tiles(result: FlexibleResult, conditioning: Condition) -> list[Tile]:
    """The same in numbers."""
    names, known = result.joint_names, np.isfinite(result.stiffness)
    found = [Tile("Springs identified", f"{known.sum()} of {len(names)}", "joints whose stiffness the data determine")]
    if known.any():
        slowest = int(np.nanargmin(np.where(known, result.resonances, np.inf)))
        found.append(Tile("Lowest resonance", f"{significant(result.resonances[slowest])} Hz", names[slowest]))
    error, where = _torque_error(result)
    if np.isfinite(error):
        found.append(Tile("Torque error, worst joint", percent(error), f"of the measured torque, on {where}"))
    return [*found, conditioning.tile]


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
    conditioning = condition(
        result.condition_number,
        "motion nearer to the resonances",
        "Move each joint near its resonance, with friction reversed often.",
    )
    longest = max(result.runs, key=lambda run: len(run.prediction.time))
    return result_page(
        "Flexible joints",
        "Identification of flexible joints",
        result.layout.robot,
        sentences=_sentences(result),
        tiles=_tiles(result, conditioning),
        sections=[
            _joint_section(result),
            _spring_section(result, springs),
            _torque_section(result, predictions, longest),
            _link_section(result, longest),
            _sensor_section(result, cameras),
            _repeat_section(repeats),
            conditioning.section(),
            remarks_section(result.remarks),
        ],
        sources=result.sources,
        settings=result.settings,
        shown={"band": f"{brief(result.settings['band'])} Hz"},
    ).write(path)


def write_result_report(
    path: str | Path,
    result: FlexibleResult,
    recordings: Mapping[str, Sequence[Recording]],
    validations: Sequence[Validation],
) -> Path:
    """Write the report of a result with its springs as measured; see `write_flexible_report`."""
    return write_flexible_report(
        path,
        replace(result, validations=tuple(validations)),
        result.springs,
        predictions=[result.predict(recording) for recording in recordings.get("validate", ())],
        cameras=result.cameras,
        repeats=result.repeats,
    )
