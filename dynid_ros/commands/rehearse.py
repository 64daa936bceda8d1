"""`dynid rehearse`: try an experiment on a simulation of the user's arm, and say what it will reach."""

import argparse
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.commands.motion_options import add_limits, add_surroundings, read_limits, read_surroundings
from dynid_ros.commands.options import Answer, add_output, add_robot, add_settings
from dynid_ros.errors import ModelError
from dynid_ros.jobs.inputs import read_robot
from dynid_ros.rehearsal.rehearsal_settings import RehearsalSettings
from dynid_ros.settings import made, settings_of, values_of

DEFAULT_ACCELERATION = "2"
"""Acceleration limit where neither options nor URDF give one, rad/s^2 or m/s^2."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = (
        "Rehearse an experiment on the arm of a URDF in MuJoCo, whose links, friction, sensors and load are not those "
        "that the identification assumes: design, record, check, identify gravity, links and a load, predict, export, "
        "and compare with the truth. Exit code 1: the experiment would not serve."
    )
    add_robot(parser)
    add_limits(parser)
    add_surroundings(parser)
    method = parser.add_argument_group("method")
    add_settings(method, settings_of(RehearsalSettings))
    method.add_argument(
        "--friction-file",
        type=Path,
        metavar="FILE",
        help="identified.yaml of links with the friction of the simulated joints (default: drawn)",
    )
    add_output(parser, "folder for report.html, truth.yaml, recordings and results")
    parser.set_defaults(command=_rehearse)


def _rehearse(options: argparse.Namespace) -> Answer:
    began = time.monotonic()
    robot = read_robot(options)
    if options.acceleration_limits is None and options.joint_limits is None:
        is_known = np.isfinite(robot.limits.acceleration).all()
        options.acceleration_limits = None if is_known else DEFAULT_ACCELERATION
    settings = made(RehearsalSettings, values_of(settings_of(RehearsalSettings), vars(options)))
    limits = read_limits(options, robot)
    workspace = read_surroundings(options, robot)
    try:
        # MuJoCo is an optional dependency, so these modules are imported only on request.
        experiment, verdict = (import_module(f"dynid_ros.rehearsal.{name}") for name in ("experiment", "verdict"))
    except ModuleNotFoundError as error:
        raise ModelError(f"rehearse needs {error.name}, which is not installed: pip install {error.name}") from error
    friction: Any = None
    if options.friction_file is not None:
        friction = experiment.KnownFriction.read(options.friction_file, robot)
    rehearsed = experiment.perform_rehearsal(robot, limits, workspace, options.output, settings, friction=friction)
    rehearsal = verdict.Rehearsal(rehearsed, time.monotonic() - began)
    return Answer.of(verdict.with_report(rehearsal))
