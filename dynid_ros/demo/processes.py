"""Processes that end with the one that started them, and what is left of one that ended by itself."""

import ctypes
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Protocol

from dynid_ros.errors import DynidError
from dynid_ros.nodes import module_of

STOP_TIMEOUT = 10.0
"""For which processes may take their leave, s."""
PR_SET_PDEATHSIG = 1
LAST_LINES = 8


class Process(Protocol):
    """What `subprocess.Popen` and `ForkedProcess` share."""

    def poll(self) -> int | None:
        """Exit code; None: it runs."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""


def end_with_parent() -> None:
    """Have this process be asked to end when the one that started it is gone, however that came about; Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run_module() -> None:
    """`python -m dynid_ros.demo.processes <module> <arguments>`: its `main`, in a process that ends with its parent."""
    end_with_parent()
    del sys.argv[0]
    import_module(sys.argv[0]).main()


def stop(processes: Iterable[Process], timeout: float = STOP_TIMEOUT) -> None:
    """Tell all to end and wait; what does not end in time is killed."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + timeout
    while running and time.monotonic() < deadline:
        time.sleep(0.02)
        running = [process for process in running if process.poll() is None]
    for process in running:
        process.kill()
    while any(process.poll() is None for process in running):
        time.sleep(0.02)


def ended(name: str, code: int | None, log: Path) -> DynidError:
    """That a node ended, which it should not; the last lines of its log go to the terminal, for errors have one."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    print(f"The last lines of {log}:", *(f"  {line}" for line in lines[-LAST_LINES:]), sep="\n", file=sys.stderr)
    return DynidError(f"node {name} ended with exit code {code}; see {log}")


class ForkedProcess(ForkProcess):
    """A copy of this process that runs a module's `main`: what is imported here is there at once.

    Fork while there is one thread only.

    Args:
        module: imported already.
        arguments: of its command line.
        log: file for what it prints; None: as this process.
    """

    def __init__(self, module: str, arguments: Sequence[str], log: Path | None = None) -> None:
        super().__init__(name=module.rpartition(".")[2])
        self._module, self._arguments, self._log = module, arguments, log

    def poll(self) -> int | None:
        """Exit code; None: it runs."""
        return self.exitcode

    def run(self) -> None:
        """What the copy does."""
        end_with_parent()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if self._log is not None:
            with self._log.open("w") as file:
                for stream in (sys.stdout, sys.stderr):
                    os.dup2(file.fileno(), stream.fileno())
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True)
        sys.argv = [self._module, *self._arguments]
        import_module(self._module).main()


# Nodes that the coordinator of the demo starts itself: what they read is not there before.


class DemoProcess:
    """A node of this package in a process of its own.

    Args:
        name: of its module and of the node.
        parameters: on top of the files of parameters that this process was given.
        log: file for what it prints.
        namespace: of the node; empty: none.
        node: another name for it; empty: that of its module.
        good: exit codes that are no fault; a node that serves has none.
    """

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, object],
        log: Path,
        namespace: str = "",
        *,
        node: str = "",
        good: Sequence[int] = (),
    ) -> None:
        command = [sys.executable, "-m", "dynid_ros.demo.processes", module_of(name), "--ros-args"]
        for option, file in pairwise(sys.argv):
            if option == "--params-file":
                command += [option, file]
        for parameter, value in parameters.items():
            command += ["-p", f"{parameter}:={value}"]
        for rule, value in (("__ns", namespace), ("__node", node)):
            if value:
                command += ["-r", f"{rule}:={value}"]
        self.name, self.log, self.good = node or name, log, good
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as printed:
            self._process = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)

    def check(self) -> bool:
        """Whether it still runs.

        Raises:
            DynidError: it ended by a fault; the last lines of its log are on the terminal.
        """
        code = self._process.poll()
        if code is not None and code not in self.good:
            raise self.fault()
        return code is None

    def fault(self) -> DynidError:
        """That it ended without having done what it should."""
        return ended(self.name, self._process.poll(), self.log)

    def end(self) -> None:
        """Have it end, and wait for that."""
        # rclpy ends its work at SIGTERM; SIGINT raises in the middle of it too.
        stop([self._process])


@contextmanager
def running(processes: list[DemoProcess], *started: DemoProcess) -> Iterator[None]:
    """Have them among `processes`, those that are watched; they end with the block."""
    processes += started
    try:
        yield
    finally:
        for process in started:
            processes.remove(process)
        for process in started:
            process.end()


if __name__ == "__main__":
    run_module()
