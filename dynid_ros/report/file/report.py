"""The page of an `identified.yaml`: all that the file says, and how well it predicts recordings that are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import file_of, is_number, mapping
from dynid_ros.identified.validation import Validation
from dynid_ros.model import RobotModel
from dynid_ros.report.conditioning import condition
from dynid_ros.report.file.sections import sections
from dynid_ros.report.formats import percent, significant
from dynid_ros.report.page import Tile, write_page
from dynid_ros.report.panel import Panel
from dynid_ros.report.prediction_plot import middle, prediction_plot
from dynid_ros.report.units import joint_units


@dataclass(frozen=True, eq=False)
class Predicted:
    """A recording and what the file predicts of it.

    Attributes:
        validation: agreement per joint.
        time: (N,) s.
        measured, predicted: (N, n) torque, both through the same low-pass.

    """

    validation: Validation
    time: NDArray
    measured: NDArray
    predicted: NDArray


def write_file_report(
    path: str | Path, document: dict, robot: RobotModel | None = None, predictions: Sequence[Predicted] = ()
) -> Path:
    """Write the page.

    Args:
        path: of the HTML file; folders are made.
        document: content of the file.
        robot: the arm; needed where there are predictions.
        predictions: of recordings.

    Raises:
        IdentifiedFileError: malformed, or nothing in it that can be shown.

    """
    tables = sections(document)
    source = mapping(document, "source", file_of(document))
    remarks = document.get("remarks")
    return write_page(
        path,
        "file.html.j2",
        robot=robot or _robot(document),
        sections=tables,
        sentences=[table.said for table in tables],
        tiles=_tiles(document, predictions),
        predictions=[(one, list(_panels(robot, one))) for one in predictions if robot is not None],
        units=[] if robot is None else joint_units(robot),
        remarks=[str(remark) for remark in remarks] if isinstance(remarks, list) else [],
        source=source,
        settings=mapping(source, "settings", f"{file_of(document)}: source"),
    )


def _robot(document: dict) -> SimpleNamespace:
    """What the file says of the robot."""
    section = mapping(document, "robot", file_of(document))
    joints, gravity = section.get("joints"), section.get("gravity")
    if not isinstance(joints, list) or not isinstance(gravity, list) or not all(map(is_number, gravity)):
        raise IdentifiedFileError(f"{file_of(document)}: robot needs joints and gravity; identify again")
    names = {key: str(section.get(key, "not named")) for key in ("name", "base", "tip")}
    digests = {key: str(section.get(key) or "") for key in ("urdf_sha256", "kinematics_sha256")}
    return SimpleNamespace(**names, **digests, joint_names=joints, gravity=gravity)


def _tiles(document: dict, predictions: Sequence[Predicted]) -> list[Tile]:
    tiles = []
    number = document.get("condition_number")
    if is_number(number):
        tiles.append(Tile("Condition number", significant(number), condition(number).word))
    worst = [one.validation.relative_rms[np.isfinite(one.validation.relative_rms)] for one in predictions]
    if worst and np.concatenate(worst).size:
        value = percent(float(np.concatenate(worst).max()))
        tiles.append(Tile("Torque error", value, "worst joint, of the recordings given here, RMS"))
    return tiles


def _panels(robot: RobotModel, one: Predicted) -> list[Panel]:
    rows = middle(slice(0, len(one.time)))
    panels = []
    for joint, (name, unit) in enumerate(zip(robot.joint_names, joint_units(robot), strict=True)):
        label = f"Torque of {name} over time, measured and predicted"
        series = (one.time[rows], one.measured[rows, joint], one.predicted[rows, joint])
        picture = prediction_plot(label, f"torque ({unit.effort})", *series)
        panels.append(Panel(name, "", picture, float(one.validation.rms[joint]), unit.effort))
    return panels
