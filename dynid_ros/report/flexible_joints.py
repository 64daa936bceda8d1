"""Report of flexible joints: the section `flexible_joints` of `identified.yaml`, and the measured springs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.flexible.flexible_prediction import FlexiblePrediction
from dynid_ros.identification.flexible.flexible_result import FlexibleResult, MeasuredSpring, RunFound
from dynid_ros.identified.flexible_joints import LINK_FRICTION_KEYS
from dynid_ros.identified.validation import Validation
from dynid_ros.mocap.recorded_links import MocapLinks
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import (
    LIGHT,
    PANEL_WIDTH,
    Plot,
    label_axes,
    plot_area,
    prediction_panels,
    rows_to_plot,
    spread_indices,
    svg,
)
from dynid_ros.report.formats import (
    REVOLUTE,
    JointUnits,
    brief,
    fixed,
    joint_units,
    listed,
    percent,
    plus_minus,
    significant,
    with_unit,
)
from dynid_ros.report.page import Cell, Condition, Figures, Legend, Section, Table, Text, Tile
from dynid_ros.report.result_page import (
    ResultPart,
    base_table,
    cell_unit,
    entries_of,
    number_of,
    numbers_of,
    result_page,
    units_of,
    with_interval,
)

SPRING_PLOT_HEIGHT = 220
MAX_SPRING_POINTS = 800
"""Largest number of points in the plot of a spring."""
PARAMETER_LABELS = {
    "stiffness": ("Stiffness", "N m/rad"),
    "motor_inertia": ("Motor inertia", "kg m²"),
    "motor_viscous": ("Viscous, motor", "N m s/rad"),
    "motor_coulomb": ("Coulomb, motor", "N m"),
    LINK_FRICTION_KEYS["coulomb"]: ("Coulomb, link", "N m"),
    LINK_FRICTION_KEYS["viscous"]: ("Viscous, link", "N m s/rad"),
    "torque_offset": ("Torque offset", "N m"),
}
"""Heading and unit for revolute joints, by key of the entries."""
SPRING_SHAPES = ("cubic", "dead_zone")


@dataclass(frozen=True, eq=False)
class FlexibleEvidence:
    """Recordings of flexible joints that a page shows in addition to the document.

    Attributes:
        result: result of the identification, with the measured springs and the cameras.
        predictions: predictions of recordings that were not fitted.
        validations: agreement of these predictions with the recordings.
    """

    result: FlexibleResult
    predictions: Sequence[FlexiblePrediction] = ()
    validations: Sequence[Validation] = ()

    @property
    def longest(self) -> RunFound:
        """The longest fitted recording."""
        return max(self.result.runs, key=lambda run: len(run.prediction.time))

    @property
    def relative_residual(self) -> float:
        """Largest RMS residual over RMS torque of a joint, on the validation recordings or else on the fitted ones."""
        if self.validations:
            return float(np.nanmax([validation.relative_rms for validation in self.validations]))
        torque = np.concatenate([run.prediction.measured_torque for run in self.result.runs])
        return float(np.nanmax(self.result.residual_rms / np.sqrt(np.nanmean(torque**2, axis=0))))


def flexible_part(
    document: Mapping[str, Any], robot: RobotModel | None = None, evidence: FlexibleEvidence | None = None
) -> ResultPart:
    """Return the part of a page on flexible joints."""
    entries = entries_of(document, "flexible_joints")
    known = [joint for joint, entry in entries.items() if _is_determined(entry, "stiffness")]
    units = units_of(document, robot)
    note = "joints whose stiffness the data determine"
    tiles = [Tile("Springs identified", f"{len(known)} of {len(entries)}", note)]
    resonances = {joint: number_of(entries[joint], "resonance") for joint in known}
    slowest = min(resonances, key=lambda joint: resonances[joint], default="")
    if np.isfinite(resonances.get(slowest, np.nan)):
        tiles.append(Tile("Lowest resonance", f"{significant(resonances[slowest])} Hz", slowest))
    sentences = _stiffness_sentences(entries, known, slowest, units)
    sections: list[Section | None] = [_joint_section(document, entries, units)]
    if evidence is not None:
        where = "recordings that were not fitted" if evidence.validations else "the fitted recordings"
        residual = percent(evidence.relative_residual)
        tiles.append(Tile("Torque residual, worst joint", residual, f"over the measured torque, on {where}"))
        sentences.append(
            f"On {where}, the residual of the torque predicted from the motion of the motors alone is at most "
            f"{residual} of a joint's torque (RMS)."
        )
        sections += [
            _spring_section(evidence),
            _torque_section(evidence),
            _deflection_section(evidence),
            _residual_section(evidence),
        ]
    condition = Condition(
        number_of(document, "condition_number"),
        remedy="Move each joint near its resonance, and reverse friction often.",
    )
    cameras = evidence.result.cameras if evidence is not None else ()
    sections += [_sensor_section(document, cameras, evidence), _repeat_section(document), condition.section()]
    return ResultPart("Flexible joints", sentences, [*tiles, condition.tile], sections)


def write_result_report(
    path: str | Path,
    result: FlexibleResult,
    recordings: Mapping[str, Sequence[Recording]],
    validations: Sequence[Validation],
) -> Path:
    """Write the report of a result."""
    document = result.content(validations)
    predictions = [result.predict(recording) for recording in recordings.get("validate", ())]
    evidence = FlexibleEvidence(result, predictions, validations)
    part = flexible_part(document, result.layout.robot, evidence)
    return result_page(document, part, settings={"band": f"{brief(result.settings['band'])} Hz"}).write(path)


def _is_determined(entry: Mapping[str, Any], label: str) -> bool:
    """Return whether the data determine the parameter at `label` of a joint's entry."""
    decided = entry.get("decided")
    return np.isfinite(number_of(entry, label)) and (not isinstance(decided, dict) or decided.get(label) is not False)


