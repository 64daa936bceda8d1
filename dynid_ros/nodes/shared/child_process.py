"""Other nodes: as child processes, which on Linux end with their parent even if it is killed, and their services."""

import ctypes
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import SetBool, Trigger

from dynid_ros.errors import DynidError
from dynid_ros.nodes import module_of

PARAMETER_TIMEOUT_S = 30.0
SERVICE_TIMEOUT_S = 60.0
SPIN_PERIOD_S = 0.1
STOP_TIMEOUT_S = 10.0
"""Time between SIGTERM and SIGKILL for a process that does not end."""
POLL_PERIOD_S = 0.02
PR_SET_PDEATHSIG = 1
"""Option of `prctl` in Linux that sets the signal which a process receives when its parent ends."""
NODE_START_TIMEOUT_S = 90.0
"""Longest time for a node to start, on a busy machine; a node that ends is detected at once."""
N_LOG_LINES = 8
"""Number of log lines that are printed when a node fails."""


class ServiceCaller:
    """Client of the services of other nodes.

    Args:
        spins: whether the caller spins the node while it waits; false: an executor in another thread spins it, and any
            thread may call.
        discovery_timeout: longest wait for a service to exist, s, if it is shorter than the timeout of the call.
    """

    def __init__(self, node: Node, *, spins: bool = True, discovery_timeout: float = math.inf) -> None:
        self._node = node
        self._spins = spins
        self._discovery_timeout = discovery_timeout
        self._clients: dict[tuple[type, str], Client] = {}
        self._lock = Lock()

    def wait(self, *names: str, timeout: float = 30.0) -> None:
        """Wait until every service exists.

        Raises:
            DynidError: names the services that did not come up.
        """
        deadline = time.monotonic() + timeout
        while missing := set(names) - {name for name, _ in self._node.get_service_names_and_types()}:
            if time.monotonic() > deadline:
                listed = ", ".join(sorted(missing))
                raise DynidError(f"service(s) {listed} did not come up within {timeout:g} s; is the node running?")
            rclpy.spin_once(self._node, timeout_sec=SPIN_PERIOD_S)

    def trigger(self, name: str, timeout: float = SERVICE_TIMEOUT_S) -> str:
        """Call a Trigger service and return its message."""
        return self.begin(name, timeout)()

    def begin(self, name: str, timeout: float = SERVICE_TIMEOUT_S) -> Callable[[], str]:
        """Call a Trigger service; the returned function waits for the message, and raises as `trigger` does."""
        answer = self._begin(Trigger, name, Trigger.Request(), timeout)
        return lambda: _message_of(name, answer())

    def set(self, name: str, value: bool, timeout: float = SERVICE_TIMEOUT_S) -> str:
        """Call a SetBool service and return its message."""
        return _message_of(name, self._begin(SetBool, name, SetBool.Request(data=value), timeout)())

    def change_state(self, node: str, transition: int, timeout: float = PARAMETER_TIMEOUT_S) -> None:
        """Request a transition of a lifecycle node, a constant of `lifecycle_msgs/Transition`."""
        request = ChangeState.Request(transition=Transition(id=transition))
        name = f"{node}/change_state"
        _message_of(name, self._begin(ChangeState, name, request, timeout)())

    def set_parameters(self, node: str, values: Mapping[str, object], timeout: float = PARAMETER_TIMEOUT_S) -> None:
        """Set parameters of another node.

        Raises:
            DynidError: the node refuses one.
        """
        parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        request = SetParameters.Request(parameters=parameters)
        results = self._begin(SetParameters, f"{node}/set_parameters", request, timeout)().results
        for name, result in zip(values, results, strict=True):
            if not result.successful:
                raise DynidError(f"node {node} refused parameter {name}: {result.reason}")

    def parameters(self, node: str, names: Sequence[str], timeout: float = PARAMETER_TIMEOUT_S) -> SimpleNamespace:
        """Return the present parameters of another node."""
        request = GetParameters.Request(names=list(names))
        values = self._begin(GetParameters, f"{node}/get_parameters", request, timeout)().values
        return SimpleNamespace(**dict(zip(names, map(parameter_value_to_python, values), strict=True)))

    def _begin(self, kind: type, name: str, request: object, timeout: float) -> Callable[[], Any]:
        """Send a request; the returned function waits for the response."""
        with self._lock:
            if (kind, name) not in self._clients:
                self._clients[kind, name] = self._node.create_client(kind, name)
            client = self._clients[kind, name]
        limit = min(timeout, self._discovery_timeout)
        if not client.wait_for_service(timeout_sec=limit):
            raise DynidError(f"service {client.service_name} did not come up within {limit:g} s; is the node running?")
        future = client.call_async(request)
        done = Event()
        future.add_done_callback(lambda _: done.set())

        def answer() -> Any:
            if self._spins:
                rclpy.spin_until_future_complete(self._node, future, timeout_sec=timeout)
            elif not done.wait(timeout):
                client.remove_pending_request(future)
            if not future.done():
                raise DynidError(f"service {client.service_name} did not answer within {timeout:g} s")
            return future.result()

        return answer


def _message_of(name: str, response: Any) -> str:
    """Return the message of a response.

    Raises:
        DynidError: the service refused.
    """
    message = getattr(response, "message", "see the log of that node")
    if not response.success:
        raise DynidError(f"service {name} refused: {message}")
    return message


