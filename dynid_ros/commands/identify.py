"""`dynid identify`: recordings in, `identified.yaml` and `report.html` out."""

import argparse
from functools import partial

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_identification, add_settings
from dynid_ros.jobs.identification import KINDS, identify
from dynid_ros.jobs.inputs import read_recordings, read_robot
from dynid_ros.settings import made, settings_of, values_of


def add(parser: argparse.ArgumentParser) -> None:
    """Add what there is to identify."""
    kinds = parser.add_subparsers(required=True, metavar="what")
    for name, kind in KINDS.items():
        kinds.add_parser(name, help=kind.purpose, module=kind.command, add=partial(add_kind, name))


def add_kind(name: str, parser: argparse.ArgumentParser) -> None:
    """Options that all have, and the estimator's settings."""
    add_identification(parser)
    add_settings(parser, settings_of(KINDS[name].load("estimator")))
    parser.set_defaults(command=partial(_identify, name))


def _identify(name: str, options: argparse.Namespace) -> Answer:
    robot, estimator = read_robot(options), KINDS[name].load("estimator")
    identification = made(estimator, values_of(settings_of(estimator), vars(options)), robot)
    recordings = read_recordings(options, robot, options.recording)
    others = read_recordings(options, robot, options.validate)
    return Answer.of(identify(name, identification, recordings, options.output, others))
