"""Nodes of one arm as child processes that start on request, and restart for other parameters."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.child_process import POLL_PERIOD_S, NodeProcess, stop

START_TIMEOUT_S = 90.0
"""Time for a node to start: long, for a busy machine. A node that ends is noticed at once."""


class NodeProcesses:
    """Set of nodes that this program started.

    Args:
        namespace: namespace of the nodes; empty: none.
        logs: folder for their logs.
        files: their parameter files.
        is_busy: returns whether a node must not be ended now.

    Attributes:
        problem: message about the last node that ended by itself; empty: none.
    """

    def __init__(self, namespace: str, logs: Path, files: Sequence[Path], is_busy: Callable[[str], bool]) -> None:
        self.problem = ""
        self._namespace = namespace
        self._logs = logs
        self._files = files
        self._is_busy = is_busy
        self._running: dict[str, tuple[NodeProcess, Mapping[str, object]]] = {}
        # A child process ends with the thread that started it, so a thread that lasts starts all of them.
        self._starter = ThreadPoolExecutor(max_workers=1)

    def __contains__(self, node: str) -> bool:
        return node in self._running

    def has(self, node: str, parameters: Mapping[str, object]) -> bool:
        """Return whether a node was started with these parameters and has not ended."""
        return node in self._running and self._running[node][1] == parameters

    def start(self, node: str, parameters: Mapping[str, object]) -> None:
        """Start the process of a node; a running one is ended first.

        Raises:
            DynidError: the running one is busy.
        """
        self._starter.submit(self._start, node, parameters).result()

    def wait_for(self, node: str, is_ready: Callable[[], bool]) -> None:
        """Wait until a started node is ready; another thread calls `check` meanwhile.

        Raises:
            DynidError: the node ended, or is not ready in time; the message has the last line of its log.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        while not is_ready():
            if node not in self._running:
                raise DynidError(f"node {node} ended: {self._last_line(node)}")
            if time.monotonic() > deadline:
                raise DynidError(f"node {node} did not start within {START_TIMEOUT_S:g} s: {self._last_line(node)}")
            time.sleep(POLL_PERIOD_S)

    def check(self) -> None:
        """Note in `problem` which node has ended."""
        for node, (process, _) in list(self._running.items()):
            if (code := process.popen.poll()) is not None:
                del self._running[node]
                self.problem = f"node {node} ended with exit code {code}; see {process.log}"

    def end(self) -> None:
        """End all nodes, the last one first."""
        stop([process.popen for process, _ in reversed(self._running.values())])
        self._starter.shutdown()

    def _last_line(self, node: str) -> str:
        """Return the last line in the log of a node, and the log's path."""
        log = self._logs / f"{node}.log"
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return f"{lines[-1] if lines else 'it printed nothing'}; see {log}"

    def _start(self, node: str, parameters: Mapping[str, object]) -> None:
        if (running := self._running.get(node)) is not None:
            if self._is_busy(node):
                raise DynidError(f"{node} would start again with other parameters, but is busy; press STOP first")
            del self._running[node]
            stop([running[0].popen])
        self.problem = ""
        log = self._logs / f"{node}.log"
        process = NodeProcess(node, parameters, log, namespace=self._namespace, files=self._files)
        self._running[node] = (process, dict(parameters))
