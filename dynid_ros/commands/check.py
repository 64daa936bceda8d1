"""`dynid check`: faults of recordings, before anything is fitted to them."""

import argparse

from dynid_ros.commands.options import add_recording, add_robot, read_recordings, read_robot
from dynid_ros.errors import DynidError
from dynid_ros.jobs.judging import judge
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.checks import check


def add(commands: argparse._SubParsersAction) -> None:
    """Add the command."""
    parser = commands.add_parser("check", help="look for faults in a recording before anything is fitted to it")
    add_robot(parser)
    add_recording(parser)
    parser.add_argument(
        "--motion",
        action="store_true",
        help="also ask whether all joints move, as links need it, and how well the motion shows them",
    )
    parser.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    robot = read_robot(options)
    recordings = read_recordings(options, robot, options.recording)
    findings = check(recordings, robot, options.motion)
    for finding in findings:
        print(f"{finding.severity}: {finding}")
    if not findings:
        print(f"{sum(recording.n_samples for recording in recordings)} samples, nothing to complain of")
    faulty = any(finding.severity == "error" for finding in findings)
    if options.motion and not faulty:
        _judge(robot, recordings)
    return 1 if faulty else 0


def _judge(robot: RobotModel, recordings: list[Recording]) -> None:
    try:
        print(judge(robot, recordings).summary())
    except DynidError as error:
        print(f"the motion was not judged: {error}")
