"""The report of a calibration of torque sensors: one HTML file that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult
from dynid_ros.identified.identified_file import new_document
from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg, thinned
from dynid_ros.report.formats import JointUnits, as_fine_as, counted, joint_units, listed, percent, significant
from dynid_ros.report.page import Tile, condition, write_page
from dynid_ros.report.plots import error_plot

# Readings of a torque sensor over the torque, and the line that its calibration draws through them.


HEIGHT = 210


def reading_plot(result: TorqueSensorResult, joint: int, unit: JointUnits) -> str:
    """Points: rests, friction taken off, filled without and hollow with the mass; line: the calibration.

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
                torque[some],
                reading[some],
                linestyle="none",
                marker="o",
                markersize=4,
                mfc=face,
                mec=LIGHT["identified"],
                mew=0.8,
                alpha=0.8,
            )
        label_axes(axes, f"gravity torque ({unit.effort})", "reading")

    return svg(f"Readings of {result.joint_names[joint]} over gravity torque", WIDTH, HEIGHT, draw)


# What the report of a calibration says about each sensor.


@dataclass(frozen=True)
class Cell:
    """A number with its interval, or none.

    Attributes:
        value: text, a dash if the data do not determine it.
        half: half the 95 % interval, as text.

    """

    value: str
    half: str


@dataclass(frozen=True)
class SensorRow:
    """One joint: its numbers, why some are missing, and its readings over the torque."""

    joint: str
    cells: tuple[Cell, ...]
    coulomb: str
    reasons: tuple[str, ...]
    picture: str
    residual: str


def columns(result: TorqueSensorResult) -> tuple[tuple[str, str], ...]:
    """Label and heading of each column."""
    torque, position = (
        (("gain", "Gain"), ("offset", "Offset")),
        (
            ("position_gain", "Position gain"),
            ("position_offset", "Position offset"),
        ),
    )
    return (*torque, *position) if result.model.positions else torque


def sensor_rows(result: TorqueSensorResult) -> list[SensorRow]:
    """A row per joint, base to tip."""
    half = half_width(1.0, result.fit.dof)
    labels = [label for label, _ in columns(result)]
    values = {label: result.per_joint(label) for label in labels}
    rows = []
    for j, (joint, unit) in enumerate(zip(result.joint_names, joint_units(result.model.robot), strict=True)):
        cells = tuple(_cell(value[j], half * error[j]) for value, error in values.values())
        reasons = tuple(
            f"{label.replace('_', ' ')}: {result.reasons[f'{label} {joint}']}"
            for label in labels
            if f"{label} {joint}" in result.reasons
        )
        coulomb = f"{significant(result.coulomb[j])} {unit.effort}" if np.isfinite(result.coulomb[j]) else "–"
        rows.append(
            SensorRow(
                joint, cells, coulomb, reasons, reading_plot(result, j, unit), significant(result.residual_rms[j], 2)
            )
        )
    return rows


def sentences(result: TorqueSensorResult) -> list[str]:
    """What was calibrated, against what, and what was not."""
    decided = np.isfinite(result.gain)
    n, mass = len(decided), result.model.mass
    samples, loaded = len(result.model.samples), int(np.count_nonzero(result.model.loaded))
    scale = []
    if mass is not None:
        scale.append(f"a mass of {significant(mass.mass)} kg, attached in {loaded} of them")
    if result.model.known is not None:
        scale.append(f"known gravity parameters ({result.model.known.source})")
    against = f", against {listed(scale)}" if scale else ""
    found = [f"Gains of {decided.sum()} of {n} torque sensors were found from {counted(samples, 'rest')}{against}."]
    if not decided.all():
        missing = [joint for joint, known in zip(result.joint_names, decided, strict=True) if not known]
        found.append(f"The data do not determine the gain of {listed(missing)}; the table says why.")
    return found


def tiles(result: TorqueSensorResult, word: str) -> list[Tile]:
    """The same in numbers."""
    decided = np.isfinite(result.gain)
    found = [Tile("Gains found", f"{decided.sum()} of {len(decided)}", "the others are not given")]
    if decided.any():
        half = half_width(1.0, result.fit.dof)
        worst = float(np.max(half * result.per_joint("gain")[1][decided] / np.abs(result.gain[decided])))
        found.append(Tile("Gain, worst joint", f"± {percent(worst)}", "95 % interval"))
        change = float(np.max(np.abs(result.gain[decided] - 1)))
        found.append(Tile("Largest change of a gain", percent(change), "against readings taken for torques"))
    found.append(Tile("Condition number", significant(result.condition_number), word))
    return found


def relative_residual(result: TorqueSensorResult) -> NDArray:
    """(M, n) residuals in per cent of the range of each joint's readings."""
    spread = result.model.reading_range
    return 100 * result.fit.residual / np.where(spread > 0, spread, np.nan)


def _cell(value: float, half: float) -> Cell:
    return Cell("–", "") if np.isnan(value) else Cell(as_fine_as(value, half), as_fine_as(half, half))


def write_torque_sensor_report(path: str | Path, result: TorqueSensorResult) -> Path:
    """Write the report of what was calibrated, how well, and what the data leave undetermined.

    The same input gives the same file: it holds no date.
    """
    robot, explained = result.model.robot, condition(result.condition_number)
    source = new_document(robot, result.sources, result.settings)["source"]
    return write_page(
        path,
        "torque_sensors.html.j2",
        robot=robot,
        result=result,
        source=source,
        settings=source["settings"],
        sentences=sentences(result),
        tiles=tiles(result, explained.word),
        columns=columns(result),
        rows=sensor_rows(result),
        residuals=error_plot(
            robot.joint_names, relative_residual(result), "reading − model (% of the readings' range)"
        ),
        condition=explained.explanation,
    )
