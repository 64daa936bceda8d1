"""Options that several commands share, and what they stand for."""

import argparse
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dynid_ros.executors import Cluster, TlsFiles, cluster
from dynid_ros.settings import Setting


def add_json(parser: argparse.ArgumentParser) -> None:
    """How the answer is given."""
    parser.add_argument(
        "--json", action="store_true", help="answer as one JSON document on stdout; text goes to stderr"
    )


def add_scheduler(parser: argparse._ActionsContainer, help_text: str) -> None:
    """Add the address of a dask cluster and its certificates."""
    parser.add_argument("--scheduler", metavar="ADDRESS", help=help_text)
    parser.add_argument(
        "--tls",
        type=Path,
        nargs=len(TlsFiles._fields),
        metavar=("CA", "CERT", "KEY"),
        help="PEM files for a scheduler at tls://…: certificate of the authority, own certificate, own key. Without "
        "them whoever reaches the cluster can run code on it",
    )


def scheduler_cluster(options: argparse.Namespace) -> AbstractContextManager[Cluster]:
    """Connect to the cluster of the options."""
    return cluster(options.scheduler, None if options.tls is None else TlsFiles(*options.tls))


def add_robot(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Options of the arm."""
    arm = parser.add_mutually_exclusive_group(required=required)
    arm.add_argument(
        "--urdf",
        type=Path,
        metavar="FILE",
        help="URDF of the arm; a .xacro is expanded by xacro, which runs the expressions in it",
    )
    arm.add_argument("--dh", type=Path, metavar="FILE", help="YAML: rows of a, alpha, d, theta (m, rad) and type")
    parser.add_argument("--base", help="link that the chain starts from; default: the root")
    parser.add_argument(
        "--tip", help="link that the chain ends at; several with commas between, or all: a tree; default: the flange"
    )
    parser.add_argument(
        "--srdf",
        type=Path,
        metavar="FILE",
        help="SRDF of MoveIt, for --group; excite also takes from it links that may touch (disable_collisions)",
    )
    parser.add_argument("--group", help="group of the SRDF that is the arm, in place of --base and --tip")
    parser.add_argument(
        "--hold",
        action="append",
        default=[],
        metavar="JOINT=AT",
        help="joint that does not move, and where it is, rad or m; repeatable",
    )
    parser.add_argument(
        "--gravity",
        type=float,
        nargs=3,
        default=(0.0, 0.0, -9.80665),
        metavar=("X", "Y", "Z"),
        help="in the base link's frame, m/s^2",
    )
    parser.add_argument(
        "--payload",
        type=float,
        nargs="+",
        default=(),
        metavar="X",
        help="what the arm carries that the URDF lacks: mass, centre (3) and, if known, inertia about it (6: "
        "xx xy xz yy yz zz); kg, m, in the axes of the tip",
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
        "--receive-time",
        action="store_true",
        help="times at which a bag received its messages, in place of the drivers' time stamps; default: the stamps",
    )
    parser.add_argument(
        "--effort-convention",
        choices=("torque", "motor_current", "gravity_compensated"),
        default="torque",
        help="what the recorded effort is",
    )
    parser.add_argument(
        "--motor-gains",
        nargs="+",
        metavar="K",
        help="N m per unit of effort: one for all joints, one for each with commas or blanks between, or joint=value",
    )


def add_links(parser: argparse._ActionsContainer) -> None:
    """Where a bag has the links' positions."""
    parser.add_argument("--link-states-topic", help="JointState with the links' positions in a bag, by joint")


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
            text = (each.off or f"switch off: {each.description}") if each.default else each.description
            parser.add_argument(name, action=action, dest=each.name, help=text)
            continue
        text = each.description + ("" if each.default in (None, "", ()) else "; default: %(default)s")
        kind: dict[str, Any] = {"default": each.default, "metavar": each.symbol or None}
        if each.is_number:
            kind["type"] = float
        if each.choices:
            kind = {"choices": each.choices, "default": each.default}
        elif each.parts:
            kind = {"nargs": len(each.parts), "metavar": each.parts, "default": each.default}
            kind |= {"action": "append", "default": []} if each.is_texts else {"type": float}
            text += "; repeatable" if each.is_texts else ""
        elif each.is_texts:
            kind["default"] = ",".join(each.default)
            text = f"{each.description}, with commas between; default: %(default)s"
        parser.add_argument(f"--{words}", help=text, **kind)
