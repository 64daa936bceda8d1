"""`dynid excite`: design the motion to record within limits and workspace, or judge a motion."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.commands.motion_options import (
    add_limits,
    add_surroundings,
    option_name,
    per_joint_values,
    read_limits,
    read_surroundings,
)
from dynid_ros.commands.options import (
    Answer,
    add_effort,
    add_output,
    add_parameters,
    add_reading,
    add_repeatable,
    add_robot,
    add_scheduler,
    scheduler_cluster,
)
from dynid_ros.errors import TrajectoryError
from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.jobs.excitation import excite
from dynid_ros.jobs.experiments import (
    EXPERIMENT_KINDS,
    FLEXIBLE,
    LIMIT_DEFAULTS,
    MAX_COUNTS,
    PRIOR,
    MotionSettings,
    flexible_prior,
    owners_of,
)
from dynid_ros.jobs.inputs import joint_values, read_recordings, read_robot, robot_parameters, update_parameter_file
from dynid_ros.jobs.judging import judge, quality_screen, unseen_friction
from dynid_ros.jobs.screen import progress
from dynid_ros.model import RobotModel
from dynid_ros.model.friction_terms import JointFriction, friction_terms
from dynid_ros.recording import Recording
from dynid_ros.settings import Setting, settings_of
from dynid_ros.trajectories import Trajectory

FILE_NAMES = ("trajectory", "trajectory_csv", "plan", "report")
SETTINGS = {each.name: each for each in settings_of(MotionSettings) if each.name not in (*PRIOR, "offsets")}
SEARCHED_MOTIONS = ("fourier", FLEXIBLE)
SETTINGS_PER_JOINT = tuple(name for name, each in SETTINGS.items() if each.is_numbers and name != "frequencies")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.description = (
        "Design a motion that shows the parameters of an arm, within limits and workspace; or, with "
        "--judge, say whether a motion is enough. Values per joint: one for all, one for each with commas between, or "
        "joint=value,joint=value. Exit code 1: the motion is not enough."
    )
    add_robot(parser)
    method = parser.add_argument_group("method")
    method.add_argument(
        "--motion",
        choices=(*EXPERIMENT_KINDS, FLEXIBLE),
        default="fourier",
        help="kind of motion (default: %(default)s, all joints at once, for links)",
    )
    method.add_argument(
        "--target", choices=("links", "gravity", "load"), help="parameters to show (default: by the kind of motion)"
    )
    method.add_argument(
        "--rate", type=float, metavar="HZ", help="samples per second in trajectory.csv (default: knots at uneven times)"
    )
    add_limits(parser)
    add_surroundings(parser)
    settings = parser.add_argument_group("settings of the motion", "defaults are those of its kind")
    for each in SETTINGS.values():
        _add_setting(settings, each)
    add_scheduler(settings, "address of a scheduler of dask.distributed, whose workers search (fourier, flexible)")
    settings.add_argument(
        "--friction",
        metavar="TERMS",
        help="friction terms to show too, as in identify links: slow reversals with rests follow, at several speeds "
        "(fourier); with --judge: terms that must be shown",
    )
    flexible = parser.add_argument_group(
        "flexible joints", "values by joint that are known beforehand; an error of 30 % is fine"
    )
    flexible.add_argument(
        "--model", type=Path, metavar="FILE", help="identified.yaml of flexible joints (default: none)"
    )
    for each in settings_of(MotionSettings):
        if each.name in PRIOR:
            _add_setting(flexible, each, " (default: as in --model)")
    flexible.add_argument(
        "--held", metavar="JOINT=Q", help="joints that brakes hold and their positions, with commas between"
    )
    others = parser.add_argument_group("recordings")
    add_repeatable(others, "recorded", "R", "recording that a fourier motion adds to; repeatable")
    others.add_argument(
        "--judge",
        nargs="+",
        type=Path,
        metavar="R",
        help="recordings, or a planned trajectory.yaml, to judge instead of a new motion; exit code 1: not enough",
    )
    add_reading(others)
    add_effort(parser, calibration=False, commands=False)
    add_parameters(parser, "robot, limits and workspace")
    add_output(parser, "folder for trajectory.yaml and .csv, plan.yaml, report.html", required=False)
    parser.set_defaults(command=_excite)


def _add_setting(group: argparse._ArgumentGroup, setting: Setting, otherwise: str = "") -> None:
    """Declare the option of a setting; each kind of motion has a default for it."""
    owners = owners_of(setting.name)
    text = setting.description.partition("; nan:")[0].partition("; default:")[0]
    kind: dict[str, Any] = {"metavar": setting.symbol or "V"}
    if setting.choices:
        kind = {"choices": setting.choices}
    elif setting.is_number:
        kind = {"metavar": "N", "type": int if isinstance(setting.default, int) else float}
    text += ", per joint" if setting.name in SETTINGS_PER_JOINT else ""
    text += f" ({', '.join(owners)})" if owners else ""
    if not setting.is_numbers and setting.default is not None:
        otherwise = f" (default: {setting.default})"
    group.add_argument(option_name(setting.name), help=text + otherwise, **kind)


def _excite(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    if options.judge:
        return _judge(options, robot)
    described = options.joint_limits is not None or np.isfinite(robot.limits.acceleration).all()
    for name in ("output",) if described else ("output", "acceleration_limits"):
        if getattr(options, name) is None:
            raise TrajectoryError(
                f"{option_name(name)} is missing; without it no motion can be designed (or give --judge)"
            )
    if options.scheduler is None:
        return _design(options, robot)
    if options.motion not in SEARCHED_MOTIONS:
        raise TrajectoryError(f"--scheduler is for motions that are searched for: {' and '.join(SEARCHED_MOTIONS)}")
    with scheduler_cluster(options) as workers:
        options.workers = options.workers or min(workers.workers, MAX_COUNTS["workers"])
        return _design(options, robot, executor=workers.executor)


def _design(options: argparse.Namespace, robot: RobotModel, **settings: Any) -> Answer:
    recordings = read_recordings(options, robot, options.recorded)
    job = excite(
        options.motion,
        robot,
        read_limits(options, robot),
        read_surroundings(options, robot),
        options.output,
        target=options.target,
        recorded=recordings,
        joints=_prior(options, robot),
        held=per_joint_values(options, robot, ["held"])["held"],
        friction=_friction(options),
        rate=options.rate,
        frequencies=None if options.frequencies is None else joint_values(options.frequencies, (), "frequencies"),
        **per_joint_values(options, robot, SETTINGS_PER_JOINT),
        **{name: getattr(options, name) for name, each in SETTINGS.items() if not each.is_numbers},
        **settings,
    )
    files = dict(zip(FILE_NAMES, job.files, strict=True))
    screen = job.screen()
    if options.parameters is not None:
        update_parameter_file(options.parameters, robot_parameters(options))
        written = update_parameter_file(options.parameters, _parameters(options, robot), "/**/excitation")
        screen = replace(screen, files=[*screen.files, written])
    return Answer(screen, job.document(), files, code=0 if job.is_enough else 1)


def _parameters(options: argparse.Namespace, robot: RobotModel) -> dict[str, Any]:
    """Return the parameters of the excitation node that say the same as the options."""
    if len(options.obstacles) > 1:
        raise TrajectoryError("--parameters takes one file of --obstacles, as the node does; join them")
    return {
        **per_joint_values(options, robot, LIMIT_DEFAULTS),
        "joint_limits_file": options.joint_limits,
        "obstacles_file": options.obstacles[0] if options.obstacles else None,
        "floor_height": options.floor_height,
        "clearance": options.clearance,
        "box_lower": options.box[:3] if options.box else None,
        "box_upper": options.box[3:] if options.box else None,
        "allowed_pairs": [pair for words in options.allowed_pairs for pair in words.split(",")] or None,
        "mesh_directories": list(map(str, options.mesh_directory)) or None,
    }


def _prior(options: argparse.Namespace, robot: RobotModel) -> FlexibleJoints | None:
    """Return prior values of flexible joints; None for other motions."""
    given = per_joint_values(options, robot, PRIOR)
    if options.motion != FLEXIBLE:
        names = [name for name in (*PRIOR, "model", "held") if getattr(options, name) is not None]
        if names:
            raise TrajectoryError(f"{option_name(names[0])} is for --motion {FLEXIBLE}")
        return None
    return flexible_prior(robot, given, options.model)


def _friction(options: argparse.Namespace) -> JointFriction | None:
    """Return the friction terms that the motion must show; None: not given."""
    if options.friction is None:
        return None
    terms = friction_terms(options.friction)
    if terms == "auto":
        raise TrajectoryError(
            "--friction is auto; give the terms that the motion must show, as in sliding_length=0.001"
        )
    return terms


def _judge(options: argparse.Namespace, robot: RobotModel) -> Answer:
    """Judge a motion; exit code 1: it does not show all parameters."""
    source: Trajectory | list[Recording]
    if len(options.judge) == 1 and options.judge[0].suffix in (".yaml", ".yml"):
        source = Trajectory.read(options.judge[0])
    else:
        source = read_recordings(options, robot, options.judge)
    is_limited = options.acceleration_limits is not None or options.joint_limits is not None
    limits = read_limits(options, robot) if is_limited else None
    noise = per_joint_values(options, robot, ["noise"])["noise"]
    with progress(1) as step:
        step("judging the motion")
        quality = judge(robot, source, options.target or "links", noise=noise, limits=limits)
        terms = _friction(options)
        unseen = [] if terms is None else unseen_friction(robot, source, terms)
    document = quality.as_dict() if terms is None else quality.as_dict() | {"unseen_friction": unseen}
    code = 0 if quality.enough and not unseen else 1
    return Answer(quality_screen(quality, unseen), document, code=code, kind="judge")
