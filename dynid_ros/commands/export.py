"""`dynid export`: an `identified.yaml` for controllers, simulators and other programs."""

import argparse
from pathlib import Path

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_json, add_robot
from dynid_ros.export.export import TARGETS, export
from dynid_ros.jobs.inputs import read_robot_of


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.description = "Says what the target cannot hold of the model, and the error that this makes."
    parser.add_argument("--model", type=Path, required=True, help="identified.yaml")
    add_robot(parser)
    parser.add_argument("--to", choices=list(TARGETS), required=True, help="c: a header and a source of C99")
    parser.add_argument("--output", type=Path, required=True, help="the file; of C the name of both")
    add_json(parser)
    parser.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> Answer:
    return Answer.of(export(options.model, read_robot_of(options), options.to, options.output))
