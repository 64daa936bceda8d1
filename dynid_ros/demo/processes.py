"""Processes of the demo's nodes, which end with the process that started them."""

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from dynid_ros.errors import DynidError
from dynid_ros.nodes import module_of

STOP_TIMEOUT_S = 10.0
"""Time that a process has to end before it is killed."""
POLL_PERIOD_S = 0.02
PR_SET_PDEATHSIG = 1
N_LOG_LINES = 8


class DemoProcess:
    """A node of this package in its own process.

    Args:
        name: name of the module and of the node.
        parameters: ROS parameters, beyond those of the parameter files.
        log: file for the output; None: the output of this process.
        namespace: namespace of the node; empty: none.
        node: another name of the node; empty: that of the module.
        good: exit codes without a fault; empty for a node that serves.
        files: parameter files; None: those of the command line of this process.
    """

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, object],
        log: Path | None,
        *,
        namespace: str = "",
        node: str = "",
        good: Sequence[int] = (),
        files: Sequence[Path] | None = None,
    ) -> None:
        command = [sys.executable, "-m", "dynid_ros.demo.processes", module_of(name), "--ros-args"]
        if files is None:
            files = [Path(file) for option, file in pairwise(sys.argv) if option == "--params-file"]
        for file in files:
            command += ["--params-file", str(file)]
        for parameter, value in parameters.items():
            command += ["-p", f"{parameter}:={value}"]
        for rule, value in (("__ns", namespace), ("__node", node)):
            command += ["-r", f"{rule}:={value}"] if value else []
        self.name = node or name
        self.log = log
        self._good = good
        if log is None:
            self.popen = subprocess.Popen(command)
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:
            self.popen = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def check(self) -> bool:
        """Return whether it still runs.

        Raises:
            DynidError: it ended with a fault; the last lines of its log are printed.
        """
        code = self.popen.poll()
        if code is not None and code not in self._good:
            raise self.fault()
        return code is None

    def fault(self) -> DynidError:
        """Print the last lines of the log to stderr, and return the error that the node ended."""
        code = self.popen.poll()
        if self.log is None:
            return DynidError(f"node {self.name} ended with exit code {code}")
        lines = [line for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        shown = [f"  {line}" for line in lines[-N_LOG_LINES:]]
        print(f"The last lines of {self.log}:", *shown, sep="\n", file=sys.stderr)
        return DynidError(f"node {self.name} ended with exit code {code}; see {self.log}")


@contextmanager
def running(processes: list[DemoProcess], *started: DemoProcess) -> Iterator[None]:
    """Watch started processes for the block, and stop them after it."""
    processes += started
    try:
        yield
    finally:
        for process in started:
            processes.remove(process)
        stop(process.popen for process in started)


def stop(processes: Iterable[subprocess.Popen], timeout: float = STOP_TIMEOUT_S) -> None:
    """Terminate processes, wait for their end, and kill those that do not end in time."""
    alive = [process for process in processes if process.poll() is None]
    for process in alive:
        process.terminate()  # by SIGTERM: rclpy ends its work then, while SIGINT raises in the middle of it
    deadline = time.monotonic() + timeout
    while any(process.poll() is None for process in alive) and time.monotonic() < deadline:
        time.sleep(POLL_PERIOD_S)
    for process in alive:
        process.kill()
        process.wait()


def run_module() -> None:
    """Run the `main` of a module, as `python -m dynid_ros.demo.processes MODULE ARGUMENTS`.

    The process is terminated when its parent ends, however that happens (Linux only).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    del sys.argv[0]
    import_module(sys.argv[0]).main()


if __name__ == "__main__":
    run_module()
