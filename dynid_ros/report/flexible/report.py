"""The report of an identification of flexible joints: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_prediction import FlexiblePrediction
from dynid_ros.identification.flexible.flexible_result import FlexibleResult, MeasuredSpring
from dynid_ros.identified.identified_file import new_document
from dynid_ros.mocap.recorded_links import MocapLinks
from dynid_ros.report.conditioning import condition
from dynid_ros.report.flexible.plots import deflection_panels, shown_rows, spring_panels, torque_panels
from dynid_ros.report.flexible.table import (
    base_rows,
    clock_rows,
    headings,
    joint_rows,
    marker_rows,
    repeat_rows,
    sum_rows,
)
from dynid_ros.report.flexible.verdict import sentences, tiles
from dynid_ros.report.formats import brief
from dynid_ros.report.page import write_page
from dynid_ros.report.units import joint_units


def write_flexible_report(
    path: str | Path,
    result: FlexibleResult,
    springs: Sequence[MeasuredSpring],
    *,
    predictions: Sequence[FlexiblePrediction] = (),
    cameras: Sequence[MocapLinks] = (),
    repeats: Sequence[tuple[str, float, float]] = (),
) -> Path:
    """Write the report of what was identified, on which data, and how well it predicts.

    The same input gives the same file: it holds no date.

    Args:
        path: of the HTML file; folders are made.
        result: of the identification.
        springs: what the sensors say of each joint's spring.
        predictions: of the recordings of `result.validations`.
        cameras: where motion capture saw the links.
        repeats: name, mean and coefficient of variation of each parameter.

    Raises:
        IdentificationError: springs of other joints.

    """
    if tuple(spring.joint for spring in springs) != result.joint_names:
        raise IdentificationError(
            f"report: springs of {', '.join(spring.joint for spring in springs)}; expected "
            f"{', '.join(result.joint_names)}"
        )
    robot = result.layout.robot
    conditioning = condition(
        result.condition_number,
        "motion nearer to the resonances",
        "Move each joint near its resonance, with friction reversed often.",
    )
    source = new_document(robot, result.sources, result.settings)["source"]
    longest = max(result.runs, key=lambda run: len(run.prediction.time))
    shown, of = (
        (predictions[0], result.validations[0].recording) if predictions else (longest.prediction, longest.source)
    )
    rows = shown_rows(shown)
    return write_page(
        path,
        "flexible.html.j2",
        robot=robot,
        result=result,
        units=joint_units(robot),
        source=source,
        settings=source["settings"] | {"band": f"{brief(result.settings['band'])} Hz"},
        sentences=sentences(result),
        tiles=tiles(result, conditioning),
        conditioning=conditioning,
        headings=headings(result),
        rows=joint_rows(result),
        sums=sum_rows(result),
        base=base_rows(result),
        springs=list(spring_panels(result, springs)),
        torques=list(torque_panels(result, shown)),
        deflections=list(deflection_panels(result, longest.prediction)),
        shown_recording=of,
        shown_seconds=brief(float(shown.time[rows][-1] - shown.time[rows][0])),
        fresh=bool(predictions),
        link_recording=longest.source,
        clocks=clock_rows(result.runs),
        cameras=[(camera.registration.noise, marker_rows(robot, camera.registration)) for camera in cameras],
        repeats=repeat_rows(repeats),
    )