class NodeProcess:
    """A node of this package in its own process.

    Args:
        name: module in `dynid_ros.nodes`, or "demo" for the coordinator.
        parameters: ROS parameters; they take precedence over the parameter files.
        log: file for stdout and stderr; None: the child writes to the stdout and stderr of this process.
        namespace: namespace of the node; empty: none.
        node: name of the node; empty: the name that the module sets.
        good: exit codes that count as success; empty for a node that must run until it is stopped.
        files: parameter files; None: the `--params-file` options that this process was started with.

    Attributes:
        popen: the process.
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
        command = [sys.executable, "-m", "dynid_ros.nodes.shared.child_process", module_of(name), "--ros-args"]
        if files is None:
            files = [Path(file) for option, file in pairwise(sys.argv) if option == "--params-file"]
        for file in files:
            command += ["--params-file", str(file)]
        for parameter, value in parameters.items():
            command += ["-p", f"{parameter}:={value}"]
        for remapped, value in (("__ns", namespace), ("__node", node)):
            command += ["-r", f"{remapped}:={value}"] if value else []
        self.name = node or name
        self.log = log
        self._success_codes = good
        if log is None:
            self.popen = subprocess.Popen(command)
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:
            self.popen = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def check(self) -> bool:
        """Return whether the process is still running.

        Raises:
            DynidError: the process ended with another exit code than those in `good`. The end of its log is printed.
        """
        code = self.popen.poll()
        if code is not None and code not in self._success_codes:
            raise self.fault()
        return code is None

    def fault(self) -> DynidError:
        """Print the last lines of the log to stderr, and return an error with the exit code for the caller to raise."""
        code = self.popen.poll()
        if self.log is None:
            return DynidError(f"node {self.name} ended with exit code {code}")
        shown = [f"  {line}" for line in log_lines(self.log)[-N_LOG_LINES:]]
        print(f"The last lines of {self.log}:", *shown, sep="\n", file=sys.stderr)
        return DynidError(f"node {self.name} ended with exit code {code}; see {self.log}")


def log_lines(log: Path) -> list[str]:
    """Return the lines of a log that are not blank."""
    return [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]


class NodeProcesses:
    """Set of nodes that this program started.

    Args:
        namespace: namespace of the nodes; empty: none.
        logs: folder of the log files.
        files: parameter files.
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
        # A child process ends with the thread that started it, so one thread that lasts starts all of them.
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
        deadline = time.monotonic() + NODE_START_TIMEOUT_S
        while not is_ready():
            is_late = time.monotonic() > deadline
            if is_late or node not in self._running:
                fault = f"did not start within {NODE_START_TIMEOUT_S:g} s" if is_late else "ended"
                log = self._logs / f"{node}.log"
                (last,) = log_lines(log)[-1:] or ["it printed nothing"]
                raise DynidError(f"node {node} {fault}: {last}; see {log}")
            time.sleep(POLL_PERIOD_S)

    def check(self) -> None:
        """Store a message in `problem` about a node that has ended by itself."""
        for node, (process, _) in list(self._running.items()):
            if (code := process.popen.poll()) is not None:
                del self._running[node]
                self.problem = f"node {node} ended with exit code {code}; see {process.log}"

    def end(self) -> None:
        """End all nodes, the last one first."""
        stop([process.popen for process, _ in reversed(self._running.values())])
        self._starter.shutdown()

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


def prepare_parent(folder: Path) -> None:
    """Create the folder of a program that starts nodes, and let SIGINT and SIGTERM raise KeyboardInterrupt in it.

    Raises:
        DynidError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"{folder}: cannot be written ({error.strerror}); choose another folder with --output"
        raise DynidError(text) from error
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell may have SIGINT ignored
        signal.signal(number, signal.default_int_handler)


def ignore_interrupts() -> None:
    """Let no further signal interrupt a program that ends its nodes; `ros2 launch` sends SIGTERM 5 s after SIGINT."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def running(processes: list[NodeProcess], *started: NodeProcess) -> Iterator[None]:
    """Add started processes to a list for the duration of the block, then remove and stop them.

    Args:
        processes: processes that the caller checks periodically, such as `Stage.processes`.
        started: processes to add.
    """
    processes += started
    try:
        yield
    finally:
        for process in started:
            processes.remove(process)
        stop(process.popen for process in started)


def stop(processes: Iterable[subprocess.Popen], timeout: float = STOP_TIMEOUT_S) -> None:
    """Send SIGTERM to all processes, wait up to `timeout` seconds for them to end, and kill the rest."""
    alive = [process for process in processes if process.poll() is None]
    for process in alive:
        process.terminate()  # rclpy shuts down in order on SIGTERM; SIGINT would raise an exception within a callback
    deadline = time.monotonic() + timeout
    while any(process.poll() is None for process in alive) and time.monotonic() < deadline:
        time.sleep(POLL_PERIOD_S)
    for process in alive:
        process.kill()  # without effect on a process that has ended
        process.wait()


def run_module() -> None:
    """Run the `main` of a module, as `python -m dynid_ros.nodes.shared.child_process MODULE ARGUMENTS`.

    On Linux, the kernel sends SIGTERM to this process when its parent ends, even if the parent was killed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    del sys.argv[0]  # MODULE takes the place of the program's name, and its `main` reads ARGUMENTS as usual
    import_module(sys.argv[0]).main()


if __name__ == "__main__":
    run_module()
