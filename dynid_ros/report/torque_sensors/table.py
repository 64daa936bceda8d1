"""What the report of a calibration says about each sensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.torque_sensors.torque_sensor_result import TorqueSensorResult
from dynid_ros.report.formats import as_fine_as, counted, listed, percent, significant
from dynid_ros.report.page import Tile
from dynid_ros.report.torque_sensors.plots import reading_plot
from dynid_ros.report.units import joint_units


@dataclass(frozen=True)
class Cell:
    """A number with its interval, or none.

    Attributes:
        value: text, a dash if the data do not decide it.
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
    half = half_width(1.0, result.fit.freedom)
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
        found.append(f"The data do not decide the gain of {listed(missing)}; the table says why.")
    return found


def tiles(result: TorqueSensorResult, word: str) -> list[Tile]:
    """The same in numbers."""
    decided = np.isfinite(result.gain)
    found = [Tile("Gains found", f"{decided.sum()} of {len(decided)}", "the others are not given")]
    if decided.any():
        half = half_width(1.0, result.fit.freedom)
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
