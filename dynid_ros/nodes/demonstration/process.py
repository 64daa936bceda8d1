"""Nodes that the coordinator of the demo starts itself: what they read is not there before."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from dynid_ros.errors import DynidError
from dynid_ros.processes import ended, stop


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
        command = [sys.executable, "-m", "dynid_ros.processes", f"dynid_ros.nodes.{name}", "--ros-args"]
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
