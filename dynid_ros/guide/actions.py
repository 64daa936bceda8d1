"""Actions behind the buttons of the guide, each a command that a person could type instead, and who may run them.

The actions contain no knowledge about robots. They call services of nodes, set their parameters, start nodes and run
commands of `dynid` through a bench, `RosBench` or `OfflineBench`.
"""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
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


@dataclass
class Pages:
    """Numbers of the open pages, and of the page that acts; all others watch until one of them takes over."""

    acting: int | None = None
    _open: set[int] = field(default_factory=set)

    @property
    def is_watched(self) -> bool:
        """Whether a browser shows a page."""
        return bool(self._open)

    def open(self, page: int) -> None:
        """Add a page; it acts if no other page does."""
        self._open.add(page)
        self.acting = page if self.acting is None else self.acting

    def close(self, page: int) -> None:
        """Remove a page. Pages that watch go on watching, even if the closed page acted."""
        self._open.discard(page)
        self.acting = None if self.acting == page else self.acting

    def take_over(self, page: int) -> None:
        """Let an open page act; the page that acted before watches."""
        self.acting = page if page in self._open else self.acting

    def may_act(self, page: int | None) -> bool:
        """Return whether a page acts; None is this program itself, which may always change its own widgets."""
        return page is None or page == self.acting


@dataclass
class Runner:
    """Runner of the actions of the button with a label, one button at a time, and of no action after STOP."""

    bench: Any
    label: str = ""
    _stops: int = 0
    _lock: Any = field(default_factory=Lock)

    def run(self, label: str, actions: Sequence[Action]) -> str:
        """Run actions in their order and return the last answer.

        STOP may come while an action begins, before the node has received its request. The node is then stopped again.

        Raises:
            DynidError: another button's actions run, an action fails, or STOP was pressed.
        """
        with self._lock:
            if self.label:
                raise DynidError(f"'{self.label}' is running; wait for its end, or press STOP")
            self.label = label
            stops = self._stops
        answer = ""
        try:
            for action in actions:
                try:
                    answer = action.do(self.bench)
                finally:
                    if self._stops != stops:
                        self.bench.stop()
                if self._stops != stops:
                    raise DynidError(f"'{label}' was ended by STOP")
            return answer
        finally:
            self.label = ""

    def stop(self) -> str:
        """Stop the arm at once, and let no further action of the button begin."""
        self._stops += 1
        return self.bench.stop()


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
