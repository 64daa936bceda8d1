"""Report of torsion: the section `torsion` of `identified.yaml`, and the torsion of a recording over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.identification.flexible.torsion_choice import DISPLAY_UNITS
from dynid_ros.identification.flexible.torsion_identification import TorsionResult
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import prediction_panels, spread_indices
from dynid_ros.report.formats import listed, percent, plus_minus, significant, with_unit
from dynid_ros.report.page import Cell, Figures, Legend, Section, Table, Tile
from dynid_ros.report.result_page import (
    ResultPart,
    entries_of,
    half_width_of,
    number_of,
    numbers_of,
    result_page,
    with_interval,
)

MAX_TIME_POINTS = 600
"""Largest number of samples in a plot over time."""


def torsion_part(document: Mapping[str, Any]) -> ResultPart:
    """Return the part of a page on torsion."""
    entries = entries_of(document, "torsion")
    known = [joint for joint, entry in entries.items() if np.isfinite(number_of(entry, "stiffness"))]
    sentence = f"The stiffness of {listed(known)} is determined." if known else "No stiffness is determined."
    ratios = [number_of(entry, "held_out_rms") / number_of(entry, "torsion_rms") for entry in entries.values()]
    tiles = [Tile("Stiffness determined", f"{len(known)} of {len(entries)}", "joints with a link encoder")]
    if np.isfinite(ratios).all():
        note = "cross-validated RMS over the RMS of the torsion"
        tiles.append(Tile("Torsion residual, worst joint", percent(max(ratios)), note))
    return ResultPart(
        "Torsion", [sentence], tiles, [_joint_section(document, entries), _term_section(document, entries)]
    )


def write_result_report(
    path: str | Path, result: TorsionResult, recordings: Mapping[str, Sequence[Recording]], _validations: object
) -> Path:
    """Write the report of a result; it shows the torsion in the first validation recording, or else in a fitted one."""
    document = result.document()
    part = torsion_part(document)
    unseen = recordings.get("validate", ())
    shown = (*unseen, *recordings["recordings"])[0]
    predicted = result.predict(shown)
    link = shown.link_position
    measured = np.full_like(predicted, np.nan) if link is None else shown.position - link
    scales, units = zip(*(joint.display_unit for joint in result.joints.values()), strict=True)
    columns = [shown.joint_names.index(name) for name in result.joints]
    measured, predicted = (np.array(scales) * torsion[:, columns] for torsion in (measured, predicted))
    rms = np.sqrt(np.mean((measured - predicted) ** 2, axis=0))
    rows = spread_indices(len(shown.time), MAX_TIME_POINTS)
    panels = prediction_panels(
        list(result.joints), units, shown.time, measured, predicted, rows=rows, quantity="torsion"
    )
    where = "a recording that was not fitted" if unseen else "a fitted recording"
    by_joint = [f"{error:.1f} {unit} ({name})" for name, error, unit in zip(result.joints, rms, units, strict=True)]
    sentence = f"On {where}, the residual of the torsion predicted from the motors alone is {listed(by_joint)} (RMS)."
    section = Section(
        "Torsion over time",
        [
            f"{shown.source}{', which was not fitted' if unseen else ''}: measured, and predicted from positions and "
            "torques of the motors, with the zero offset of the fit. The lower plot shows the residual.",
            Legend({"measured": "measured", "identified": "predicted"}),
            Figures(panels),
        ],
    )
    whole = ResultPart(part.title, [*part.sentences, sentence], part.tiles, [*part.sections, section])
    return result_page(document, whole).write(path)


def _joint_section(document: Mapping[str, Any], entries: Mapping[str, dict]) -> Section:
    def column(label: str) -> list[str]:
        units = [_display_unit(entry) for entry in entries.values()]
        numbers = [number_of(entry, label) for entry in entries.values()]
        return [with_unit(scale * value, unit) for value, (scale, unit) in zip(numbers, units, strict=True)]

    columns: dict[str | tuple[str, str], Sequence[str | Cell]] = {
        "Stiffness": [_stiffness_cell(document, entry) for entry in entries.values()],
        ("Torsion", "RMS"): column("torsion_rms"),
        ("Cross-validated residual", "RMS"): column("held_out_rms"),
        "White noise": column("noise"),
        ("Delay", "ms"): [significant(1e3 * number_of(entry, "delay")) for entry in entries.values()],
        "Terms": [_describe_terms(entry) for entry in entries.values()],
    }
    return Section(
        "Joints",
        [
            "Torsion is motor minus link position, from encoders on both sides. The 95 % interval of a stiffness "
            "includes the differences between the sets of terms that predict equally well. The delay is torsion over "
            "velocity: one encoder is read later than the other, or there is viscous friction.",
            Table.by_column("Joint", list(entries), columns, words=[len(columns)]),
        ],
    )


def _display_unit(entry: Mapping[str, Any]) -> tuple[float, str]:
    """Return the factor and the unit of displayed torsion."""
    return DISPLAY_UNITS[entry.get("prismatic") is True]


def _stiffness_cell(document: Mapping[str, Any], entry: Mapping[str, Any]) -> Cell:
    low, high = numbers_of(document, entry, "stiffness_interval", 2)
    value = number_of(entry, "stiffness")
    unit = "N/m" if entry.get("prismatic") is True else "N m/rad"
    ends = f"{significant(low)} to {significant(high)}" if np.isfinite(high) else f"at least {significant(low)}"
    text = with_unit(value, unit) if np.isfinite(value) else "not determined"
    return Cell(text, [f"{ends} {unit}"] if low > 0 else [])


def _describe_terms(entry: Mapping[str, Any]) -> str:
    terms = ", ".join(map(str, entry.get("terms") or ()))
    return f"{terms}; {entry['undecided']}" if entry.get("undecided") else terms


def _term_section(document: Mapping[str, Any], entries: Mapping[str, dict]) -> Section | None:
    """Return the section on the coefficients of all terms, and the contribution of each term to the torsion."""
    rows = []
    for joint, entry in entries.items():
        coefficients = {**entry, **(entry.get("coefficients") or {})}
        scale, unit = _display_unit(entry)
        for label in entry.get("coefficients") or ():
            contribution = with_unit(scale * number_of(entry.get("part_rms") or {}, label), unit, 2)
            rows.append((joint, str(label), with_interval(document, coefficients, label), contribution))
        for ripple in entry.get("ripples") or ():
            amplitude = scale * number_of(ripple, "amplitude")
            half = scale * half_width_of(document, {**entry, "std": {"": ripple.get("std")}}, "")
            per_turn = number_of(ripple, "per_turn")
            period = f"period {2e3 * np.pi / per_turn:.3g} mm" if unit != "mdeg" else f"{per_turn:.1f} periods per turn"
            contribution = with_unit(amplitude / np.sqrt(2), unit, 2)
            rows.append((joint, f"ripple, {period}", f"{plus_minus(amplitude, half)} {unit}", contribution))
    if not rows:
        return None
    explanation = (
        "Coefficients in SI units with 95 % intervals: the mean of the sets of terms that predict equally well."
    )
    return Section("Terms", [explanation, Table(("Joint", "Term", "Coefficient", ("Contribution", "RMS")), rows)])
