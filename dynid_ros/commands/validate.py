"""`dynid validate` and `dynid report`: an `identified.yaml` beside recordings."""

import argparse
from pathlib import Path

from dynid_ros.commands.options import add_recording, add_robot, read_recordings, read_robot, tell
from dynid_ros.errors import RecordingError
from dynid_ros.jobs.gravity import report_gravity
from dynid_ros.jobs.prediction import predict


def add(commands: argparse._SubParsersAction) -> None:
    """Add both commands."""
    validate = commands.add_parser("validate", help="measured beside predicted torque of every recorded sample")
    _add_inputs(validate)
    validate.add_argument("--output", type=Path, required=True, help="the CSV file")
    validate.add_argument("--json", action="store_true", help="print the agreement as JSON")
    validate.set_defaults(command=_validate)

    report = commands.add_parser("report", help="report.html anew from a gravity identified.yaml and its recordings")
    _add_inputs(report)
    report.add_argument("--output", type=Path, required=True, help="the HTML file")
    report.set_defaults(command=_report)


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    add_recording(parser)
    parser.add_argument("--model", type=Path, required=True, help="identified.yaml")


def _validate(options: argparse.Namespace) -> int:
    if len(options.recording) > 1:
        raise RecordingError(f"validate takes one recording, not {len(options.recording)}; run it once for each")
    robot = read_robot(options)
    (recording,) = read_recordings(options, robot, options.recording)
    tell(predict(options.model, robot, recording, options.output), options)
    return 0


def _report(options: argparse.Namespace) -> int:
    robot = read_robot(options)
    recordings = read_recordings(options, robot, options.recording)
    print(f"wrote {report_gravity(options.model, robot, recordings, options.output)}")
    return 0
