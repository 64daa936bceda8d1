"""Options that several commands share, and what they stand for."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dynid_ros.settings import Setting


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


def add_identification(parser: argparse.ArgumentParser) -> None:
    """Add options of an identification whose result predicts joint torques."""
    add_robot(parser)
    add_recording(parser)
    parser.add_argument(
        "--validate", action="append", type=Path, default=[], metavar="R", help="recording to predict, not to fit"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder for identified.yaml and report.html")
    add_json(parser)


def add_settings(parser: argparse._ActionsContainer, settings: Iterable[Setting]) -> None:
    """Add an option for each setting; one that is on by default is switched off by `--no-…`."""
    for each in settings:
        words = each.name.replace("_", "-")
        if isinstance(each.default, bool):
            name, action = (f"--no-{words}", "store_false") if each.default else (f"--{words}", "store_true")
            parser.add_argument(name, action=action, dest=each.name, help=each.description)
            continue
        standard = "" if each.default is None else "; default: %(default)s"
        text = each.description + standard
        if each.choices:
            parser.add_argument(f"--{words}", choices=each.choices, default=each.default, help=text)
        else:
            kind: dict[str, Any] = {"type": float} if each.is_number else {}
            default = ",".join(each.default) if each.is_list else each.default
            parser.add_argument(f"--{words}", default=default, metavar=each.symbol or None, help=text, **kind)
