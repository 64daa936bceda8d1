"""`dynid identify servos`: commands and positions, without and with a mass, to what position servos do."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_identification, add_settings
from dynid_ros.identification import ServoIdentification
from dynid_ros.jobs.identification import identify_servos
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.settings import made, settings_of, values_of

SETTINGS = settings_of(ServoIdentification)


def add(servos: argparse.ArgumentParser) -> None:
    """Add its options."""
    add_identification(servos)
    servos.add_argument(
        "--command-topic",
        help="positions told, in a bag: JointState, JointTrajectory, Float64MultiArray or a controller's state",
    )
    servos.add_argument(
        "--recording-with-mass",
        action="append",
        type=Path,
        default=[],
        metavar="R",
        help="the same motion with the reference mass attached; repeatable",
    )
    add_settings(servos, SETTINGS)
    servos.set_defaults(command=_identify)


def _identify(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    identification = made(ServoIdentification, values_of(SETTINGS, vars(options)), robot)
    plain, loaded, others = (
        read_recordings(options, robot, paths)
        for paths in (options.recording, options.recording_with_mass, options.validate)
    )
    return Answer.of(identify_servos(identification, plain, options.output, loaded, others))
