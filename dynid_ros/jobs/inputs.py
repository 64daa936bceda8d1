"""Inputs of commands: robot and recordings from options, sanity check, and parameter file of the launch files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from dynid_ros.checks.all_checks import check
from dynid_ros.checks.finding import Finding
from dynid_ros.errors import DynidError, IdentificationError, ModelError, RecordingError, TrajectoryError
from dynid_ros.files import MEGABYTE, read_yaml, write_atomically
from dynid_ros.identified.identified_file import gravity_of, load_identified
from dynid_ros.identified.torque_sensors import TorqueSensors
from dynid_ros.jobs.screen import progress
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import arm_from_urdf, with_payload
from dynid_ros.model.link_tree import held_positions
from dynid_ros.model.robot import STANDARD_GRAVITY
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention, at_delay

DRIVE_GAINS = ("stiffness", "damping")
"""Options with the gains of impedance-controlled drives, from which torques are computed."""

ROBOT_OPTIONS = {
    "base_link": "base",
    "tip_link": "tip",
    "srdf_file": "srdf",
    "group": "group",
    "held_joints": "hold",
    "gravity": "gravity",
    "payload": "payload",
}
"""Options that describe the arm, by the names of the corresponding parameters of nodes."""
EVERY_NODE = "/**"
NODE_PARAMETERS = "ros__parameters"
PARAMETER_FILE_HEAD = "# Parameters of this arm for the launch files of dynid_ros (params_file), written by dynid\n"


def read_robot(options: argparse.Namespace) -> RobotModel:
    """Read the arm from the options; stderr names its tip if that was not given and is not the only leaf.

    If the file `options.model` has an estimated direction of gravity, it replaces the default of the option.
    """
    if getattr(options, "model", None) is not None:
        options.gravity = gravity_of(load_identified(options.model), options.gravity, STANDARD_GRAVITY)
    held = held_positions(options.hold)
    if options.dh is not None:
        robot = RobotModel.from_dh(options.dh, options.gravity)
        names_links = held or options.srdf or options.group
        if names_links or options.base not in (None, robot.base) or options.tip not in (None, robot.tip):
            raise ModelError(
                f"{options.dh}: a DH table has no links to name; leave out --base, --tip, --hold, --srdf and --group"
            )
        return with_payload(robot, options.payload)
    if options.srdf and not options.group and not hasattr(options, "allowed_pairs"):
        raise ModelError("--srdf is for --group here; name the group of the SRDF whose joints are the arm")
    robot, remark = arm_from_urdf(
        options.urdf,
        options.tip,
        options.base,
        options.gravity,
        held=held,
        payload=options.payload,
        srdf=options.srdf,
        group=options.group,
    )
    if remark:
        print(f"dynid: {remark} (--tip)", file=sys.stderr)
    return robot


def given_robot(options: argparse.Namespace) -> RobotModel | None:
    """Read the arm from the options; return None if they name no arm."""
    return None if options.urdf is None and options.dh is None else read_robot(options)


def read_robot_of(options: argparse.Namespace) -> RobotModel:
    """Read the arm from the options; defaults of base, tip and held joints are those of the file `options.model`."""
    section = load_identified(options.model)["robot"]
    if not options.group:
        options.base = options.base or section.get("base")
        options.tip = options.tip or section.get("tip")
    options.hold = options.hold or [f"{joint}={at}" for joint, at in (section.get("held") or {}).items()]
    return read_robot(options)


def read_recordings(
    options: argparse.Namespace,
    robot: RobotModel | None,
    paths: Sequence[Path],
    joint_names: Sequence[str] | None = None,
    *,
    residual: bool = False,
    readings: bool = False,
) -> list[Recording]:
    """Read recordings of the arm's joints; without an arm, the joints are those of the first recording.

    Args:
        options: options of the command.
        robot: the arm; None: unknown.
        paths: paths of the recordings.
        joint_names: joints of recordings without an arm; None: all joints of the first recording.
        residual: whether torques without gravity, which the driver has subtracted, are accepted.
        readings: whether currents are accepted without gains, as uncalibrated readings.
    """
    names = joint_names if robot is None else robot.joint_names
    kind = getattr(options, "effort_convention", "torque")  # servos have no torque
    drives = {name: joint_gains(options, name, names) for name in DRIVE_GAINS if hasattr(options, "command_delay")}
    convention = EffortConvention(
        kind,
        joint_gains(options, "motor_gains", names),
        residual=residual,
        readings=readings,
        delay=getattr(options, "command_delay", None),
        **drives,
    )
    calibration = getattr(options, "torque_sensors", None)
    sensors = None
    if calibration is not None:
        if robot is None:
            raise RecordingError("--torque-sensors needs --urdf: a calibration is of one arm")
        sensors = TorqueSensors.of_document(load_identified(calibration), robot)
    recordings: list[Recording] = []
    with progress(len(paths)) as step:
        for path in paths:
            step(f"reading {path}")
            recordings.append(
                Recording.read(
                    path,
                    joint_names=names,
                    joint_states_topic=options.joint_states_topic,
                    torque_topic=getattr(options, "torque_topic", None),
                    link_states_topic=getattr(options, "link_states_topic", None),
                    command_topic=getattr(options, "command_topic", None),
                    effort_convention=convention,
                    receive_time=getattr(options, "receive_time", False),
                )
            )
            names = recordings[0].joint_names
        if robot is not None and any(part.delay_is_unknown for part in recordings):
            step("estimating the delay of the commands")
            recordings = _with_common_delay(options, recordings, robot)
    return recordings if sensors is None else [sensors.correct(recording) for recording in recordings]


def _with_common_delay(options: argparse.Namespace, recordings: list[Recording], robot: RobotModel) -> list[Recording]:
    """Return recordings whose torques allow for the delay of the commands.

    The delay is estimated once, from the first recordings that a command reads. If their motion does not reveal it, it
    stays unknown: poses do not need it, and fits of motion refuse such recordings.
    """
    from dynid_ros.identification.servo.command_delay import estimate_command_delay  # noqa: PLC0415 - for impedance

    if getattr(options, "common_delay", None) is None:
        try:
            arm = [part.select(robot.joint_names) for part in recordings]
            options.common_delay = estimate_command_delay(arm, robot)
        except IdentificationError as error:
            print(f"dynid: {error}", file=sys.stderr)
            return recordings
    return [at_delay(part, options.common_delay) if part.delay_is_unknown else part for part in recordings]


def joint_gains(options: argparse.Namespace, name: str, joint_names: Sequence[str] | None) -> list[float] | None:
    """Return the gains (n,) of an option such as --motor-gains; None if the option was not given."""
    if getattr(options, name, None) is None:
        return None
    gains = joint_values(",".join(getattr(options, name)), joint_names or (), f"--{name.replace('_', '-')}")
    count = len(joint_names) if joint_names and len(gains) == 1 else 1
    return gains.tolist() * count


def checked(
    recordings: Sequence[Recording], robot: RobotModel | None, motion: bool = False, *, torque: bool = True
) -> tuple[Finding, ...]:
    """Run the sanity check on recordings that are fitted together, and return the warnings.

    Args:
        recordings: recordings that are fitted together.
        robot: the arm; None: leave out the checks that need a model, as for torques in other units than N m.
        motion: whether the fit needs motion, see `check`.
        torque: whether torques are checked.

    Raises:
        RecordingError: the check finds an error; the message is that of the first error.
    """
    if torque:
        findings = check(recordings, robot, motion)
    else:
        without = [replace(part, torque=np.full_like(part.torque, np.nan)) for part in recordings]
        findings = [finding for finding in check(without, robot, motion) if finding.kind != "missing torque"]
    for finding in findings:
        if finding.severity == "error":
            raise RecordingError(str(finding))
    return tuple(findings)


def check_apart(fitted: Sequence[Recording], unseen: Sequence[Recording]) -> None:
    """Refuse validation on recordings that are fitted.

    Raises:
        RecordingError: a recording is to be fitted and to be predicted.
    """
    for recording in unseen:
        if any(np.array_equal(recording.position, other.position) for other in fitted):
            raise RecordingError(
                f"{recording.source}: it is to be fitted and to be validated on, which would only show how well it was "
                "fitted; validate on another recording"
            )


def joint_values(text: str, joint_names: Sequence[str], what: str) -> NDArray:
    """Parse values (1,) for all joints, or (n,): numbers separated by commas, or `joint=value` for some joints.

    Args:
        text: text to parse.
        joint_names: names of the n joints.
        what: name of the values, for messages.

    Returns:
        Values; NaN, which means the default, for a joint that is not named.

    Raises:
        TrajectoryError: a word is not a number, names an unknown joint, or repeats a joint.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not any("=" in word for word in words):
        return np.array([_number(word, what) for word in words])
    values = np.full(len(joint_names), np.nan)
    for word in words:
        name, _, value = (part.strip() for part in word.rpartition("="))
        if name not in joint_names:
            raise TrajectoryError(
                f"{what}: '{word}' names an unknown joint; expected joint=value of {', '.join(joint_names)}"
            )
        if not np.isnan(values[joint_names.index(name)]):
            raise TrajectoryError(f"{what}: joint '{name}' is given twice")
        values[joint_names.index(name)] = _number(value, what)
    return values


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise TrajectoryError(
            f"{what}: '{text}' is not a number; expected one for all joints, one for each with commas between, or "
            "joint=value"
        ) from error


