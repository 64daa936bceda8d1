"""Report of a calibration of torque sensors: the section `torque_sensors` of `identified.yaml`, and the readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult
from dynid_ros.identified.validation import Validation
from dynid_ros.report.drawing import LIGHT, PANEL_WIDTH, Plot, label_axes, plot_area, residual_plot, spread_indices, svg
from dynid_ros.report.formats import JointUnits, counted, joint_units, listed, percent, significant
from dynid_ros.report.page import Bullets, Condition, Figures, Section, Tile
from dynid_ros.report.result_page import (
    ResultPart,
    entries_of,
    half_width_of,
    joint_table,
    number_of,
    result_page,
    units_of,
)

READING_PLOT_HEIGHT = 210
COLUMNS = {
    "gain": ("Gain", "N m per reading"),
    "offset": ("Offset", "reading"),
    "position_gain": ("Position gain", ""),
    "position_offset": ("Position offset", "rad"),
    "coulomb": ("Coulomb friction", "reading"),
}
"""Heading and unit for revolute joints, by key of the entries."""


def torque_sensor_part(document: Mapping[str, Any]) -> ResultPart:
    """Return the part of a page on torque sensors."""
    entries = entries_of(document, "torque_sensors")
    known = [joint for joint, entry in entries.items() if np.isfinite(number_of(entry, "gain"))]
    sentences = [f"Gains of {len(known)} of {len(entries)} torque sensors were found."]
    missing = [joint for joint in entries if joint not in known]
    if missing:
        sentences.append(f"The data do not determine the gain of {listed(missing)}; see the reasons below the table.")
    tiles = [Tile("Gains identified", f"{len(known)} of {len(entries)}", "the data do not determine the others")]
    if known:
        gains = {joint: number_of(entries[joint], "gain") for joint in known}
        halves = [half_width_of(document, entries[joint], "gain") / abs(gain) for joint, gain in gains.items()]
        tiles.append(Tile("Gain, worst joint", f"± {percent(max(halves))}", "95 % interval"))
        change = percent(max(abs(gain - 1) for gain in gains.values()))
        tiles.append(Tile("Largest change of a gain", change, "against readings used as torques"))
    about = document.get("torque_sensor_calibration") or {}
    condition = Condition(number_of(about if "condition_number" in about else document, "condition_number"))
    return ResultPart(
        "Torque sensors", sentences, [*tiles, condition.tile], [_sensor_section(document, entries), condition.section()]
    )


def write_result_report(
    path: str | Path, result: TorqueSensorResult, _recordings: object, validations: Sequence[Validation]
) -> Path:
    """Write the report of a calibration of torque sensors."""
    document = result.content(validations)
    robot = result.model.robot
    part = torque_sensor_part(document)
    samples = result.model.samples
    mass = result.model.mass
    references = []
    if mass is not None:
        n_loaded = int(np.count_nonzero(result.model.loaded))
        references.append(f"a mass of {significant(mass.mass)} kg, attached in {n_loaded} of them")
    if result.model.known is not None:
        references.append(f"known gravity parameters ({result.model.known.source})")
    against = f", against {listed(references)}" if references else ""
    sentence = f"The calibration used {counted(len(samples), 'dwell')}{against}."
    plots = [
        Plot(draw_readings(result, j, unit), name)
        for j, (name, unit) in enumerate(zip(robot.joint_names, joint_units(robot), strict=True))
        if np.isfinite(result.gain[j])
    ]
    spread = result.model.reading_range
    relative = 100 * result.fit.residual / np.where(spread > 0, spread, np.nan)
    label = "reading − model (% of the range of the readings)"
    sensors, condition = part.sections
    sections = [
        sensors,
        Section(
            "Readings over torque",
            [
                "Each point is one dwell, without friction: filled without, hollow with the reference mass. The line "
                "is the calibration. Readings that deviate from it systematically indicate a nonlinear sensor or a "
                "wrong gravity model.",
                Figures(plots),
            ],
        ),
        Section("Residual analysis", [Figures([Plot(residual_plot(robot.joint_names, relative, label))])]),
        condition,
    ]
    return result_page(document, ResultPart(part.title, [*part.sentences, sentence], part.tiles, sections)).write(path)


def _sensor_section(document: Mapping[str, Any], entries: Mapping[str, dict]) -> Section:
    reasons = [
        f"{joint}, {label.replace('_', ' ')}: {reason}"
        for joint, entry in entries.items()
        for label, reason in (entry.get("undecided") or {}).items()
    ]
    freedoms = (document.get("torque_sensor_calibration") or {}).get("freedoms") or []
    together = [
        "Readings do not change if these parameters change together: "
        + ", ".join(f"{name} by {significant(change)}" for name, change in changes.items())
        for changes in freedoms
    ]
    return Section(
        "Sensors",
        [
            "torque = gain · (reading − offset), with 95 % intervals. A dash means that the data do not determine the "
            "value.",
            joint_table(document, "torque_sensors", COLUMNS, units_of(document, None)),
            *([Bullets([*reasons, *together])] if reasons or together else []),
        ],
    )


def draw_readings(result: TorqueSensorResult, joint: int, unit: JointUnits) -> str:
    """Draw the readings of a joint with known gain over its gravity torque, and the calibration line, as SVG."""
    model = result.model
    torque = model.at(result.fit.values).torque[:, joint]
    friction = result.per_joint("coulomb")[0][joint]
    reading = model.samples.torque[:, joint] - np.nan_to_num(friction) * model.samples.direction[:, joint]
    ends = np.array([torque.min(), torque.max()])

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=40)
        axes.plot(ends, ends / result.gain[joint] + result.offset[joint], color=LIGHT["ink"], linewidth=1)
        for is_loaded, fill in ((False, LIGHT["identified"]), (True, "none")):
            rows = np.flatnonzero(model.loaded == is_loaded)
            rows = rows[spread_indices(len(rows))] if len(rows) else rows
            marker: dict[str, Any] = {
                "markersize": 4,
                "mfc": fill,
                "mec": LIGHT["identified"],
                "mew": 0.8,
                "alpha": 0.8,
            }
            axes.plot(torque[rows], reading[rows], "o", **marker)
        label_axes(axes, f"gravity torque ({unit.effort})", "reading")

    label = f"Readings of {result.joint_names[joint]} over gravity torque"
    return svg(label, PANEL_WIDTH, READING_PLOT_HEIGHT, draw)
