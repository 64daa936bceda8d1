"""Nodes in processes of their own, copies of one that has imported them all: imports take longer than all else."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from dynid_ros.nodes import module_of

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        module_of(name)
        for name in ("simulator", "recorder", "gravity_compensation", "excitation", "gravity_identification", "demo")
    ]
)
ENDING = 60.0
"""s."""


def _run(module: str, arguments: list[str], log: Path, domain: str) -> None:
    os.environ["ROS_DOMAIN_ID"] = domain  # that of the process which all are copies of may be another test's
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    with log.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    sys.argv = [module, *arguments]
    import_module(module).main()


class NodeProcess:
    """As `ros2 run dynid_ros <name> --ros-args <words> -p …` has it; it is killed where the block ends."""

    def __init__(self, name: str, parameters: Mapping[str, object] | None = None, *words: str) -> None:
        given = [word for key, value in (parameters or {}).items() for word in ("-p", f"{key}:={value}")]
        handle, log = tempfile.mkstemp(prefix=f"{name}_", suffix=".log")
        os.close(handle)
        self._log = Path(log)
        # the later overrides the earlier
        self._process = self._started(module_of(name), ["--ros-args", *words, *given])

    def _started(self, module: str, arguments: list[str]) -> Any:
        process = CONTEXT.Process(target=_run, args=(module, arguments, self._log, os.environ["ROS_DOMAIN_ID"]))
        process.start()
        return process

    def __enter__(self) -> "NodeProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._log.unlink()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    @property
    def output(self) -> str:
        """What it has printed and logged."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def send_signal(self, number: int) -> None:
        """Nothing, if it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End it, if it runs, and wait until it has."""
        if self.running:
            self.send_signal(signal.SIGKILL)
            self._process.join()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        self._process.join(ENDING)
        assert not self.running, f"it does not end:\n{self.output}"
        return self._process.exitcode


class InterpreterProcess(NodeProcess):
    """By an interpreter of its own: slower to begin and to end, with Python's signals at first and at last."""

    def _started(self, module: str, arguments: list[str]) -> Any:
        with self._log.open("w") as log:
            command = [sys.executable, "-m", "dynid_ros", "node", module.rpartition(".")[2], *arguments]
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it, if it runs, and wait until it has."""
        self._process.kill()
        self._process.wait()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait(ENDING)
