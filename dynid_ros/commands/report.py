"""`dynid report`: write the page of an `identified.yaml`."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_output, add_recordings, add_robot
from dynid_ros.errors import RecordingError
from dynid_ros.jobs.inputs import read_recordings, read_robot_of
from dynid_ros.jobs.report import report_file
from dynid_ros.jobs.screen import Screen


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
    if options.urdf is None and options.dh is None:
        if options.recording:
            raise RecordingError("--recording needs --urdf: without the arm no torque can be predicted")
        return _answer(report_file(options.model, options.output))
    robot = read_robot_of(options)
    recordings = read_recordings(options, robot, options.recording)
    return _answer(report_file(options.model, options.output, robot, recordings))


def _answer(page: Path) -> Answer:
    return Answer(Screen(["report written"], files=[page]), {}, {"report": page})
