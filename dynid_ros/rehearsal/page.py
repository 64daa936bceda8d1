"""Page of a rehearsal: verdict, errors by joint, intervals and true values, undetermined parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from dynid_ros.rehearsal.verdict import JointErrors, Rehearsal
from dynid_ros.report.comparison import comparison_table, count_covered
from dynid_ros.report.drawing import LIGHT, svg
from dynid_ros.report.formats import counted, percent, significant
from dynid_ros.report.page import Bullets, Facts, Figures, Links, Page, Plot, Section, Table, Text, Tile
from dynid_ros.report.plots import ROW_PLOT_WIDTH, row_axes, rows_height

TITLES = {
    "gravity": ("Gravity torque", "largest"),
    "unseen": ("Unseen torque", "RMS"),
    "load": ("Gravity torque of the load", "largest"),
}
KIND_TITLES = {"gravity": "Gravity parameters", "links": "Base parameters of links", "load": "Load"}


def with_report(rehearsal: Rehearsal) -> Rehearsal:
    """Write report.html into the output folder and add it to the rehearsal's files."""
    experiment = rehearsal.experiment
    covered, count = count_covered([one for of in rehearsal.comparisons.values() for one in of])
    settings = experiment.settings
    facts = {name.replace("_", " "): f"{value:g}" for name, value in vars(settings.truth).items() if value is not None}
    facts |= {"load mass": f"{experiment.simulated.load[0]:g} kg", "seed": f"{settings.seed:g}"}
    facts |= {f"motion for {name}": f"{seconds:.0f} s" for name, seconds in experiment.durations.items()}
    page = Page(
        title=f"Rehearsal of {experiment.robot.name}",
        kind="Rehearsal on a simulated arm",
        heading=experiment.robot.name,
        verdict=rehearsal.verdict()[0],
        sentences=rehearsal.verdict()[1:],
        tiles=[
            *(Tile(check.label, check.measured, f"goal: {check.bound}") for check in rehearsal.checks[:-1]),
            Tile("Intervals with the truth", f"{covered} of {count}", rehearsal.checks[-1].bound),
        ],
        sections=[
            _joint_section(rehearsal),
            _interval_section(rehearsal),
            _parameter_section(rehearsal),
            Section("Remarks", [Bullets([*rehearsal.missing, *rehearsal.remarks()])]),
            Section(
                "The truth",
                [
                    "The simulated robot is the arm of the URDF with wrong links, friction, sensors and a load. The "
                    "identification has seen neither these numbers nor truth.yaml, only the recordings.",
                    Facts(facts),
                ],
            ),
            Section("Pages of the steps", [Links(_pages(experiment.output))]),
        ],
        made="Rehearsed",
    )
    rehearsal.files = {"report": page.write(experiment.output / "report.html"), **rehearsal.files}
    return rehearsal


def _pages(output: Path) -> list[tuple[str, str]]:
    names = [*(f"motions/{name}" for name in ("gravity", "links", "unseen", "load")), "gravity", "links", "load"]
    return [(name, f"{name}/report.html") for name in names if (output / name / "report.html").is_file()]


def _joint_section(rehearsal: Rehearsal) -> Section:
    """Return the table of errors by joint, and a plot of each quantity."""
    names = rehearsal.experiment.robot.joint_names
    columns: dict[tuple[str, str], Sequence[str]] = {}
    plots = []
    for key, (title, what) in TITLES.items():
        errors: JointErrors | None = getattr(rehearsal, key)
        if errors is None:
            continue
        columns[(title, f"{what}, N m (N)")] = [significant(value) for value in errors.torque]
        columns[(f"{title}: error", "identified")] = [percent(value) for value in errors.error]
        if key != "load":
            columns[(f"{title}: error", "URDF")] = [percent(value) for value in errors.urdf]
        plots.append(Plot(_error_plot(names, errors, f"{title}: error relative to its {what} (%)"), title))
    return Section(
        "By joint",
        [
            "Errors are those of the predicted torque, relative to the torque of the joint. Gravity and load are "
            "compared with the true torque in poses all over the limits; unseen torque is what the sensors read in a "
            "motion that was not fitted. The goals do not count joints with less than 1 % of the largest torque.",
            Table.by_column("Joint", names, columns),
            Figures(plots),
        ],
    )


def _error_plot(names: Sequence[str], errors: JointErrors, label: str) -> str:
    """Draw the errors by joint as SVG: orange the URDF, blue the identified model."""

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, names)
        rows = np.arange(len(names))
        axes.barh(rows - 0.2, 100 * np.nan_to_num(errors.urdf), height=0.36, color=LIGHT["uncompensated"])
        axes.barh(rows + 0.2, 100 * np.nan_to_num(errors.error), height=0.36, color=LIGHT["identified"])
        axes.set_xlabel(label)

    return svg(label, ROW_PLOT_WIDTH, rows_height(len(names)), draw)


def _interval_section(rehearsal: Rehearsal) -> Section:
    parts: list[object] = [
        "A 95 % interval is the uncertainty that the identification states. Of a hundred intervals about ninety-five "
        "should contain the true value; those of one experiment err together. Base parameters with friction in them "
        "are left out: other terms may describe that friction as well."
    ]
    for kind, comparisons in rehearsal.comparisons.items():
        parts += [Text(KIND_TITLES[kind], "heading"), comparison_table(comparisons)]
    return Section("Intervals and the truth", parts)


def _parameter_section(rehearsal: Rehearsal) -> Section:
    """Return the undetermined parameters and the motions that would determine them."""
    weak = rehearsal.weak
    parts: list[object] = [Text(rehearsal.determined())]
    if weak:
        parts.append(f"{counted(len(weak), 'base parameter')}, the least certain first: {', '.join(weak)}.")
    quality = rehearsal.experiment.quality
    if quality is not None and quality.columns.hidden:
        parts.append(f"No motion of this arm shows {', '.join(quality.columns.hidden)}.")
    if rehearsal.advice:
        parts += [Text("Motions that would change that", "heading"), Bullets(rehearsal.advice)]
    return Section("Undetermined parameters", parts)
