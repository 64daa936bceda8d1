"""The report of an identification of torsion: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynid_ros.identification.flexible.torsion_identification import MDEG, JointTorsion, TorsionResult
from dynid_ros.identified.identified_file import new_document
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import Panel
from dynid_ros.report.formats import listed, percent, significant, with_unit
from dynid_ros.report.page import Tile, write_page
from dynid_ros.report.plots import prediction_plot

POINTS = 600


class TorsionRow(NamedTuple):
    """A joint, as text."""

    joint: str
    stiffness: str
    interval: str
    size: str
    held_out: str
    noise: str
    delay: str
    terms: str


def write_torsion_report(
    path: str | Path,
    robot: RobotModel,
    result: TorsionResult,
    fitted: Sequence[Recording],
    unseen: Sequence[Recording] = (),
) -> Path:
    """Write the report of what was identified; it shows the first unseen recording, or the first fitted one.

    The same input gives the same file: it holds no date.
    """
    shown = (*unseen, *fitted)[0]
    panels = list(_panels(result, shown))
    source = new_document(robot, [recording.source for recording in fitted], {"cutoff": f"{result.cutoff:.3g} Hz"})
    return write_page(
        path,
        "torsion.html.j2",
        robot=robot,
        result=result,
        source=source["source"],
        settings=source["source"]["settings"],
        sentences=_sentences(result, panels, fresh=bool(unseen)),
        tiles=_tiles(result),
        rows=[_row(name, model) for name, model in result.joints.items()],
        panels=panels,
        shown=shown.source,
        fresh=bool(unseen),
    )


def _panels(result: TorsionResult, recording: Recording) -> Iterator[Panel]:
    predicted = result.predict(recording)
    link = recording.link_position
    measured = np.full_like(predicted, np.nan) if link is None else recording.position - link
    some = np.unique(np.linspace(0, len(recording.time) - 1, POINTS).astype(int))
    for name in result.joints:
        j = recording.joint_names.index(name)
        both = MDEG * measured[:, j], MDEG * predicted[:, j]
        rms = float(np.std(both[0] - both[1]))
        label = f"Torsion of {name} over time, measured and predicted"
        picture = prediction_plot(label, "torsion (mdeg)", recording.time[some], both[0][some], both[1][some])
        yield Panel(name, "", picture, rms, "mdeg")


def _row(name: str, model: JointTorsion) -> TorsionRow:
    low, high = model.stiffness.interval
    ends = f"{significant(low)} to {significant(high)}" if np.isfinite(high) else f"at least {significant(low)}"
    return TorsionRow(
        name,
        with_unit(model.stiffness.value, "N m/rad") if model.stiffness.determined else "not determined",
        f"{ends} N m/rad" if low > 0 else "",
        f"{MDEG * model.torsion_rms:.1f}",
        f"{MDEG * model.held_out_rms:.1f}",
        f"{MDEG * model.noise:.2g}",
        f"{1e3 * model.delay:.2f}",
        ", ".join(model.sets[0].terms) + (f"; {model.stiffness.reason}" if model.stiffness.reason else ""),
    )


def _sentences(result: TorsionResult, panels: Sequence[Panel], *, fresh: bool) -> list[str]:
    told = [name for name, model in result.joints.items() if model.stiffness.determined]
    found = [
        f"The stiffness of {listed(told)} is decided." if told else "These recordings determine no joint's stiffness.",
        "Torsion is predicted from the motors alone, to "
        + listed([f"{panel.rms:.1f} mdeg ({panel.joint})" for panel in panels])
        + (" on a recording that was not fitted." if fresh else "; another recording would show how it predicts."),
    ]
    return found if panels else found[:1]


def _tiles(result: TorsionResult) -> list[Tile]:
    told = sum(model.stiffness.determined for model in result.joints.values())
    left = max(model.held_out_rms / model.torsion_rms for model in result.joints.values())
    return [
        Tile("Stiffness decided", f"{told} of {len(result.joints)}", "joints with a link encoder"),
        Tile("Torsion left, worst joint", percent(left), "of parts of the record that were left out, RMS"),
    ]
