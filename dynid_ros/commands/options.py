"""Options that several commands share, and what they stand for."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.model.flange import arm_from_urdf
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention


def add_json(parser: argparse.ArgumentParser) -> None:
    """How the answer is given."""
    parser.add_argument(
        "--json", action="store_true", help="answer as one JSON document on stdout; text goes to stderr"
    )


def add_robot(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Options of the arm."""
    parser.add_argument("--urdf", type=Path, required=required)
    parser.add_argument("--base", help="link that the chain starts from; default: the root")
    parser.add_argument("--tip", help="link that the chain ends at; default: the flange")
    parser.add_argument(
        "--gravity",
        type=float,
        nargs=3,
        default=(0.0, 0.0, -9.80665),
        metavar=("X", "Y", "Z"),
        help="in the base link's frame, m/s^2",
    )


def add_recording(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """The recordings of a command, and how they are read."""
    parser.add_argument(
        "--recording",
        action="append",
        type=Path,
        required=required,
        default=[],
        metavar="R",
        help="bag folder, .csv, .npz; repeatable",
    )
    add_reading(parser)
    parser.add_argument(
        "--torque-sensors", type=Path, metavar="FILE", help="identified.yaml whose calibration corrects the recordings"
    )


def add_reading(parser: argparse._ActionsContainer) -> None:
    """How recordings are read."""
    parser.add_argument("--joint-states-topic", help="in a bag that has several")
    parser.add_argument("--torque-topic", help="separate joint torques in a bag; default: effort of the joint states")
    parser.add_argument(
        "--effort-convention",
        choices=("torque", "motor_current", "gravity_compensated"),
        default="torque",
        help="what the recorded effort is",
    )
    parser.add_argument("--motor-gains", type=float, nargs="+", metavar="K", help="N m per unit of effort, per joint")


def read_robot(options: argparse.Namespace) -> RobotModel:
    """The arm; where its tip was not named and is not the only leaf, stderr says what it is."""
    robot, remark = arm_from_urdf(options.urdf, options.tip, options.base, options.gravity)
    if remark:
        print(f"dynid: {remark} (--tip)", file=sys.stderr)
    return robot


def read_recordings(options: argparse.Namespace, robot: RobotModel, paths: Sequence[Path]) -> list[Recording]:
    """Recordings of its joints."""
    convention = EffortConvention(options.effort_convention, options.motor_gains)
    calibration = getattr(options, "torque_sensors", None)
    sensors = None if calibration is None else TorqueSensors.of_document(load_identified(calibration), robot)
    recordings = []
    with progress(len(paths)) as step:
        for path in paths:
            step(f"reading {path}")
            recordings.append(
                Recording.read(
                    path,
                    joint_names=robot.joint_names,
                    joint_states_topic=options.joint_states_topic,
                    torque_topic=options.torque_topic,
                    link_states_topic=getattr(options, "link_states_topic", None),
                    effort_convention=convention,
                )
            )
    return recordings if sensors is None else [sensors.correct(recording) for recording in recordings]