def _stiffness_sentences(
    entries: Mapping[str, dict], known: Sequence[str], slowest: str, units: Mapping[str, JointUnits]
) -> list[str]:
    sentences = [f"The stiffness of {len(known)} of {len(entries)} joints was identified."]
    if slowest:
        unit = "N m/rad" if units[slowest].effort == "N m" else "N/m"
        entry = entries[slowest]
        resonance = with_unit(number_of(entry, "resonance"), "Hz")
        sentences.append(
            f"The joint with the lowest resonance, {slowest}, has {significant(number_of(entry, 'stiffness'))} {unit}; "
            f"its link resonates at {resonance} while the motor is held."
        )
    rigid = [joint for joint in entries if joint not in known]
    if rigid:
        sentences.append(
            f"The stiffness of {listed(rigid)} is not determined: the deflection hardly exceeds the noise, and a rigid "
            "joint would fit the data too. Only sums of link and motor parameters are known for such a joint."
        )
    labels = ("motor_inertia", "motor_viscous", LINK_FRICTION_KEYS["viscous"])
    mixed = [
        joint
        for joint in known
        if not all(_is_determined(entries[joint], label) for label in labels if label in entries[joint])
    ]
    if mixed:
        sentences.append(
            f"The motion does not separate inertia and friction of motor and link for {listed(mixed)}: it was "
            "too slow, or too far from the resonance."
        )
    return sentences


def _joint_section(
    document: Mapping[str, Any], entries: Mapping[str, dict], units: Mapping[str, JointUnits]
) -> Section:
    columns: dict[str | tuple[str, str], list[str | Cell]] = {}
    for label, (heading, unit) in PARAMETER_LABELS.items():
        if any(label in entry for entry in entries.values()):
            columns[heading, unit] = [
                _term_cell(document, entry, label, cell_unit(unit, units[joint])) for joint, entry in entries.items()
            ]
    columns["Resonance", "motor held, Hz"] = [significant(number_of(one, "resonance")) for one in entries.values()]
    columns["Spring"] = [_describe_spring(entry) for entry in entries.values()]
    table = Table.by_column("Joint", list(entries), columns, words=[len(columns)])
    sums = document.get("flexible_sums") or []
    parts: list[Any] = []
    if sums:
        parts = [
            Text("Sums of link and motor", "heading"),
            "Slow motion determines these sums, as for a rigid arm, but not their parts. SI units.",
            Table.by_column(
                "Sum",
                [str(entry["expression"]) for entry in sums],
                {
                    "Value": [
                        with_interval(document, {**entry, "std": {"value": entry.get("std")}}, "value")
                        for entry in sums
                    ]
                },
            ),
        ]
    return Section(
        "Joints",
        [
            "All values are reflected to the link side: motor torque times the gear ratio, rotor inertia times its "
            "square. Intervals are 95 % intervals. A parameter is not determined if its standard error is large "
            "compared with its value.",
            table,
            *parts,
            *([base_table(document)] if document.get("base_parameters") else []),
        ],
    )


