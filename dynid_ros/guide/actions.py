"""Actions behind the buttons of the guide; each one is a command that a person could type instead.

The actions contain no knowledge about robots. They call services of nodes, set their parameters, start nodes and run
commands of `dynid` through a bench, `RosBench` or `OfflineBench`.
"""

import shlex
import subprocess
import sys
import time
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
"""States of the excitation node during a motion; empty: not received yet."""
MOTION_DONE = "done"
NAMESPACE_PLACE = "{namespace}"
"""Place of the namespace in the commands of an action."""


@dataclass(frozen=True)
class Action:
    """One step of a button: the commands that a person would type, and a function with their effect on a bench."""

    lines: tuple[str, ...]
    do: Callable[[Any], str]

    def commands(self, namespace: str) -> list[str]:
        """Return the lines that a person would type for an arm in a namespace."""
        return [line.replace(NAMESPACE_PLACE, namespace) for line in self.lines]


class OfflineBench:
    """Bench without nodes and joint states."""

    state = None
    problem = ""

    def stop(self) -> str:
        """Return that nothing moves."""
        return "nothing moves: this page has no robot"

    def work(self, period: float, is_watched: bool) -> None:  # noqa: ARG002 - nothing to receive
        """Wait, s."""
        time.sleep(period)


def call(service: str, value: bool | None = None, timeout: float = CALL_TIMEOUT_S) -> Action:
    """Return the call of a SetBool service with a value, or of a Trigger service without one."""
    name = f"ros2 service call {NAMESPACE_PLACE}/{service} std_srvs/srv/"
    line = f"{name}Trigger" if value is None else f"{name}SetBool '{{data: {parameter_text(value)}}}'"
    return Action((line,), lambda bench: bench.call(service, value, timeout))


def set_parameters(node: str, values: Mapping[str, object]) -> Action:
    """Return the change of parameters of a running node."""
    command = f"ros2 param set {NAMESPACE_PLACE}/{node}"
    lines = (f"{command} {name} {shlex.quote(parameter_text(value))}" for name, value in values.items())
    return Action(tuple(lines), lambda bench: bench.services.set_parameters(node, values) or "")


def start_node(node: str, parameters: Mapping[str, object], files: Sequence[Path], namespace: str) -> Action:
    """Return the start of a node, with parameters that override those of the files."""
    texts = {name: parameter_text(value) for name, value in parameters.items()}
    words = ["ros2", "run", "dynid_ros", node, "--ros-args"]
    words += [word for file in files for word in ("--params-file", str(file))]
    words += [word for name, text in texts.items() for word in ("-p", f"{name}:={text}")]
    words += ["-r", f"__ns:={namespace}"] if namespace else []
    return Action((f"{shlex.join(words)} &",), lambda bench: bench.start(node, texts))


def run(*arguments: str) -> Action:
    """Return the run of a program, such as `dynid check …`."""
    return Action((shlex.join(arguments),), lambda _: run_program(arguments))


def move(recorded: bool) -> Action:
    """Return the designed motion from start to end; the recorder stops however it ends, so that the bag is closed."""
    start_recorder = call("recorder/start")
    begin = call("excitation/start", timeout=LONG_CALL_TIMEOUT_S)
    stop_recorder = call("recorder/stop")
    wait = f"ros2 topic echo {NAMESPACE_PLACE}/excitation/state  # until {MOTION_DONE}"

    def do(bench: Any) -> str:
        bench.forget("excitation/state")
        answer = begin.do(bench)
        state = bench.wait_for("excitation/state", lambda state: state not in MOVING_STATES)
        if state != MOTION_DONE:
            raise DynidError(f"the motion ended early: {state}")
        return answer

    def do_recorded(bench: Any) -> str:
        start_recorder.do(bench)
        try:
            do(bench)
        except BaseException:
            with suppress(DynidError):  # the reason for the end of the motion matters more
                stop_recorder.do(bench)
            raise
        return stop_recorder.do(bench)

    if not recorded:
        return Action((*begin.lines, wait), do)
    return Action((*start_recorder.lines, *begin.lines, wait, *stop_recorder.lines), do_recorded)


def run_program(arguments: Sequence[str]) -> str:
    """Run a program of this package, or of ROS, and return its stdout.

    Raises:
        DynidError: the program cannot be run, or reports bad input.
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


def parameter_text(value: object) -> str:
    """Return the value of a parameter as a command line has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(parameter_text, value))}]"
    return str(value)
