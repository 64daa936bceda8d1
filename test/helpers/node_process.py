"""Run nodes as forks of one process that has imported them all, because imports take longest."""

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
END_TIMEOUT_S = 60.0
"""Time in s for a process to end."""


def _run(module: str, arguments: list[str], log: Path, domain: str) -> None:
    os.environ["ROS_DOMAIN_ID"] = domain  # the domain of the forked process may belong to another test
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
    """Process like `ros2 run dynid_ros <name> --ros-args <words> -p …`, killed at the end of the `with` block."""

    def __init__(self, name: str, parameters: Mapping[str, object] | None = None, *words: str) -> None:
        assignments = [word for key, value in (parameters or {}).items() for word in ("-p", f"{key}:={value}")]
        handle, log = tempfile.mkstemp(prefix=f"{name}_", suffix=".log")
        os.close(handle)
        self._log = Path(log)
        # Later arguments override earlier ones.
        self._process = self._start(module_of(name), ["--ros-args", *words, *assignments])

    def _start(self, module: str, arguments: list[str]) -> Any:
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
        """Whether the process runs."""
        return self._process.is_alive()

    @property
    def output(self) -> str:
        """Standard output and log of the process."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Kill the process if it runs, and wait for its end."""
        if self.running:
            self.send_signal(signal.SIGKILL)
            self._process.join()

    def wait(self) -> int:
        """Wait for the end of the process and return its exit code."""
        self._process.join(END_TIMEOUT_S)
        assert not self.running, f"the process does not end:\n{self.output}"
        return self._process.exitcode


class InterpreterProcess(NodeProcess):
    """Process with its own interpreter: slower at both ends, with Python's signal handling throughout."""

    def _start(self, module: str, arguments: list[str]) -> Any:
        with self._log.open("w") as log:
            command = [sys.executable, "-m", "dynid_ros", "node", module.rpartition(".")[2], *arguments]
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process if it runs, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def wait(self) -> int:
        """Wait for the end of the process and return its exit code."""
        return self._process.wait(END_TIMEOUT_S)