def _term_cell(document: Mapping[str, Any], entry: Mapping[str, Any], label: str, unit: str) -> Cell:
    """Return the value with its interval; the interval of a stiffness is not symmetric, and has its own line."""
    ends = numbers_of(document, entry, "stiffness_interval", 2) if label == "stiffness" else np.full(2, np.nan)
    if not _is_determined(entry, label):
        return Cell("not determined", [f"at least {significant(ends[0])} {unit}".strip()] if ends[0] > 0 else [])
    if np.isnan(ends).any():
        return Cell(with_interval(document, entry, label, unit))
    text = f"{significant(number_of(entry, label))} {unit}".strip()
    return Cell(text, [f"{significant(ends[0])} to {significant(ends[1])}"])


def _describe_spring(entry: Mapping[str, Any]) -> str:
    shapes = [f"{label} {significant(number_of(entry, label))}" for label in SPRING_SHAPES if label in entry]
    return ", ".join([str(entry.get("spring", "")).replace("_", " "), *shapes])


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
    """Draw the torque over the deflection of a joint as SVG.

    Args:
        joint: name of the joint.
        deflection: (N,) motor minus link position, rad or m.
        torque: (N,) measured torque of the spring, N m or N.
        across: (M,) deflections at which the lines are drawn, rad or m.
        identified: (M,) torque of the identified spring; NaN: undetermined.
        true: (M,) torque of the true spring of a simulation; None: unknown.
        unit: units of the joint.
    """
    # Points are selected by rank of the deflection, so that the whole range is covered.
    rows = np.argsort(deflection)[spread_indices(len(deflection), MAX_SPRING_POINTS)]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        marker: dict[str, Any] = {"markersize": 1.6, "color": LIGHT["measured"], "alpha": 0.5}
        axes.plot(unit.scale * deflection[rows], torque[rows], "o", **marker)
        if true is not None:
            axes.plot(unit.scale * across, true, color=LIGHT["truth"], linewidth=3.0)
        axes.plot(unit.scale * across, identified, color=LIGHT["identified"], linewidth=1.4)
        label_axes(axes, f"deflection ({unit.position})", f"torque ({unit.effort})")

    return svg(f"Torque over deflection of {joint}", PANEL_WIDTH, SPRING_PLOT_HEIGHT, draw)


def spring_agreement(result: FlexibleResult, joint: int, spring: MeasuredSpring) -> tuple[float, float]:
    """Return the RMS residual of the measured spring torque, and its squared correlation r² with the identified law."""
    if not len(spring.deflection):
        return np.nan, np.nan
    predicted = result.model.laws[joint].torque(spring.deflection, result.model.springs[joint])
    rms = float(np.sqrt(np.mean((spring.torque - predicted) ** 2)))
    is_related = len(predicted) > 2 and np.ptp(predicted) > 0
    return rms, float(np.corrcoef(predicted, spring.torque)[0, 1] ** 2) if is_related else np.nan


def _spring_section(evidence: FlexibleEvidence) -> Section:
    result = evidence.result
    plots = []
    for i, (spring, unit) in enumerate(zip(result.springs, joint_units(result.layout.robot), strict=True)):
        is_measured = len(spring.deflection) > 0
        across = np.linspace(spring.deflection.min(initial=0.0), spring.deflection.max(initial=0.0), 200)
        is_known = bool(np.isfinite(result.stiffness[i])) and is_measured
        line = np.full_like(across, np.nan)
        note = "stiffness not determined"
        if is_known:
            line = result.model.laws[i].torque(across, result.model.springs[i])
            rms, r2 = spring_agreement(result, i, spring)
            note = f"r² {fixed(r2, 4)}, residual {with_unit(rms, unit.effort, 2)} RMS"
        picture = spring_plot(spring.joint, spring.deflection, spring.torque, across, line, unit=unit)
        plots.append(Plot(picture, spring.joint, note))
    return Section(
        "Springs",
        [
            "Points: measured torque minus inertia and friction torque of the motor, over the deflection, motor minus "
            "link position. Line: the identified spring. r² is the squared correlation of points and line. A loop "
            "indicates friction or an error of the clock offset, a kink at zero indicates backlash.",
            Figures(plots),
        ],
    )


