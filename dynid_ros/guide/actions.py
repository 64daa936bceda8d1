"""Actions behind the buttons of the guide; each one is a command that a person could type instead.

The actions contain no knowledge about robots: they call services of nodes, set their parameters, start nodes and run
commands of `dynid`, by way of a bench, `RosBench` or `OfflineBench`.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid_ros.errors import DynidError

CALL_TIMEOUT_S = 60.0
LONG_CALL_TIMEOUT_S = 900.0
"""Longest wait for services that search or fit."""
MOVING_STATES = ("", "approaching", "running")
"""States of the excitation node during a motion; empty: not known yet."""
MOTION_DONE = "done"
NAMESPACE_PLACE = "{namespace}"
"""Place of the namespace in the commands of an action."""


@dataclass(frozen=True)
class Action:
    """One step of a button.

    Attributes:
        lines: commands that do the same.
        do: does it on a bench and returns the answer.
    """

    lines: tuple[str, ...]
    do: Callable[[Any], str]

    def commands(self, namespace: str) -> list[str]:
        """Return the lines that a person would type for an arm in a namespace."""
        return [line.replace(NAMESPACE_PLACE, namespace) for line in self.lines]


def call(service: str, value: bool | None = None, timeout: float = CALL_TIMEOUT_S) -> Action:
    """Return the call of a SetBool service with a value, or of a Trigger service without one."""
    name = f"ros2 service call {NAMESPACE_PLACE}/{service} std_srvs/srv/"
    line = f"{name}Trigger" if value is None else f"{name}SetBool '{{data: {str(value).lower()}}}'"
    return Action((line,), lambda bench: bench.call(service, value, timeout))


def set_parameters(node: str, values: Mapping[str, object]) -> Action:
    """Return the change of parameters of a running node."""
    lines = (
        f"ros2 param set {NAMESPACE_PLACE}/{node} {name} {shlex.quote(_yaml(value))}" for name, value in values.items()
    )
    return Action(tuple(lines), lambda bench: bench.set_parameters(node, values))


def start_node(node: str, parameters: Mapping[str, object], files: Sequence[Path], namespace: str) -> Action:
    """Return the start of a node, with parameters that override those of the files."""
    words = ["ros2", "run", "dynid_ros", node, "--ros-args"]
    for file in files:
        words += ["--params-file", str(file)]
    for name, value in parameters.items():
        words += ["-p", f"{name}:={_yaml(value)}"]
    words += ["-r", f"__ns:={namespace}"] if namespace else []
    return Action((f"{shlex.join(words)} &",), lambda bench: bench.start(node, parameters))


def run(*arguments: str) -> Action:
    """Return the run of a program, such as `dynid check …`."""
    return Action((shlex.join(arguments),), lambda bench: bench.run(arguments))


def move(recorded: bool) -> Action:
    """Return the designed motion from start to end; the recorder stops however it ends, so that the bag is closed."""
    around = [call("recorder/start"), call("recorder/stop")] if recorded else []
    lines = [
        *(around[0].lines if around else ()),
        *call("excitation/start").lines,
        f"ros2 topic echo {NAMESPACE_PLACE}/excitation/state  # until {MOTION_DONE}",
        *(around[1].lines if around else ()),
    ]

    def do(bench: Any) -> str:
        if around:
            around[0].do(bench)
        try:
            bench.forget("excitation/state")
            answer = bench.call("excitation/start", None, LONG_CALL_TIMEOUT_S)
            state = bench.wait_for("excitation/state", lambda state: state not in MOVING_STATES)
            if state != MOTION_DONE:
                raise DynidError(f"the motion ended early: {state}")
        except BaseException:
            with suppress(DynidError):  # the reason that the motion failed matters more
                if around:
                    around[1].do(bench)
            raise
        return around[1].do(bench) if around else answer

    return Action(tuple(lines), do)


def run_program(arguments: Sequence[str]) -> str:
    """Run a program of this package, or of ROS, and return its stdout.

    Raises:
        DynidError: it cannot be run, or reports bad input.
    """
    command = [sys.executable, "-m", "dynid_ros", *arguments[1:]] if arguments[0] == "dynid" else list(arguments)
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        text = f"{arguments[0]}: cannot be run ({error.strerror}); run it in a terminal with ROS 2"
        raise DynidError(text) from error
    if result.returncode > 1 or (result.returncode and not result.stdout):
        lines = [line for line in result.stderr.splitlines() if line.strip()] or ["no message"]
        raise DynidError(lines[-1].removeprefix("dynid: error: "))
    return result.stdout


def _yaml(value: object) -> str:
    """Return a parameter's value as a command line has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_yaml, value))}]"
    return str(value)
