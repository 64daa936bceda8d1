"""The report of a load identification: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.load_result import LoadResult, alike
from dynid_ros.identification.wrench_frame import AXES, UNITS
from dynid_ros.identified.identified_file import new_document
from dynid_ros.model.inertia import STATIC
from dynid_ros.report.conditioning import condition
from dynid_ros.report.formats import brief
from dynid_ros.report.load.evidence import LoadEvidence
from dynid_ros.report.load.panels import load_panels, shown_rows
from dynid_ros.report.load.table import beside_rows, knows_inertia, load_rows
from dynid_ros.report.load.verdict import sentences, tiles
from dynid_ros.report.load.views import load_views
from dynid_ros.report.page import write_page
from dynid_ros.report.units import joint_units


def write_load_report(
    path: str | Path, result: LoadResult, evidence: LoadEvidence, drivers: Mapping[str, str] | None = None
) -> Path:
    """Write the report of what was found of a load, and on which data.

    The same input gives the same file: it holds no date.

    Args:
        path: of the HTML file; folders are made.
        result: of the identification.
        evidence: the equations that were fitted.
        drivers: texts of settings, by file name.

    Raises:
        IdentificationError: the evidence has other channels than the result.

    """
    if evidence.measured.shape[1] != len(result.channels):
        raise IdentificationError(
            f"report: {evidence.measured.shape[1]} channels measured; expected {', '.join(result.channels)}"
        )
    robot, static = result.robot, result.n_load == STATIC
    torques = tuple(result.channels) == tuple(robot.joint_names)
    by_axis = dict(zip(AXES, UNITS, strict=True))
    units = [unit.effort for unit in joint_units(robot)] if torques else [by_axis[name] for name in result.channels]
    conditioning = condition(
        result.condition_number,
        "more varied poses" if static else "faster and more varied motion",
        "Turn the load against gravity about several axes." + ("" if static else " Move the wrist faster."),
    )
    source = new_document(robot, result.sources, result.settings)["source"]
    rows = shown_rows(evidence, static)
    shown = evidence.time[rows]
    return write_page(
        path,
        "load.html.j2",
        robot=robot,
        result=result,
        static=static,
        torques=torques,
        source=source,
        settings=source["settings"],
        sentences=sentences(result, evidence),
        tiles=tiles(result, evidence, conditioning),
        rows=load_rows(result),
        knows_inertia=knows_inertia(result),
        alike=[f"{text[0].upper()}{text[1:]}." for text in map(str.strip, alike(result))]
        if knows_inertia(result)
        else [],
        views=load_views(result),
        panels=list(load_panels(result.channels, units, evidence, static=static)),
        panel_seconds=brief(float(shown[-1] - shown[0])),
        panel_recording=result.sources[int(evidence.recording[rows[0]])],
        channels=list(zip(result.channels, units, evidence.measured_rms, evidence.residual_rms, strict=True)),
        beside=beside_rows(result),
        conditioning=conditioning,
        drivers=dict(drivers or {}),
    )
