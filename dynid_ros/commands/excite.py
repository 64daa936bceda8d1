"""`dynid excite`: the motion to record, designed within limits and workspace, or judged."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.commands.answers import Answer
from dynid_ros.commands.options import add_effort, add_output, add_reading, add_robot, add_scheduler, scheduler_cluster
from dynid_ros.errors import TrajectoryError
from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.jobs.excitation import excite
from dynid_ros.jobs.experiments import (
    CLEARANCE,
    COUNTS,
    FLEXIBLE,
    FLOOR_HEIGHT,
    KINDS,
    PRIOR,
    MotionSettings,
    flexible_prior,
    owners_of,
    surroundings,
)
from dynid_ros.jobs.inputs import joint_values, read_recordings, read_robot
from dynid_ros.jobs.judging import judge, unseen_friction
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.model.friction_terms import JointFriction, friction_terms
from dynid_ros.recording import Recording
from dynid_ros.settings import Setting, settings_of
from dynid_ros.trajectories import MotionLimits, Trajectory

LIMITS = {
    "acceleration_limits": "rad/s^2 (m/s^2); default: the URDF's (1.2), else needed, or --joint-limits; 2 suits most",
    "velocity_limits": "rad/s (m/s); default: the URDF's",
    "position_lower": "rad (m); default: the URDF's",
    "position_upper": "rad (m); default: the URDF's",
    "jerk_limits": "rad/s^3 (m/s^3); default: none",
    "torque_limits": "N m (N); default: the URDF's",
}
WRITTEN = ("trajectory", "trajectory_csv", "plan", "report")
SETTINGS = {each.name: each for each in settings_of(MotionSettings) if each.name not in (*PRIOR, "offsets")}
SEARCHED = ("fourier", FLEXIBLE)
PER_JOINT = tuple(name for name, each in SETTINGS.items() if each.is_numbers and name != "frequencies")


def add(parser: argparse.ArgumentParser) -> None:
    """Add its options."""
    parser.description = (
        "Design a motion that shows the parameters of an arm, within limits and workspace; or, with "
        "--judge, say whether a motion is enough. Values per joint: one for all, one for each with commas between, or "
        "joint=value,joint=value."
    )
    add_robot(parser)
    parser.add_argument(
        "--motion", choices=(*KINDS, FLEXIBLE), default="fourier", help="%(default)s: all joints at once, for links"
    )
    parser.add_argument("--target", choices=("links", "gravity", "load"), help="what to show; default: by the motion")
    parser.add_argument(
        "--rate", type=float, metavar="HZ", help="samples in trajectory.csv; default: knots at uneven times"
    )
    limits = parser.add_argument_group("limits, per joint")
    for name, what in LIMITS.items():
        limits.add_argument(_option(name), metavar="V", help=what)
    limits.add_argument(
        "--joint-limits",
        type=Path,
        metavar="FILE",
        help="joint_limits.yaml of MoveIt, in place of limits that are not given; default: the URDF's",
    )
    _add_surroundings(parser.add_argument_group("workspace"))
    settings = parser.add_argument_group("settings of the motion", "by default those of its kind")
    for each in SETTINGS.values():
        _add_setting(settings, each)
    add_scheduler(
        settings,
        "address of a scheduler of dask.distributed, whose workers search; --workers: how many (fourier, flexible)",
    )
    settings.add_argument(
        "--friction",
        metavar="TERMS",
        help="terms of friction to show too, as those of identify links: slow reversals with rests follow, at several "
        "speeds (fourier); with --judge: that must be shown",
    )
    flexible = parser.add_argument_group("flexible joints", "what is known beforehand, 30 % off if need be; per joint")
    flexible.add_argument("--model", type=Path, metavar="FILE", help="identified.yaml of flexible joints")
    for each in settings_of(MotionSettings):
        if each.name in PRIOR:
            _add_setting(flexible, each, "; default: as in --model")
    flexible.add_argument("--held", metavar="JOINT=Q", help="joints that brakes hold, with commas between, and where")
    others = parser.add_argument_group("recordings")
    others.add_argument(
        "--recorded", action="append", type=Path, default=[], metavar="R", help="fourier: adds to it; repeatable"
    )
    others.add_argument(
        "--judge",
        nargs="+",
        type=Path,
        metavar="R",
        help="design nothing; say whether these recordings, or a planned trajectory.yaml, show the target. "
        "Exit code 1: not enough",
    )
    add_reading(others)
    add_effort(parser, calibration=False)
    add_output(parser, "folder for trajectory.yaml and .csv, plan.yaml, report.html", required=False)
    parser.set_defaults(command=_excite)


def _add_setting(group: argparse._ArgumentGroup, setting: Setting, otherwise: str = "") -> None:
    """Add an option without a default: each motion has its own."""
    owners = owners_of(setting.name)
    text = setting.description.partition("; nan:")[0].partition("; default:")[0]
    kind: dict[str, Any] = {"metavar": setting.symbol or "V"}
    if setting.choices:
        kind = {"choices": setting.choices}
    elif setting.is_number:
        kind = {"metavar": "N", "type": int if isinstance(setting.default, int) else float}
    text += ", per joint" if setting.name in PER_JOINT else ""
    text += f" ({', '.join(owners)})" if owners else ""
    group.add_argument(_option(setting.name), help=text + otherwise, **kind)


def _add_surroundings(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--floor-height", type=float, default=FLOOR_HEIGHT, help="m (%(default)s); -inf: no floor")
    group.add_argument(
        "--clearance", type=float, default=CLEARANCE, help="least distance between things, m (%(default)s)"
    )
    group.add_argument(
        "--box",
        type=float,
        nargs=6,
        metavar=("X", "Y", "Z", "X", "Y", "Z"),
        help="lower and upper corner of where the links may be, base frame, m; -inf, inf: open",
    )
    group.add_argument("--obstacles", type=Path, action="append", default=[], metavar="FILE", help="YAML; repeatable")
    group.add_argument(
        "--mesh-directory", type=Path, action="append", default=[], metavar="DIR", help="where packages lie; repeatable"
    )
    group.add_argument(
        "--allowed-pairs",
        action="append",
        default=[],
        metavar="LINK:LINK",
        help="links that may touch, several pairs with commas between; repeatable",
    )
    group.add_argument("--skip-meshes", action="store_true", help="take links whose mesh cannot be read for lines")


def _excite(options: argparse.Namespace) -> Answer:
    robot = read_robot(options)
    if options.judge:
        return _judge(options, robot)
    described = options.joint_limits is not None or np.isfinite(robot.limits.acceleration).all()
    for name in ("output",) if described else ("output", "acceleration_limits"):
        if getattr(options, name) is None:
            raise TrajectoryError(f"{_option(name)} is missing; without it no motion can be designed (or give --judge)")
    if options.scheduler is None:
        return _design(options, robot)
    if options.motion not in SEARCHED:
        raise TrajectoryError(f"--scheduler is for motions that are searched for: {' and '.join(SEARCHED)}")
    with scheduler_cluster(options) as workers:
        options.workers = options.workers or min(workers.workers, COUNTS["workers"])
        return _design(options, robot, executor=workers.executor)


def _design(options: argparse.Namespace, robot: RobotModel, **settings: Any) -> Answer:
    recordings = read_recordings(options, robot, options.recorded)
    job = excite(
        options.motion,
        robot,
        _limits(options, robot),
        surroundings(
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
        ),
        options.output,
        target=options.target,
        recorded=recordings,
        joints=_prior(options, robot),
        held=_per_joint(options, robot, ["held"])["held"],
        friction=_friction(options),
        rate=options.rate,
        frequencies=None if options.frequencies is None else joint_values(options.frequencies, (), "frequencies"),
        **_per_joint(options, robot, PER_JOINT),
        **{name: getattr(options, name) for name, each in SETTINGS.items() if not each.is_numbers},
        **settings,
    )
    return Answer(job.summary(), job.document(), dict(zip(WRITTEN, job.files, strict=True)))


def _prior(options: argparse.Namespace, robot: RobotModel) -> FlexibleJoints | None:
    """What is known of flexible joints; None for other motions."""
    given = _per_joint(options, robot, PRIOR)
    if options.motion != FLEXIBLE:
        names = [name for name in (*PRIOR, "model", "held") if getattr(options, name) is not None]
        if names:
            raise TrajectoryError(f"{_option(names[0])} is for --motion {FLEXIBLE}")
        return None
    return flexible_prior(robot, given, options.model)


def _friction(options: argparse.Namespace) -> JointFriction | None:
    """Terms that the motion must show; None: not given."""
    if options.friction is None:
        return None
    terms = friction_terms(options.friction)
    if terms == "auto":
        raise TrajectoryError("--friction is auto; give the terms that are to be shown, as in sliding_length=0.001")
    return terms


def _judge(options: argparse.Namespace, robot: RobotModel) -> Answer:
    """The verdict on a motion; code 1: it is not enough."""
    source: Trajectory | list[Recording]
    if len(options.judge) == 1 and options.judge[0].suffix in (".yaml", ".yml"):
        source = Trajectory.read(options.judge[0])
    else:
        source = read_recordings(options, robot, options.judge)
    is_limited = options.acceleration_limits is not None or options.joint_limits is not None
    limits = _limits(options, robot) if is_limited else None
    noise = _per_joint(options, robot, ["noise"])["noise"]
    with progress(1) as step:
        step("judging the motion")
        quality = judge(robot, source, options.target or "links", noise=noise, limits=limits)
        terms = _friction(options)
        unseen = [] if terms is None else unseen_friction(robot, source, terms)
    document = quality.as_dict() if terms is None else quality.as_dict() | {"unseen_friction": unseen}
    code = 0 if quality.enough and not unseen else 1
    return Answer("\n".join([quality.summary(), *unseen]), document, code=code, kind="judge")


def _limits(options: argparse.Namespace, robot: RobotModel) -> MotionLimits:
    given = {name: value for name, value in _per_joint(options, robot, LIMITS).items() if value is not None}
    return MotionLimits.of(robot, **given, joint_limits=options.joint_limits)


def _per_joint(options: argparse.Namespace, robot: RobotModel, names: Iterable[str]) -> dict[str, NDArray | None]:
    """Values of options, as they were given; None: not given."""
    return {
        name: None if (text := getattr(options, name)) is None else joint_values(text, robot.joint_names, _option(name))
        for name in names
    }


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