def _torque_section(evidence: FlexibleEvidence) -> Section:
    result = evidence.result
    is_validated = bool(evidence.predictions)
    shown = evidence.predictions[0] if is_validated else evidence.longest.prediction
    source = evidence.validations[0].recording if is_validated else evidence.longest.source
    return Section(
        "Torque of the motors",
        [
            f"The middle of {source}{', which was not fitted' if is_validated else ''}: measured, and predicted from "
            "the motion of the motors alone. The lower plot shows the residual, the caption its RMS over the whole "
            "recording.",
            Legend({"measured": "measured", "identified": "predicted"}),
            Figures(
                prediction_panels(
                    result.joint_names,
                    [unit.effort for unit in joint_units(result.layout.robot)],
                    shown.time,
                    shown.measured_torque,
                    shown.torque,
                    rows=rows_to_plot(shown.time),
                )
            ),
        ],
    )


def _deflection_section(evidence: FlexibleEvidence) -> Section:
    prediction = evidence.longest.prediction
    units = joint_units(evidence.result.layout.robot)
    scale = np.array([unit.scale for unit in units])
    motor = prediction.link + prediction.deflection
    seen = np.flatnonzero(np.isfinite(prediction.measured_link).any(axis=0))
    return Section(
        "Deflection of the links",
        [
            f"Motor minus link position in {evidence.longest.source}: measured, and predicted from the motion of the "
            "motors alone.",
            Figures(
                prediction_panels(
                    [evidence.result.joint_names[i] for i in seen],
                    [units[i].position for i in seen],
                    prediction.time,
                    (scale * (motor - prediction.measured_link))[:, seen],
                    (scale * (motor - prediction.link))[:, seen],
                    rows=rows_to_plot(prediction.time),
                    quantity="deflection",
                )
            ),
        ],
    )


def _residual_section(evidence: FlexibleEvidence) -> Section:
    """Return the residuals of each joint in each fitted recording."""
    result = evidence.result
    units = joint_units(result.layout.robot)
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
    zero = ("Zero of the link", "minus that of the motor")
    columns = ("Joint", ("Torque residual", "RMS"), ("Link residual", "RMS"), zero, "Recording")
    return Section("Residual analysis", ["Residuals of the fitted recordings.", Table(columns, rows, words=[4])])


def _sensor_section(
    document: Mapping[str, Any], cameras: Sequence[MocapLinks], evidence: FlexibleEvidence | None
) -> Section | None:
    """Return the section on clocks and markers of the sensors that measure the links; None if there are none."""
    recordings = [entry for entry in document.get("flexible_recordings") or [] if entry.get("clock_offset_std")]
    parts: list[Any] = []
    if recordings:
        columns = {
            ("Offset", "ms"): [_offset_text(entry) for entry in recordings],
            ("Drift", "ppm"): [significant(1e6 * number_of(entry, "clock_drift")) for entry in recordings],
        }
        parts = [
            "Clock of the robot minus clock of the sensor that measures the links. It was identified together with the "
            "joints, because a spring delays the link as a clock offset does.",
            Table.by_column("Recording", [str(entry.get("recording")) for entry in recordings], columns),
        ]
    if evidence is not None:
        robot = evidence.result.layout.robot
        for number, camera in enumerate(cameras, start=1):
            title = f"Markers, recording {number}" if len(cameras) > 1 else "Markers"
            parts += [Text(title, "heading"), *_marker_parts(camera, (*robot.link_names, robot.base))]
    return Section("Motion capture" if cameras else "Clocks", parts) if parts else None


def _offset_text(entry: Mapping[str, Any]) -> str:
    """Format the clock offset with its 95 % interval, ms."""
    half = float(half_width(number_of(entry, "clock_offset_std")))
    return plus_minus(1e3 * number_of(entry, "clock_offset"), 1e3 * half)


def _marker_parts(camera: MocapLinks, links: Sequence[str]) -> list[Any]:
    registration = camera.registration
    table = Table.by_column(
        "Marker",
        registration.markers.names,
        {
            ("Residual", "RMS"): [with_unit(1000 * rms, "mm") for rms in registration.residual_rms],
            "Used": [percent(used) for used in registration.used],
            "Link": [links[link] for link in registration.markers.links],
        },
        words=[3],
    )
    return [f"Noise of a coordinate: {with_unit(1000 * registration.noise, 'mm')}.", table]


def _repeat_section(document: Mapping[str, Any]) -> Section | None:
    repeats = document.get("repeats") or []
    if not repeats:
        return None
    columns = {
        "Mean": [significant(number_of(entry, "mean"), 4) for entry in repeats],
        "Coefficient of variation": [percent(number_of(entry, "variation")) for entry in repeats],
    }
    table = Table.by_column("Parameter", [str(entry.get("parameter")) for entry in repeats], columns)
    return Section("Repetitions", ["Each recording was also identified separately.", table])
