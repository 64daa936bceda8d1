"""`dynid identify`: recordings in, `identified.yaml` and `report.html` out; one command for each kind of the table."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dynid_ros.commands.options import (
    Answer,
    add_commands,
    add_effort,
    add_link_states,
    add_output,
    add_reading,
    add_repeatable,
    add_robot,
    add_settings,
)
from dynid_ros.errors import IdentificationError
from dynid_ros.jobs.inputs import given_robot, read_recordings, read_robot
from dynid_ros.jobs.kinds import FITTED, KINDS, Kind
from dynid_ros.recording.effort import GRAVITY_COMPENSATED
from dynid_ros.settings import values_of


def add(parser: argparse.ArgumentParser) -> None:
    """Declare a command for each kind."""
    kinds = parser.add_subparsers(required=True, metavar="what")
    for name, kind in KINDS.items():
        if kind.purpose:
            kinds.add_parser(name, help=kind.purpose, add=partial(add_kind, name))


def add_kind(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the options of a kind: robot, recordings by role, effort, method, files, output."""
    kind, special = KINDS[name], SPECIAL.get(name, Special())
    parser.description = special.description or f"Identify {kind.purpose}."
    add_robot(parser, required=special.needs_robot)
    recordings = parser.add_argument_group("recordings")
    for role in kind.roles:
        add_repeatable(recordings, role.option, "R", role.help, required=role.required)
    add_reading(recordings)
    if kind.checks.torque:
        add_effort(parser, calibration=name != "torque-sensors")
    method = parser.add_argument_group("method")
    for file in kind.files:
        method.add_argument(f"--{file.name}", type=Path, metavar="FILE", help=file.help)
    add_settings(method, kind.settings())
    special.add(parser, recordings, method)
    add_output(parser, f"folder for {', '.join(kind.writes)}")
    parser.set_defaults(command=partial(_identify, name))


def _identify(name: str, options: argparse.Namespace) -> Answer:
    from dynid_ros.jobs.run import run  # noqa: PLC0415  # not needed for help

    kind, special = KINDS[name], SPECIAL.get(name, Special())
    prepared = special.prepare(kind, options)
    recordings = {}
    names = None
    for role in kind.roles:
        paths = getattr(options, role.option.replace("-", "_"))
        recordings[role.name] = read_recordings(options, prepared.robot, paths, names, **prepared.reading)
        if role.name == FITTED.name and recordings[role.name]:
            names = recordings[role.name][0].joint_names
    recordings |= prepared.replace(recordings)
    return Answer.of(run(prepared.kind or name, prepared.estimator, recordings, options.output))


class Prepared(NamedTuple):
    """Estimator of a command and how its recordings are read.

    Attributes:
        robot: the arm; None: it is not needed.
        estimator: estimator for `run`.
        reading: keywords of `read_recordings`.
        kind: kind of the run where an option chooses another one.
        replace: returns recordings, by role, that replace those that were read.
    """

    robot: Any
    estimator: Any
    reading: dict[str, bool] = {}  # noqa: RUF012  # never changed
    kind: str = ""
    replace: Callable[[dict], dict] = lambda _: {}


def _prepare(kind: Kind, options: argparse.Namespace) -> Prepared:
    robot = read_robot(options)
    return Prepared(robot, kind.build(robot, _values(kind, options)))


def _values(kind: Kind, options: argparse.Namespace) -> dict[str, Any]:
    return values_of(kind.settings(), vars(options))


def _prepare_load(kind: Kind, options: argparse.Namespace) -> Prepared:
    if options.model is not None and options.unloaded:
        raise IdentificationError("--model and --unloaded both give the arm without the load; leave one out")
    is_compensated = options.effort_convention == GRAVITY_COMPENSATED and options.source == "torque"
    declared = None
    if is_compensated:  # the payload is known to the driver, not to the URDF
        declared = options.payload
        options.payload = ()
    robot = read_robot(options)
    inputs = {"model": options.model, "tare": options.tare, "declared": declared}
    estimator = kind.build(robot, _values(kind, options), **inputs)
    estimator.check_inputs({"unloaded": options.unloaded})
    return Prepared(robot, estimator, {"residual": is_compensated})


