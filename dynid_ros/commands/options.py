"""Options that several commands share, and answers: text for people, with `--json` one document on stdout."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.checks.finding import Finding
from dynid_ros.executors import Cluster, TlsFiles, cluster
from dynid_ros.jobs.screen import Screen
from dynid_ros.settings import Setting

VERSIONS: Mapping[str, int] = {}
"""Versions of documents by the name of their schema, if a key was removed or changed its meaning; the others are 1."""
ERROR_SCHEMA = "error"


@dataclass(frozen=True)
class Answer:
    """Text, data and exit code of a command.

    Attributes:
        screen: lines for people.
        document: data for programs.
        files: written files by name.
        code: exit code; 0: success, 1: the result is incomplete or not good enough, see the screen.
        kind: kind of document of a command with several, added to the name of its schema.
    """

    screen: Screen
    document: Mapping[str, Any]
    files: Mapping[str, Path] = field(default_factory=dict)
    code: int = 0
    kind: str = ""

    @classmethod
    def of(cls, job: Any) -> Answer:
        """Return the answer of a job with `files`, `document` and `screen`, or `summary` if that is short.

        The exit code is 1 if the job has `missing` parameters.
        """
        missing = tuple(getattr(job, "missing", ()))
        document = {**job.document(), "missing": list(missing)}
        screen = job.screen() if hasattr(job, "screen") else Screen.from_lines(job.summary())
        return cls(screen, document, job.files, int(bool(missing)))

    def as_json(self, command: str) -> str:
        """Return the document with the keys that all documents have."""
        files = {name: str(path) for name, path in self.files.items()}
        common = {
            "schema": schema(f"{command} {self.kind}"),
            "command": command,
            "exit_code": self.code,
            "files": files,
        }
        return as_json({**common, **self.document})


def error_as_json(command: str, error: BaseException, code: int) -> str:
    """Return the document of a command that failed."""
    text = " ".join(str(error).split()) or type(error).__name__
    common = {"schema": schema(ERROR_SCHEMA), "command": command, "exit_code": code}
    return as_json({**common, "error": text, "kind": type(error).__name__})


def schema(words: str) -> str:
    """Return name and version of the document of a command, such as dynid-identify-links/1."""
    name = "-".join(["dynid", *words.split()])
    return f"{name}/{VERSIONS.get(name, 1)}"


def finding_document(finding: Finding) -> dict[str, str]:
    """Return a finding as plain data."""
    return {name: getattr(finding, name) for name in ("severity", "kind", "where", "message", "fix")}


def as_json(document: object) -> str:
    """Return JSON (RFC 8259); NaN and infinite numbers are null."""
    return json.dumps(_plain(document), ensure_ascii=False, indent=1, allow_nan=False)


@contextmanager
def only_document_on_stdout() -> Iterator[None]:
    """Redirect stdout to stderr, of this process and of its children."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


EFFORT_KINDS = ("torque", "motor_current", "gravity_compensated")
IMPEDANCE_KIND = "impedance"


