"""Nodes as the guide reaches them: services, parameters, latched texts, joint states and diagnostics.

Joint states are received only while a page is open, and then only the newest is taken, ten times a second.
"""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from types import SimpleNamespace
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import run_program
from dynid_ros.nodes.shared.child_process import NodeProcess, stop
from dynid_ros.nodes.shared.joint_states import JointOrder, newest_states
from dynid_ros.nodes.shared.topics import LATCHED, UnservedGroup, node_of, waiting_messages

TEXT_TOPICS = (
    "excitation/state",
    "excitation/plan",
    "recorder/bag",
    "gravity_compensation/state",
    "gravity_identification/state",
    "link_identification/state",
    "load_identification/state",
    "flexible_joint_identification/state",
    "torque_sensor_calibration/state",
)
PROGRESS_TOPIC = "excitation/progress"
STOP_SERVICES = {"excitation/stop": None, "gravity_compensation/enable": False}
"""Services of STOP, with the value of SetBool."""
STOP_TIMEOUT_S = 5.0
NODE_START_TIMEOUT_S = 90.0
"""Time for a node to start: long, for a busy machine. A node that ends is noticed at once."""
WAIT_PERIOD_S = 0.05
JOINT_STATES = "joint_states"
ACTING_STATES = ("designing", "approaching", "running", "ramping", "active", "identifying")
"""Begins of the states in which a node must not be ended to start with other parameters."""