def _add_calibration(_parser: argparse.ArgumentParser, _recordings: Any, method: argparse._ActionsContainer) -> None:
    help_text = "take the masses of the URDF as known; then no mass is needed"
    method.add_argument("--known-masses", action="store_true", help=help_text)


def _prepare_calibration(kind: Kind, options: argparse.Namespace) -> Prepared:
    if options.model is not None and options.known_masses:
        raise IdentificationError("--model and --known-masses both give the gravity of the arm; leave one out")
    robot = read_robot(options)
    currents = options.effort_convention == "motor_current" and options.motor_gains is None
    inputs = {"model": options.model, "known_masses": options.known_masses, "currents": currents}
    return Prepared(robot, kind.build(robot, _values(kind, options), **inputs), {"readings": currents})


def _add_cameras(parser: argparse.ArgumentParser, recordings: argparse._ActionsContainer, _method: Any) -> None:
    add_link_states(recordings)
    cameras = parser.add_argument_group("motion capture", "markers or rigid bodies on the links, see docs/flexible.md")
    cameras.add_argument("--mocap", action="store_true", help="take the links from the poses in the recordings")
    add_repeatable(
        cameras,
        "mocap-file",
        "FILE",
        "export of the camera system (Motive, Vicon, Qualisys, TRC, plain CSV), one for each --recording",
    )
    add_repeatable(
        cameras,
        "markers",
        "TOPIC=LINK",
        "link that carries a body or marker; without =LINK it is found; repeatable (default: all, found)",
        str,
    )
    cameras.add_argument("--mocap-unit", choices=("m", "cm", "mm"), help="unit of lengths in files that name none")
    cameras.add_argument(
        "--mocap-rate", type=float, metavar="HZ", help="frames per second, Hz (default: the rate in the file)"
    )


def _prepare_flexible(kind: Kind, options: argparse.Namespace) -> Prepared:
    from dynid_ros.jobs.flexible_joints import choose_run, marker_links, with_camera_files  # noqa: PLC0415

    robot = given_robot(options)
    mocap = options.mocap or bool(options.mocap_file)
    if options.markers and not mocap:
        raise IdentificationError(
            "--markers says where markers are, but no camera is used: give --mocap or --mocap-file"
        )
    name, estimator = choose_run(robot, _values(kind, options), mocap=mocap, markers=marker_links(options.markers))
    if not options.mocap_file:
        return Prepared(robot, estimator, kind=name)
    files = (options.mocap_file, options.mocap_unit, options.mocap_rate)
    return Prepared(
        robot, estimator, replace=lambda given: {FITTED.name: with_camera_files(given[FITTED.name], *files)}
    )


class Special(NamedTuple):
    """Part of a command that is not in the table of kinds.

    Attributes:
        add: adds options to the parser, its group of recordings and its group of the method.
        prepare: makes the estimator from the kind and the options.
    """

    add: Callable[..., None] = lambda *_groups: None
    prepare: Callable[[Kind, argparse.Namespace], Prepared] = _prepare
    description: str = ""
    needs_robot: bool = True


SPECIAL = {
    "load": Special(prepare=_prepare_load),
    "flexible": Special(
        _add_cameras,
        _prepare_flexible,
        "Recordings hold positions and torques of the motors, seen from the links, and the positions of the links: "
        "link_position of encoders behind the gears, a topic, or motion capture. Only --torsion needs no --urdf.",
        needs_robot=False,
    ),
    "torque-sensors": Special(_add_calibration, _prepare_calibration),
    "servos": Special(lambda _parser, recordings, _method: add_commands(recordings)),
}