def robot_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters by which nodes describe the arm, from the options of a command; None: not given."""
    values = {name: getattr(options, option) for name, option in ROBOT_OPTIONS.items()}
    return values | {"held_joints": ",".join(options.hold) or None, "payload": list(options.payload) or None}


def update_parameter_file(path: Path, values: Mapping[str, Any], section: str = EVERY_NODE) -> Path:
    """Add parameters of nodes to a ROS parameter file, and return its path; values of None are left out.

    Args:
        path: ROS parameter file; it is created if it is missing.
        values: values by the name of the parameter.
        section: name of the nodes, such as "/**/excitation".

    Raises:
        DynidError: the file is no parameter file, or has comments that would be lost.
    """
    content: dict[str, Any] = {}
    if path.exists():
        content = _read(path)
    given = {name: _plain(value) for name, value in values.items() if value is not None}
    content.setdefault(section, {}).setdefault(NODE_PARAMETERS, {}).update(given)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return write_atomically(path, PARAMETER_FILE_HEAD + text)


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a ROS parameter file."""
    try:
        content = read_yaml(path, MEGABYTE)
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DynidError(f"{path}: {getattr(error, 'strerror', None) or error}; give another --parameters") from error
    lines = text.removeprefix(PARAMETER_FILE_HEAD).splitlines()
    if any(line.lstrip().startswith("#") for line in lines):
        raise DynidError(f"{path}: its comments would be lost; give another file to --parameters")
    sections = content.values() if isinstance(content, dict) else [None]
    if not all(isinstance(one, dict) and isinstance(one.get(NODE_PARAMETERS, {}), dict) for one in sections):
        raise DynidError(f"{path}: no ROS parameter file; give another file to --parameters")
    return content


def _plain(value: Any) -> Any:
    """Return a value as plain data: a path as its absolute text, an array as a list of numbers."""
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, (np.ndarray, Sequence)) and not isinstance(value, str):
        return [_plain(entry) for entry in np.asarray(value).tolist()]
    return value
