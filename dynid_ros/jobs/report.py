"""Report of an `identified.yaml`, from the file alone or with recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.files import writable_file
from dynid_ros.identification import GravityIdentification
from dynid_ros.identified.identified_file import check_same_robot, load_identified
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.document_page import write_document_report
from dynid_ros.report.gravity import write_gravity_report


def report_file(
    model: Path, output: Path, robot: RobotModel | None = None, recordings: Sequence[Recording] = ()
) -> Path:
    """Write the page of `identified.yaml`, and how well it predicts recordings.

    Args:
        model: path of `identified.yaml`.
        output: path of the HTML file.
        robot: the arm; needed for recordings.
        recordings: recordings to predict by links, or those that gravity was fitted to, for the report of the fit.

    Raises:
        IdentifiedFileError: malformed, of another robot, without a section to show, or without a model of torque.
        IdentificationError: a recording is too short, or has no torque.
    """
    output = writable_file(output)
    document = load_identified(model)
    if robot is not None:
        check_same_robot(document, robot)
    if recordings and not {"links", "gravity"} & set(document):
        sections = sorted(set(document) & {"load", "flexible_joints", "torsion", "torque_sensors"})
        raise IdentifiedFileError(
            f"{model}: it holds {', '.join(sections) or 'neither links nor gravity'}, which predicts no torque of a "
            "recording; leave --recording out to see the file"
        )
    with progress(1) as step:
        step("writing the report")
        if recordings and robot is not None and "links" not in document:
            samples = document.get("source", {}).get("settings", {}).get("samples", "static")
            extracted = GravityIdentification(robot, samples=samples).extract(*recordings)
            return write_gravity_report(output, robot, document, extracted)
        return write_document_report(output, document, robot, recordings)
