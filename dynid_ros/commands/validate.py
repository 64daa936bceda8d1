"""`dynid validate`: an `identified.yaml` beside a recording."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_recording, add_robot, read_recordings, read_robot
from dynid_ros.errors import RecordingError
from dynid_ros.jobs.prediction import predict


def add(commands: argparse._SubParsersAction) -> None:
    """Add the command."""
    validate = commands.add_parser("validate", help="measured beside predicted torque of every recorded sample")
    add_robot(validate)
    add_recording(validate)
    validate.add_argument("--model", type=Path, required=True, help="identified.yaml")
    validate.add_argument("--output", type=Path, required=True, help="the CSV file")
    add_json(validate)
    validate.set_defaults(command=_validate)


def _validate(options: argparse.Namespace) -> Answer:
    if len(options.recording) > 1:
        raise RecordingError(f"validate takes one recording, not {len(options.recording)}; run it once for each")
    robot = read_robot(options)
    (recording,) = read_recordings(options, robot, options.recording)
    return Answer.of(predict(options.model, robot, recording, options.output))
