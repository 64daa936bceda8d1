"""`dynid view`: show a recording in the viewer of Rerun, with the torque that a model predicts."""

import argparse
from pathlib import Path

from dynid_ros.commands.options import Answer, add_output, add_recordings, add_robot
from dynid_ros.errors import RecordingError
from dynid_ros.jobs.inputs import read_recordings, read_robot, read_robot_of
from dynid_ros.jobs.prediction import view
from dynid_ros.jobs.screen import Screen


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = (
        "Show positions, velocities, commands and torques of a recording, and the moving arm, in the viewer of Rerun "
        "(pip install rerun-sdk)."
    )
    add_robot(parser)
    add_recordings(parser)
    method = parser.add_argument_group("method")
    method.add_argument("--model", type=Path, metavar="FILE", help="identified.yaml whose torques are shown too")
    add_output(parser, "Rerun file (.rrd) to write (default: open the viewer)", required=False)
    parser.set_defaults(command=_view)


def _view(options: argparse.Namespace) -> Answer:
    if len(options.recording) > 1:
        raise RecordingError(f"view shows one recording, not {len(options.recording)}; run it once for each")
    robot = read_robot(options) if options.model is None else read_robot_of(options)
    (recording,) = read_recordings(options, robot, options.recording)
    document = {"recording": recording.source}
    file = view(robot, recording, options.model, options.output)
    if file is None:
        return Answer(Screen([f"{recording.source} is in the viewer"]), document)
    return Answer(Screen([f"to open it: rerun {file}"], files=[file]), document, {"view": file})
