"""`dynid report`: write the page of an `identified.yaml`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dynid_ros.commands.options import Answer, add_output, add_recordings, add_robot
from dynid_ros.errors import IdentifiedFileError, RecordingError
from dynid_ros.files import writable_file
from dynid_ros.identification import GravityIdentification
from dynid_ros.identified.identified_file import check_same_robot, file_of, load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.jobs.inputs import read_recordings, read_robot_of
from dynid_ros.jobs.screen import Screen, progress
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.flexible_joints import flexible_part
from dynid_ros.report.gravity import gravity_part, write_gravity_report
from dynid_ros.report.link_quality import TorqueComparison
from dynid_ros.report.links import LinkEvidence, link_part
from dynid_ros.report.load import load_part
from dynid_ros.report.result_page import ResultPart, result_page
from dynid_ros.report.servos import servo_part
from dynid_ros.report.torque_sensors import torque_sensor_part
from dynid_ros.report.torsion import torsion_part

PARTS: dict[str, Callable[[Mapping[str, Any]], ResultPart]] = {
    "load": load_part,
    "gravity": gravity_part,
    "flexible_joints": flexible_part,
    "torsion": torsion_part,
    "torque_sensors": torque_sensor_part,
    "servos": servo_part,
}
"""Makers of the parts of the page by section of the document, in the order of the page; links come first."""


def write_document_report(
    path: str | Path, document: dict, robot: RobotModel | None = None, recordings: Sequence[Recording] = ()
) -> Path:
    """Write the page of a document, with recordings that the identified links predict; see `report_file`."""
    parts = []
    is_of_links = bool(document.get("links")) or ("base_parameters" in document and "gravity" in document)
    if is_of_links:
        evidence = None
        if robot is not None and recordings:
            model = link_model(document, robot)
            comparisons = [TorqueComparison.from_recording(model, recording) for recording in recordings]
            evidence = LinkEvidence(model, given=comparisons)
        parts.append(link_part(document, robot, evidence))
    parts += [part(document) for section, part in PARTS.items() if document.get(section)]
    if not parts:
        expected = ", ".join(["links", *PARTS])
        raise IdentifiedFileError(
            f"{file_of(document)}: it holds nothing that can be shown; expected one of {expected}"
        )
    return result_page(document, *parts).write(path)


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
        RecordingError: a recording lacks a joint of the robot.
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


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = (
        "Write the page of an identified.yaml. With --urdf and --recording, it has the report of a gravity fit, or "
        "shows how well links predict the recordings."
    )
    add_robot(parser, required=False)
    add_recordings(parser, required=False)
    method = parser.add_argument_group("method")
    method.add_argument("--model", type=Path, required=True, metavar="FILE", help="identified.yaml to show")
    add_output(parser, "HTML file")
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> Answer:
    robot = None if options.urdf is None and options.dh is None else read_robot_of(options)
    if robot is None and options.recording:
        raise RecordingError("--recording needs --urdf: without the arm no torque can be predicted")
    recordings = [] if robot is None else read_recordings(options, robot, options.recording)
    page = report_file(options.model, options.output, robot, recordings)
    return Answer(Screen(["report written"], files=[page]), {}, {"report": page})