def add_robot(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Declare the options of the arm."""
    group = parser.add_argument_group("robot")
    arm = group.add_mutually_exclusive_group(required=required)
    arm.add_argument(
        "--urdf",
        type=Path,
        metavar="FILE",
        help="URDF of the robot, or .xacro (needs the xacro package, which runs the expressions in it)",
    )
    arm.add_argument(
        "--dh", type=Path, metavar="FILE", help="YAML table of DH parameters: rows of a, alpha, d, theta (m, rad), type"
    )
    group.add_argument("--base", metavar="LINK", help="link that the chain starts from (default: the root)")
    group.add_argument(
        "--tip",
        metavar="LINK",
        help="link that the chain ends at; several with commas between, or all, for a tree (default: the flange)",
    )
    group.add_argument(
        "--srdf",
        type=Path,
        metavar="FILE",
        help="SRDF of MoveIt with the group; excite also takes from it the links that may touch (disable_collisions)",
    )
    group.add_argument("--group", metavar="NAME", help="group of the SRDF, in place of --base and --tip")
    add_repeatable(group, "hold", "JOINT=Q", "joint that does not move and its position, rad or m; repeatable", str)
    group.add_argument(
        "--gravity",
        type=float,
        nargs=3,
        default=(0.0, 0.0, -9.80665),
        metavar=("X", "Y", "Z"),
        help="gravity in the frame of the base link, m/s^2 (default: 0 0 -9.80665)",
    )
    group.add_argument(
        "--payload",
        type=float,
        nargs="+",
        default=(),
        metavar="X",
        help="payload that the URDF lacks: mass, centre of mass (3) and, if known, inertia about it (6: xx xy xz yy yz "
        "zz), in the axes of the tip; kg, m (default: none)",
    )


def add_recordings(parser: argparse.ArgumentParser, required: bool = True) -> argparse._ArgumentGroup:
    """Declare the recordings of a command and the options to read them; return their group."""
    group = parser.add_argument_group("recordings")
    add_repeatable(group, "recording", "R", "recording: bag folder, .csv or .npz; repeatable", required=required)
    add_reading(group)
    add_effort(parser)
    return group


def add_repeatable(
    group: argparse._ActionsContainer,
    name: str,
    metavar: str,
    help_text: str,
    kind: type = Path,
    *,
    required: bool = False,
) -> None:
    """Declare an option that takes a value of a kind and may be repeated."""
    more: dict[str, Any] = {"type": kind, "required": required, "metavar": metavar, "help": help_text}
    group.add_argument(f"--{name}", action="append", default=[], **more)


def add_reading(group: argparse._ActionsContainer) -> None:
    """Declare the options for reading bags."""
    group.add_argument(
        "--joint-states-topic",
        metavar="TOPIC",
        help="topic of the joint states (default: the only one in the bag, or /joint_states)",
    )
    group.add_argument(
        "--receive-time",
        action="store_true",
        help="take the times at which the bag received the messages (default: their time stamps)",
    )


def add_effort(parser: argparse.ArgumentParser, *, calibration: bool = True, commands: bool = True) -> None:
    """Declare the options of the recorded effort.

    Args:
        parser: parser of the command.
        calibration: whether torque sensors may be corrected.
        commands: whether torques may be computed from the commands of drives.
    """
    group = parser.add_argument_group("effort")
    group.add_argument(
        "--torque-topic", metavar="TOPIC", help="topic of the joint torques (default: effort of the joint states)"
    )
    group.add_argument(
        "--effort-convention",
        choices=(*EFFORT_KINDS, IMPEDANCE_KIND) if commands else EFFORT_KINDS,
        default=EFFORT_KINDS[0],
        help="meaning of the recorded effort"
        + ("; impedance: torques follow from the commands of drives in MIT mode" if commands else "")
        + " (default: %(default)s)",
    )
    group.add_argument(
        "--motor-gains",
        nargs="+",
        metavar="K",
        help="gains of motor currents, N m per unit: one for all joints, one for each with commas or blanks between, "
        "or joint=value",
    )
    if commands:
        add_drives(group)
    if calibration:
        group.add_argument(
            "--torque-sensors",
            type=Path,
            metavar="FILE",
            help="identified.yaml of a calibration of the torque sensors, which corrects the recordings",
        )


def add_drives(group: argparse._ActionsContainer) -> None:
    """Declare the commands of drives in MIT mode, and their gains."""
    add_commands(group)
    for name, unit, error in (("stiffness", "N m/rad (N/m)", "position"), ("damping", "N m s/rad (N s/m)", "velocity")):
        group.add_argument(
            f"--{name}",
            nargs="+",
            metavar="K",
            help=f"gains of the {error} error of drives in MIT mode, {unit}: one for all joints, one for each with "
            "commas or blanks between, or joint=value (default: those in the commands)",
        )
    group.add_argument(
        "--command-delay",
        type=float,
        metavar="S",
        help="time after which a command acts, s (default: estimated from the motion)",
    )


def add_commands(group: argparse._ActionsContainer) -> None:
    """Declare the topic of the commands."""
    group.add_argument(
        "--command-topic",
        metavar="TOPIC",
        help="topic of the commands in a bag: JointState, JointTrajectory, Float64MultiArray (positions) or a "
        "controller's state",
    )


def add_link_states(group: argparse._ActionsContainer) -> None:
    """Declare the topic of the links' positions."""
    group.add_argument(
        "--link-states-topic", metavar="TOPIC", help="topic (JointState) of the links' positions in a bag, by joint"
    )


def add_output(parser: argparse.ArgumentParser, help_text: str = "", *, required: bool = True) -> None:
    """Declare the output of results and of the answer; an empty `help_text`: the command writes no files."""
    group = parser.add_argument_group("output")
    if help_text:
        group.add_argument("--output", type=Path, required=required, metavar="PATH", help=help_text)
    group.add_argument("--verbose", action="store_true", help="print all parameters and remarks, not one screen")
    group.add_argument("--json", action="store_true", help="answer as one JSON document on stdout; text goes to stderr")


def add_servos(group: argparse._ArgumentGroup) -> None:
    """Declare the file of the servos that drive an exported or simulated arm."""
    group.add_argument(
        "--servos", type=Path, metavar="FILE", help="identified.yaml of the servos of MJCF; default: that of --model"
    )


def add_parameters(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the parameter file for the launch files, which a command adds its answers to."""
    parser.add_argument_group("launch files").add_argument(
        "--parameters", type=Path, metavar="FILE", help=f"params_file of the launch files, to which to add {what}"
    )


def add_scheduler(group: argparse._ActionsContainer, help_text: str) -> None:
    """Declare the address of a dask cluster and its certificates."""
    group.add_argument("--scheduler", metavar="ADDRESS", help=help_text)
    group.add_argument(
        "--tls",
        type=Path,
        nargs=len(TlsFiles._fields),
        metavar=("CA", "CERT", "KEY"),
        help="PEM files for a scheduler at tls://: certificate of the authority, own certificate, own key; without "
        "them, everyone who reaches the cluster can run code on it",
    )


def scheduler_cluster(options: argparse.Namespace) -> AbstractContextManager[Cluster]:
    """Connect to the cluster of the options."""
    return cluster(options.scheduler, None if options.tls is None else TlsFiles(*options.tls))


def add_settings(group: argparse._ActionsContainer, settings: Iterable[Setting]) -> None:
    """Declare an option for each setting; a setting that is on by default is switched off by `--no-…`."""
    for setting in settings:
        words = setting.name.replace("_", "-")
        if isinstance(setting.default, bool):
            name = f"--no-{words}" if setting.default else f"--{words}"
            action = "store_false" if setting.default else "store_true"
            text = setting.off if setting.default else setting.description
            group.add_argument(name, action=action, dest=setting.name, help=text)
            continue
        group.add_argument(f"--{words}", help=setting_help(setting), **_argument(setting))


def option_words(action: argparse.Action, value: Any) -> list[str]:
    """Return an option with a value as on the command line; the value is plain data, as in a file.

    A boolean gives the option alone. A list repeats an option that may be repeated, or gives it several values.
    """
    option = action.option_strings[-1]
    if isinstance(value, bool):
        return [option]
    if not isinstance(value, list):
        return [f"{option}={value}"]
    if isinstance(action, argparse._AppendAction):
        return [word for entry in value for word in _option_with(option, entry)]
    return _option_with(option, value)


def _option_with(option: str, value: Any) -> list[str]:
    return [option, *map(str, value)] if isinstance(value, list) else [f"{option}={value}"]


def setting_help(setting: Setting) -> str:
    """Return the help of a setting with its default in parentheses."""
    text, _, default = setting.description.partition("; default: ")
    if setting.is_texts:
        text += "; repeatable" if setting.parts else ", with commas between"
    if not default and setting.default not in (None, "", ()):
        default = "%(default)s"
        if isinstance(setting.default, tuple) and (setting.parts or setting.is_numbers):
            default = " ".join(f"{value:g}" for value in setting.default)
    return f"{text} (default: {default})" if default else text


def _argument(setting: Setting) -> dict[str, Any]:
    """Return how argparse reads the value of a setting."""
    metavar = setting.symbol or setting.name.rpartition("_")[2].upper()
    if setting.choices:
        return {"choices": setting.choices, "default": setting.default}
    if setting.is_number:
        return {"type": float, "metavar": metavar, "default": setting.default}
    if setting.is_numbers:
        return {"nargs": "+", "type": float, "metavar": metavar, "default": setting.default}
    if setting.parts and setting.is_texts:
        return {"nargs": len(setting.parts), "metavar": setting.parts, "action": "append", "default": []}
    if setting.parts:
        return {"nargs": len(setting.parts), "metavar": setting.parts, "type": float, "default": setting.default}
    default = ",".join(setting.default) if setting.is_texts else setting.default
    return {"metavar": metavar, "default": default}
