"""The report of an identification of torsion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.flexible.torsion_identification import JointTorsion, TorsionResult
from dynid_ros.identified.identified_file import RecordedJoints
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.formats import listed, percent, plus_minus, significant, with_unit
from dynid_ros.report.page import Cell, Figures, Legend, Section, Table, Tile, remarks_section, result_page
from dynid_ros.report.plots import panel, prediction_plot

POINTS = 600


def write_torsion_report(
    path: str | Path,
    robot: RobotModel | RecordedJoints,
    result: TorsionResult,
    fitted: Sequence[Recording],
    unseen: Sequence[Recording] = (),
) -> Path:
    """Write the report of what was identified; it shows the first unseen recording, or the first fitted one.

    The same input gives the same file: it holds no date.
    """
    shown, fresh = (*unseen, *fitted)[0], bool(unseen)
    predicted, link = result.predict(shown), shown.link_position
    measured = np.full_like(predicted, np.nan) if link is None else shown.position - link
    errors, panels = {}, []
    some = np.unique(np.linspace(0, len(shown.time) - 1, POINTS).astype(int))
    for name in result.joints:
        scale, unit = result.joints[name].display_unit
        both = [scale * values[:, shown.joint_names.index(name)] for values in (measured, predicted)]
        rms = float(np.sqrt(np.mean((both[0] - both[1]) ** 2)))
        errors[name] = f"{rms:.1f} {unit}"
        label = f"Torsion of {name} over time, measured and predicted"
        picture = prediction_plot(label, f"torsion ({unit})", shown.time[some], both[0][some], both[1][some])
        panels.append(panel(name, picture, rms, unit))
    return result_page(
        "Torsion",
        "Torsion of joints",
        robot,
        sentences=_sentences(result, errors, fresh=fresh),
        tiles=_tiles(result),
        sections=[
            Section(
                "Joints",
                [
                    "Motor less link, from encoders on both sides. Below each stiffness is its 95 % interval, which "
                    "counts how much the sets of terms that predict equally well differ. The delay is torsion per "
                    "velocity: one encoder read later than the other, or viscous friction.",
                    Table(COLUMNS, [_row(name, model) for name, model in result.joints.items()], words=[6]),
                ],
            ),
            Section(
                "Terms",
                [
                    "What torsion is made of: coefficients, mean of the sets that predict equally well, with 95 % "
                    "intervals, and how much each makes of the torsion that was fitted.",
                    Table(TERMS, [row for name, model in result.joints.items() for row in _terms(name, model)]),
                ],
            ),
            Section(
                "Torsion over time",
                [
                    f"{shown.source}{', which was not fitted' if fresh else ''}: measured, and predicted from the "
                    "motors' positions and torques; zeros are those of the fit. Below is the error, magnified.",
                    Legend({"measured": "measured", "identified": "predicted"}),
                    Figures(panels),
                ],
            ),
            remarks_section(result.remarks),
        ],
        sources=[recording.source for recording in fitted],
        settings={"cutoff": f"{result.cutoff:.3g} Hz"},
    ).write(path)


COLUMNS = (
    "Joint",
    "Stiffness",
    ("Torsion", "RMS"),
    ("Residual of parts left out", "RMS"),
    "White noise",
    ("Delay", "ms"),
    "Terms",
)


TERMS = ("Joint", "Term", ("Coefficient", "95 %"), "Unit", ("Part", "RMS"))


def _terms(name: str, model: JointTorsion) -> Iterator[list[str]]:
    scale, shown = model.display_unit
    for label, unit, value, error, rms in model.estimates():
        yield [name, label, plus_minus(value, float(half_width(error, model.dof))), unit, f"{scale * rms:.2g} {shown}"]
    for ripple in model.ripples:
        size, half = scale * ripple.amplitude, scale * float(half_width(ripple.error, model.dof))
        label = f"ripple, {model.ripple_period(ripple)}"
        yield [name, label, plus_minus(size, half), shown, f"{size / np.sqrt(2):.2g} {shown}"]


def _row(name: str, model: JointTorsion) -> list[str | Cell]:
    low, high = model.stiffness.interval
    scale, unit = model.display_unit
    ends = f"{significant(low)} to {significant(high)}" if np.isfinite(high) else f"at least {significant(low)}"
    return [
        name,
        Cell(
            with_unit(model.stiffness.value, model.stiffness.unit) if model.stiffness.determined else "not determined",
            [f"{ends} {model.stiffness.unit}"] if low > 0 else [],
        ),
        f"{scale * model.torsion_rms:.1f} {unit}",
        f"{scale * model.held_out_rms:.1f} {unit}",
        f"{scale * model.noise:.2g} {unit}",
        f"{1e3 * model.delay:.2f}",
        ", ".join(model.sets[0].terms) + (f"; {model.stiffness.reason}" if model.stiffness.reason else ""),
    ]


def _sentences(result: TorsionResult, errors: Mapping[str, str], *, fresh: bool) -> list[str]:
    known = [name for name, model in result.joints.items() if model.stiffness.determined]
    return [
        f"The stiffness of {listed(known)} is determined."
        if known
        else "These recordings determine no joint's stiffness.",
        "Torsion is predicted from the motors alone, to "
        + listed([f"{error} ({name})" for name, error in errors.items()])
        + (" on a recording that was not fitted." if fresh else "; another recording would show how it predicts."),
    ]


def _tiles(result: TorsionResult) -> list[Tile]:
    known = sum(model.stiffness.determined for model in result.joints.values())
    residual = max(model.held_out_rms / model.torsion_rms for model in result.joints.values())
    return [
        Tile("Stiffness determined", f"{known} of {len(result.joints)}", "joints with a link encoder"),
        Tile("Torsion residual, worst joint", percent(residual), "of parts of the record that were left out, RMS"),
    ]


def write_result_report(
    path: str | Path, result: TorsionResult, recordings: Mapping[str, Sequence[Recording]], _validations: object
) -> Path:
    """Write the report of a result; see `write_torsion_report`."""
    unseen = recordings.get("validate", ())
    return write_torsion_report(path, result.robot, result, recordings["recordings"], unseen)
