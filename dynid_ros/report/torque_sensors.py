"""The report of a calibration of torque sensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult
from dynid_ros.identified.validation import Validation
from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg, thinned
from dynid_ros.report.formats import (
    MISSING,
    JointUnits,
    as_fine_as,
    counted,
    joint_units,
    listed,
    percent,
    significant,
    with_unit,
)
from dynid_ros.report.page import Cell, Figures, Plot, Section, Table, Tile, agreement_table, condition, result_page
from dynid_ros.report.plots import error_plot

# Readings of a torque sensor over the torque, and the line that its calibration draws through them.


HEIGHT = 210


def reading_plot(result: TorqueSensorResult, joint: int, unit: JointUnits) -> str:
    """Points: dwells, friction taken off, filled without and hollow with the mass; line: the calibration.

    Empty where the gain is not known: then the torque is not known either.
    """
    if np.isnan(result.gain[joint]):
        return ""
    model = result.model
    point = model.at(result.fit.values)
    torque = point.torque[:, joint]
    friction = result.per_joint("coulomb")[0][joint]
    reading = model.samples.torque[:, joint] - np.nan_to_num(friction) * model.samples.direction[:, joint]
    ends = np.array([torque.min(), torque.max()])

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=56, bottom=40)
        axes.plot(ends, ends / result.gain[joint] + result.offset[joint], color=LIGHT["ink"], linewidth=1)
        for loaded, face in ((False, LIGHT["identified"]), (True, "none")):
            some = np.flatnonzero(model.loaded == loaded)
            some = some[thinned(len(some))] if len(some) else some
            axes.plot(
                torque[some], reading[some], "o", markersize=4, mfc=face, mec=LIGHT["identified"], mew=0.8, alpha=0.8
            )
        label_axes(axes, f"gravity torque ({unit.effort})", "reading")

    return svg(f"Readings of {result.joint_names[joint]} over gravity torque", WIDTH, HEIGHT, draw)


# What the report of a calibration says about each sensor.


HEADINGS = {"gain": "Gain", "offset": "Offset", "position_gain": "Position gain", "position_offset": "Position offset"}


def _sensor_section(result: TorqueSensorResult) -> Section:
    labels = list(HEADINGS)[: 4 if result.model.positions else 2]
    half = half_width(1.0, result.fit.dof)
    values = [result.per_joint(label) for label in labels]
    rows, reasons = [], []
    for j, (joint, unit) in enumerate(zip(result.joint_names, joint_units(result.model.robot), strict=True)):
        cells = [
            Cell(as_fine_as(value[j], half * error[j]), [f"± {as_fine_as(half * error[j], half * error[j])}"])
            if np.isfinite(value[j])
            else MISSING
            for value, error in values
        ]
        rows.append([joint, *cells, with_unit(result.coulomb[j], unit.effort), significant(result.residual_rms[j], 2)])
        own = {label: result.reasons.get(f"{label} {joint}") for label in labels}
        reasons += [f"{joint}, {label.replace('_', ' ')}: {reason}" for label, reason in own.items() if reason]
    headings = [HEADINGS[label] for label in labels]
    return Section(
        "Sensors",
        [
            "A reading v stands for the torque gain · (v − offset); the offset is in units of the reading. Below each "
            "number is half its 95 % interval. A dash stands where the data do not determine a number.",
            Table(["Joint", *headings, "Coulomb friction", ("Residual", "RMS, reading")], rows),
            *reasons,
            *(f"No reading changes if these change together: {direction}" for direction in result.freedoms),
            *(f"Note: {remark}" for remark in result.remarks),
        ],
    )


def _sentences(result: TorqueSensorResult) -> list[str]:
    """What was calibrated, against what, and what was not."""
    known = np.isfinite(result.gain)
    n, mass = len(known), result.model.mass
    samples, loaded = len(result.model.samples), int(np.count_nonzero(result.model.loaded))
    scale = []
    if mass is not None:
        scale.append(f"a mass of {significant(mass.mass)} kg, attached in {loaded} of them")
    if result.model.known is not None:
        scale.append(f"known gravity parameters ({result.model.known.source})")
    against = f", against {listed(scale)}" if scale else ""
    found = [f"Gains of {known.sum()} of {n} torque sensors were found from {counted(samples, 'dwell')}{against}."]
    if not known.all():
        missing = [joint for joint, own in zip(result.joint_names, known, strict=True) if not own]
        found.append(f"The data do not determine the gain of {listed(missing)}; the table says why.")
    return found


def _tiles(result: TorqueSensorResult) -> list[Tile]:
    """The same in numbers."""
    known = np.isfinite(result.gain)
    found = [Tile("Gains found", f"{known.sum()} of {len(known)}", "the others are not given")]
    if known.any():
        half = half_width(1.0, result.fit.dof)
        worst = float(np.max(half * result.per_joint("gain")[1][known] / np.abs(result.gain[known])))
        found.append(Tile("Gain, worst joint", f"± {percent(worst)}", "95 % interval"))
        change = float(np.max(np.abs(result.gain[known] - 1)))
        found.append(Tile("Largest change of a gain", percent(change), "against readings taken for torques"))
    return [*found, condition(result.condition_number).tile]


def _relative_residual(result: TorqueSensorResult) -> NDArray:
    """(M, n) residuals in per cent of the range of each joint's readings."""
    spread = result.model.reading_range
    return 100 * result.fit.residual / np.where(spread > 0, spread, np.nan)


def write_torque_sensor_report(
    path: str | Path, result: TorqueSensorResult, validations: Sequence[Validation] = ()
) -> Path:
    """Write the report of what was calibrated, how well, and what is undetermined.

    The same input gives the same file: it holds no date.
    """
    robot = result.model.robot
    pictures = [(name, reading_plot(result, j, joint_units(robot)[j])) for j, name in enumerate(robot.joint_names)]
    label = "reading − model (% of the readings' range)"
    return result_page(
        "Torque sensors",
        "Calibration of torque sensors",
        robot,
        sentences=_sentences(result),
        tiles=_tiles(result),
        sections=[
            _sensor_section(result),
            Section(
                "Readings over torque",
                [
                    "Each point is one dwell, friction taken off: filled without, hollow with the reference mass. The "
                    "line is the calibration; readings that bend away from it are of a sensor that is not linear, or "
                    "of an arm whose gravity is not as assumed.",
                    Figures([Plot(picture, name) for name, picture in pictures if picture]),
                ],
            ),
            Section("Residuals", [Figures([Plot(error_plot(robot.joint_names, _relative_residual(result), label))])]),
            *([Section("Validation", [agreement_table(one) for one in validations])] if validations else []),
            condition(result.condition_number).section(),
        ],
        sources=result.sources,
        settings=result.settings,
    ).write(path)


def write_result_report(
    path: str | Path, result: TorqueSensorResult, _recordings: object, validations: Sequence[Validation]
) -> Path:
    """Write the report of a result; see `write_torque_sensor_report`."""
    return write_torque_sensor_report(path, result, validations)
