"""`dynid export`: write an `identified.yaml` for controllers, simulators and other programs."""

import argparse
from pathlib import Path

from dynid_ros.commands.options import Answer, add_output, add_recordings, add_robot, add_servos
from dynid_ros.errors import RecordingError
from dynid_ros.export.export import TARGETS, export
from dynid_ros.jobs.inputs import read_recordings, read_robot_of


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = (
        "Write the model for another program, and say what its format cannot hold and the error of that."
    )
    add_robot(parser)
    add_recordings(parser, required=False)
    method = parser.add_argument_group("method")
    method.add_argument("--model", type=Path, required=True, metavar="FILE", help="identified.yaml of the arm")
    method.add_argument(
        "--to",
        choices=list(TARGETS),
        required=True,
        help="target format; c: a header and a source of C99; controller: a ROS 2 package with a controller of "
        "ros2_control; isaac: actuators of Isaac Lab, in Python",
    )
    add_servos(method)
    add_output(
        parser,
        "file to write; the suffix of the format is added to a name without one; of C both files; of a "
        "controller the package's folder",
    )
    parser.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> Answer:
    if len(options.recording) > 1:
        raise RecordingError(f"export judges by one recording, not {len(options.recording)}")
    robot = read_robot_of(options)
    recordings = read_recordings(options, robot, options.recording)
    return Answer.of(export(options.model, robot, options.to, options.output, *recordings, servos=options.servos))
