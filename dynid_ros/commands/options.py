"""Options that several commands share, and what they stand for."""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from dynid_ros.identification.identified_file import load_identified
from dynid_ros.identification.torque_sensor_correction import TorqueSensors
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, as all errors are said."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        # So that lists such as -1,-2 are values as -1 is, not options.
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf)")

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"dynid: error: {message}; see {self.prog} --help\n")


class Job(Protocol):
    """What is done, to be told."""

    def summary(self) -> str:
        """Lines of text."""

    def document(self) -> dict:
        """Plain data."""


def add_robot(parser: argparse.ArgumentParser) -> None:
    """Options of the arm."""
    parser.add_argument("--urdf", type=Path, required=True)
    parser.add_argument("--base", help="link that the chain starts from; default: the root")
    parser.add_argument("--tip", help="link that the chain ends at; default: the only leaf")
    parser.add_argument(
        "--gravity",
        type=float,
        nargs=3,
        default=(0.0, 0.0, -9.80665),
        metavar=("X", "Y", "Z"),
        help="in the base link's frame, m/s^2",
    )


def add_recording(parser: argparse.ArgumentParser) -> None:
    """The recordings of a command, and how they are read."""
    parser.add_argument(
        "--recording", action="append", type=Path, required=True, metavar="R", help="bag folder, .csv, .npz; repeatable"
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
    """The arm."""
    return RobotModel.from_urdf(options.urdf, options.tip, options.base, options.gravity)


def read_recordings(options: argparse.Namespace, robot: RobotModel, paths: Sequence[Path]) -> list[Recording]:
    """Recordings of its joints."""
    convention = EffortConvention(options.effort_convention, options.motor_gains)
    calibration = getattr(options, "torque_sensors", None)
    sensors = None if calibration is None else TorqueSensors.of_document(load_identified(calibration), robot)
    recordings = [
        Recording.read(
            path,
            joint_names=robot.joint_names,
            joint_states_topic=options.joint_states_topic,
            torque_topic=options.torque_topic,
            effort_convention=convention,
        )
        for path in paths
    ]
    return recordings if sensors is None else [sensors.correct(recording) for recording in recordings]


def tell(job: Job, options: argparse.Namespace) -> None:
    """Print what was done, as JSON if that is asked for."""
    print(json.dumps(job.document(), ensure_ascii=False, indent=1) if options.json else job.summary())
