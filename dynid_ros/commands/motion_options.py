"""Options of a motion to design: limits of the joints and the workspace of the links."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from numpy.typing import NDArray

from dynid_ros.commands.options import add_repeatable
from dynid_ros.jobs.experiments import CLEARANCE, FLOOR_HEIGHT, LIMIT_DEFAULTS, surroundings
from dynid_ros.jobs.inputs import joint_values
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Declare the limits of the joints."""
    group = parser.add_argument_group("limits, per joint")
    for name, (unit, default) in LIMIT_DEFAULTS.items():
        help_text = f"{name.replace('_', ' ')}, {unit} (default: {default})"
        group.add_argument(option_name(name), metavar="V", help=help_text)
    group.add_argument(
        "--joint-limits",
        type=Path,
        metavar="FILE",
        help="joint_limits.yaml of MoveIt, in place of limits that are not given (default: the URDF's)",
    )


def add_surroundings(parser: argparse.ArgumentParser) -> None:
    """Declare floor, box, obstacles and shapes of the links."""
    group = parser.add_argument_group("workspace")
    group.add_argument(
        "--floor-height",
        type=float,
        default=FLOOR_HEIGHT,
        metavar="M",
        help="height of the floor in the base frame, m; -inf: no floor (default: %(default)s)",
    )
    group.add_argument(
        "--clearance",
        type=float,
        default=CLEARANCE,
        metavar="M",
        help="distance that is kept, m (default: %(default)s)",
    )
    group.add_argument(
        "--box",
        type=float,
        nargs=6,
        metavar=("X", "Y", "Z", "X", "Y", "Z"),
        help="box that the links stay in: lower and upper corner in the base frame, m; -inf, inf: unlimited",
    )
    add_repeatable(group, "obstacles", "FILE", "YAML file of obstacles; repeatable")
    add_repeatable(group, "mesh-directory", "DIR", "folder with the packages of meshes; repeatable")
    add_repeatable(
        group, "allowed-pairs", "LINK:LINK", "pairs of links that may touch, with commas between; repeatable", str
    )
    group.add_argument("--skip-meshes", action="store_true", help="represent links whose mesh cannot be read by lines")


def read_limits(options: argparse.Namespace, robot: RobotModel) -> MotionLimits:
    """Return the limits of the options, completed by those of the file and of the URDF."""
    given = {
        name: value for name, value in per_joint_values(options, robot, LIMIT_DEFAULTS).items() if value is not None
    }
    return MotionLimits.of(robot, **given, joint_limits=options.joint_limits)


def read_surroundings(options: argparse.Namespace, robot: RobotModel) -> Workspace:
    """Return the workspace of the options."""
    return surroundings(
        robot,
        options.urdf or options.dh,
        floor_height=options.floor_height,
        clearance=options.clearance,
        box=options.box,
        obstacles=options.obstacles,
        mesh_directories=options.mesh_directory,
        skip_meshes=options.skip_meshes,
        srdf=options.srdf,
        allowed=[pair for words in options.allowed_pairs for pair in words.split(",") if pair.strip()],
    )


def per_joint_values(options: argparse.Namespace, robot: RobotModel, names: Iterable[str]) -> dict[str, NDArray | None]:
    """Return the values of options by joint; None: not given."""
    return {
        name: None
        if (text := getattr(options, name)) is None
        else joint_values(text, robot.joint_names, option_name(name))
        for name in names
    }


def option_name(name: str) -> str:
    """Return the option of a setting."""
    return f"--{name.replace('_', '-')}"
