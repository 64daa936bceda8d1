"""The report of an `identified.yaml`, made anew from the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class ReportJob:
    """What the job leaves: the page."""

    report: Path

    @property
    def files(self) -> dict[str, Path]:
        """The page."""
        return {"report": self.report}

    def summary(self) -> str:
        """Where the page is."""
        return f"wrote {self.report}"

    def document(self) -> dict:
        """Nothing but the file."""
        return {}


def report_file(
    model: Path, output: Path, robot: RobotModel | None = None, recordings: Sequence[Recording] = ()
) -> ReportJob:
    """Write the page of `identified.yaml`, with recordings also how well it predicts them.

    Args:
        model: the file.
        output: the HTML file.
        robot: the arm; needed for recordings.
        recordings: of a gravity identification those that it was fitted to, which gives its report anew; of links any.

    Raises:
        IdentifiedFileError: malformed, of another robot, nothing in it to show, or nothing that predicts a recording.
        IdentificationError: a recording is too short, or has no torque.
    """
    output, document = writable_file(output), load_identified(model)
    if robot is not None:
        check_same_robot(document, robot)
    if recordings and not {"links", "gravity"} & set(document):
        held = ", ".join(sorted(set(document) & {"load", "flexible_joints", "torsion", "torque_sensors"})) or "neither"
        raise IdentifiedFileError(
            f"{model}: it holds {held}, which predicts no torque of a recording; leave --recording out to see the file"
        )
    with progress(1) as step:
        step("writing the report")
        if recordings and robot is not None and "links" not in document:
            samples = document.get("source", {}).get("settings", {}).get("samples", "static")
            extracted = GravityIdentification(robot, samples=samples).extract(*recordings)
            return ReportJob(write_gravity_report(output, robot, document, extracted))
        return ReportJob(write_document_report(output, document, robot, recordings))