class RosBench:
    """Access to the nodes of one arm, which are started as processes where they do not run yet.

    Args:
        namespace: namespace of the arm, with a leading `/`; empty: none.
        joint_names: joints of the arm.
        logs: folder for the logs of started nodes.
        files: parameter files of started nodes.

    Attributes:
        texts: last text of each topic of `TEXT_TOPICS`.
        progress: elapsed fraction of design or motion, 0 to 1.
        state: last joint state: stamp, s, and position, velocity and effort as far as the driver fills them.
        heard: monotonic time of that state, s.
        diagnostics: last status of each node by name.
        problem: what is wrong with joint states or a started node; empty: nothing.
    """

    def __init__(self, namespace: str, joint_names: Sequence[str], logs: Path, files: Sequence[Path]) -> None:
        rclpy.init(args=[])
        self.namespace = namespace
        self._logs = logs
        self._files = files
        self._node = Node("guide", namespace=namespace)
        self._order = JointOrder(joint_names)
        self.texts = dict.fromkeys(TEXT_TOPICS, "")
        self.progress = 0.0
        self.state: tuple[float, dict[str, list[float]]] | None = None
        self.heard = -math.inf
        self.diagnostics: dict[str, DiagnosticStatus] = {}
        self.problem = ""
        self._own: dict[str, tuple[NodeProcess, dict[str, object]]] = {}
        # A child process ends with the thread that started it, so a thread that lasts starts all of them.
        self._starter = ThreadPoolExecutor(max_workers=1)
        self._clients: dict[tuple[str, str], Any] = {}
        self._clients_lock = Lock()
        self._streams: list[Subscription] = []
        self._unserved = UnservedGroup()
        for topic in TEXT_TOPICS:
            self._node.create_subscription(String, topic, self._keep(topic), LATCHED)
        self._node.create_subscription(Float32, PROGRESS_TOPIC, self._on_progress, LATCHED)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._thread = Thread(target=self._spin, daemon=True)
        self._thread.start()

    def work(self, period: float) -> None:
        """Wait, s, then look at the started processes."""
        time.sleep(period)
        for name, (process, _) in list(self._own.items()):
            if process.popen.poll() is not None:
                del self._own[name]
                self.problem = f"node {name} ended with exit code {process.popen.poll()}; see {process.log}"

    def look(self, is_watched: bool) -> None:
        """Receive joint states and diagnostics while a page is open."""
        if is_watched == bool(self._streams):
            return
        if is_watched:
            node = self._node
            states = node.create_subscription(
                JointState, JOINT_STATES, print, newest_states(1), callback_group=self._unserved
            )
            diagnostics = node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
            self._streams = [states, diagnostics]
            return
        for stream in self._streams:
            self._node.destroy_subscription(stream)
        self._streams = []

    def take_state(self) -> None:
        """Take the newest joint state, if there is one."""
        if not self._streams:
            return
        for data, _ in waiting_messages(self._streams[0], 1):
            message = deserialize_message(data, JointState)
            if not self._order.concerns(message):
                continue
            values = {}
            for field in ("position", "velocity", "effort"):
                try:
                    values[field] = self._order.pick(message, field)
                except DynidError as error:
                    if field == "position":
                        self.problem = str(error)
                        return
            stamp = message.header.stamp
            self.state = (stamp.sec + 1e-9 * stamp.nanosec, values)
            if self.problem.startswith(JOINT_STATES):
                self.problem = ""
            self.heard = time.monotonic()

    def drivers(self) -> list[str]:
        """Return the nodes that publish joint states."""
        return sorted(node_of(info) for info in self._node.get_publishers_info_by_topic(JOINT_STATES))

    def require_driver(self) -> None:
        """Check that one driver publishes joint states.

        Raises:
            DynidError: there is none, or more than one.
        """
        names = self.drivers()
        topic = f"{self.namespace}/{JOINT_STATES}"
        if not names:
            raise DynidError(
                f"no driver: nothing publishes {topic}; start the driver of the robot, or the guide with --simulated"
            )
        if len(names) > 1:
            raise DynidError(f"several drivers: {' and '.join(names)} publish {topic}; end all but one")

    def has(self, service: str) -> bool:
        """Return whether a service exists."""
        return self._node.count_services(service) > 0

    def call(self, service: str, value: bool | None, timeout: float) -> str:
        """Call a service and return its message.

        Raises:
            DynidError: there is no such service, it refuses, or it does not answer in time.
        """
        kind, request = (Trigger, Trigger.Request()) if value is None else (SetBool, SetBool.Request(data=value))
        response = self._request(kind, service, request, timeout)
        if not response.success:
            raise DynidError(response.message)
        return response.message

    def set_parameters(self, node: str, values: Mapping[str, object]) -> str:
        """Set parameters of a node.

        Raises:
            DynidError: the node refuses one.
        """
        parameters = [Parameter(name, value=_plain(value)).to_parameter_msg() for name, value in values.items()]
        request = SetParameters.Request(parameters=parameters)
        results = self._request(SetParameters, f"{node}/set_parameters", request, STOP_TIMEOUT_S).results
        for name, result in zip(values, results, strict=True):
            if not result.successful:
                raise DynidError(f"node {node} refuses {name}: {result.reason}")
        return ""

    def parameters_of(self, node: str, names: Sequence[str]) -> SimpleNamespace:
        """Return the present parameters of a node."""
        request = GetParameters.Request(names=list(names))
        values = self._request(GetParameters, f"{node}/get_parameters", request, STOP_TIMEOUT_S).values
        return SimpleNamespace(**{n: parameter_value_to_python(v) for n, v in zip(names, values, strict=True)})

    def start(self, node: str, parameters: Mapping[str, object]) -> str:
        """Start a node and wait for its services; a node that somebody else started is used as it is.

        Raises:
            DynidError: it ends at once.
        """
        wanted = dict(parameters)
        if node in self._own and self._own[node][1] == wanted:
            return f"{node} runs"
        if node not in self._own and self.has(f"{node}/get_parameters"):
            return f"{node} runs already, with the parameters of whoever started it"
        self.begin(node, wanted)
        deadline = time.monotonic() + NODE_START_TIMEOUT_S
        while not self.has(f"{node}/get_parameters") or not self._has_answered(node):
            if node not in self._own:
                raise DynidError(self._last_words(node))
            if time.monotonic() > deadline:
                raise DynidError(f"node {node} did not start within {NODE_START_TIMEOUT_S:g} s; see {self._logs}")
            time.sleep(WAIT_PERIOD_S)
        return f"{node} runs"

    def run(self, arguments: Sequence[str]) -> str:
        """Run a program and return its stdout.

        Raises:
            DynidError: it fails; the message is the last line of its stderr.
        """
        return run_program(arguments)

    def forget(self, topic: str) -> None:
        """Forget the last text of a topic."""
        self.texts[topic] = ""  # also of a node without such a topic

    def wait_for(self, topic: str, is_over: Callable[[str], bool]) -> str:
        """Wait until the text of a topic fulfils a condition, and return it."""
        while not is_over(self.texts[topic]):
            if topic.partition("/")[0] not in self._own and not self.has(f"{topic.partition('/')[0]}/get_parameters"):
                raise DynidError(f"node {topic.partition('/')[0]} has ended; see {self._logs}")
            time.sleep(WAIT_PERIOD_S)
        return self.texts[topic]

    def stop(self) -> str:
        """Stop the motion and ramp the compensation out, both at once."""
        answers: dict[str, str] = {}

        def halt(service: str, value: bool | None) -> None:
            try:
                answers[service] = self.call(service, value, STOP_TIMEOUT_S)
            except DynidError as error:
                answers[service] = str(error)

        threads = [Thread(target=halt, args=stop, daemon=True) for stop in STOP_SERVICES.items() if self.has(stop[0])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * STOP_TIMEOUT_S)
        texts = (f"{service.partition('/')[0]}: {text}" for service, text in sorted(answers.items()))
        return " ".join(texts) or "no node that moves the arm runs"

    def end(self) -> None:
        """End the started nodes, each in its order, and this one."""
        stop([process.popen for process, _ in reversed(self._own.values())])
        self._starter.shutdown()
        self._executor.shutdown(STOP_TIMEOUT_S)
        self._thread.join(STOP_TIMEOUT_S)
        rclpy.try_shutdown()

    def begin(self, node: str, parameters: dict[str, object]) -> None:
        """Start the process of a node without waiting for it."""
        self._starter.submit(self._begin, node, parameters).result()

    def _begin(self, node: str, parameters: dict[str, object]) -> None:
        if (running := self._own.get(node)) is not None:
            if self.texts.get(f"{node}/state", "").startswith(ACTING_STATES):
                raise DynidError(f"{node} would start again with other parameters, and it acts now; press STOP first")
            del self._own[node]
            stop([running[0].popen])
        self.forget(f"{node}/state")
        self.problem = ""
        log = self._logs / f"{node}.log"
        texts = {name: json.dumps(_plain(value)) if _is_list(value) else value for name, value in parameters.items()}
        process = NodeProcess(node, texts, log, namespace=self.namespace, files=self._files)
        self._own[node] = (process, parameters)

    def _has_answered(self, node: str) -> bool:
        """Return whether a node is up: those with a state have published it."""
        return f"{node}/state" not in TEXT_TOPICS or bool(self.texts[f"{node}/state"])

    def _last_words(self, node: str) -> str:
        """Return the last error line of a node that ended."""
        log = self._logs / f"{node}.log"
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return f"node {node} ended: {lines[-1] if lines else 'without a word'}; see {log}"

    def _request(self, kind: type, service: str, request: Any, timeout: float) -> Any:
        key = (kind.__name__, service)
        with self._clients_lock:
            if key not in self._clients:
                self._clients[key] = self._node.create_client(kind, service)
            client = self._clients[key]
        if not client.wait_for_service(timeout_sec=STOP_TIMEOUT_S):
            node = service.partition("/")[0]
            raise DynidError(f"node {self.namespace}/{node} does not run (no service {service}); start it first")
        done = Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        if not done.wait(timeout):
            client.remove_pending_request(future)
            raise DynidError(f"service {self.namespace}/{service} did not answer within {timeout:g} s")
        return future.result()

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()

    def _keep(self, topic: str) -> Callable[[String], None]:
        def keep(message: String) -> None:
            self.texts[topic] = message.data

        return keep

    def _on_progress(self, message: Float32) -> None:
        self.progress = message.data

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.diagnostics[status.name] = status


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _plain(value: object) -> Any:
    """Return a value with paths as text."""
    return str(value) if isinstance(value, Path) else value
