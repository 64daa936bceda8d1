"""`dynid validate`: an `identified.yaml` compared with a recording."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_recording, add_robot
from dynid_ros.errors import RecordingError
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.jobs.prediction import predict


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_robot(parser)
    add_recording(parser)
    parser.add_argument("--model", type=Path, required=True, help="identified.yaml")
    parser.add_argument("--output", type=Path, required=True, help="the CSV file")
    add_json(parser)
    parser.set_defaults(command=_validate)


def _validate(options: argparse.Namespace) -> Answer:
    if len(options.recording) > 1:
        raise RecordingError(f"validate takes one recording, not {len(options.recording)}; run it once for each")
    robot = read_robot(options)
    (recording,) = read_recordings(options, robot, options.recording)
    return Answer.of(predict(options.model, robot, recording, options.output))
