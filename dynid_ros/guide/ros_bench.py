"""Access of the guide to nodes: services, parameters, latched texts, joint states, diagnostics and processes.

Joint states are received while a page is shown, and only the newest is processed, ten times a second.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, String

from dynid_ros.errors import DynidError
from dynid_ros.guide.answers import COMPENSATION_NODE, EXPERIMENTS_BY_NODE
from dynid_ros.nodes.shared.child_process import NodeProcesses, ServiceCaller
from dynid_ros.nodes.shared.robot_description import JointOrder, newest_states
from dynid_ros.nodes.shared.topics import LATCHED, UnservedGroup, node_of, waiting_messages

STATE_TOPICS = [f"{node}/state" for node in ("excitation", COMPENSATION_NODE, *EXPERIMENTS_BY_NODE)]
TEXT_TOPICS = ("excitation/plan", "recorder/bag", *STATE_TOPICS)
STOP_SERVICES = {"excitation/stop": None, f"{COMPENSATION_NODE}/enable": False}
"""Services of STOP, with the value of SetBool."""
STOP_TIMEOUT_S = 5.0
WAIT_PERIOD_S = 0.05
JOINT_STATES = "joint_states"
BUSY_STATES = ("designing", "approaching", "running", "ramping", "active", "identifying")
"""First words of the states that forbid a restart with other parameters."""


class RosBench:
    """Access to the nodes of an arm; it starts nodes that do not run yet as processes.

    Attributes:
        texts: last text of each topic of `TEXT_TOPICS`.
        progress: elapsed fraction of design or motion, 0 to 1.
        state: last joint state: stamp, s, position, and effort if the driver fills it.
        state_time: monotonic time of that state, s.
    """

    def __init__(self, namespace: str, joint_names: Sequence[str], logs: Path, files: Sequence[Path]) -> None:
        rclpy.init(args=[])
        self.namespace = namespace
        self.texts = dict.fromkeys(TEXT_TOPICS, "")
        self.progress = 0.0
        self.state: tuple[float, dict[str, list[float]]] | None = None
        self.state_time = -math.inf
        self._node = Node("guide", namespace=namespace)

        def is_busy(node: str) -> bool:
            return self.texts.get(f"{node}/state", "").startswith(BUSY_STATES)

        self.services = ServiceCaller(self._node, spins=False, discovery_timeout=STOP_TIMEOUT_S)
        self._processes = NodeProcesses(namespace, logs, files, is_busy)
        self._order = JointOrder(joint_names)
        self._state_problem = ""
        self._statuses: dict[str, DiagnosticStatus] = {}
        self._streams: list[Subscription] = []
        self._unserved = UnservedGroup()
        for topic in TEXT_TOPICS:
            self._node.create_subscription(String, topic, partial(self._on_text, topic), LATCHED)
        self._node.create_subscription(Float32, "excitation/progress", self._on_progress, LATCHED)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._thread = Thread(target=self._spin, daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """Fault of the joint states or of a started node; empty: none."""
        return self._state_problem or self._processes.problem

    def work(self, period: float, is_watched: bool) -> None:
        """Wait, s, then check the started processes, and process the newest joint state for a page that is shown."""
        if is_watched != bool(self._streams):
            self._receive(is_watched)
        time.sleep(period)
        self._processes.check()
        if is_watched:
            self._take_state()

    def require_driver(self) -> str:
        """Return the one node that publishes joint states.

        Raises:
            DynidError: no node, or more than one node, publishes joint states.
        """
        names = sorted(node_of(info) for info in self._node.get_publishers_info_by_topic(JOINT_STATES))
        topic = f"{self.namespace}/{JOINT_STATES}"
        if not names:
            remedy = "start the driver of the robot, or the guide with --simulated"
            raise DynidError(f"no driver: nothing publishes {topic}; {remedy}")
        if len(names) > 1:
            raise DynidError(f"several drivers: {' and '.join(names)} publish {topic}; end all but one")
        return names[0]

    def status_of(self, node: str) -> DiagnosticStatus | None:
        """Return the last diagnostic status of a node; None before the first."""
        name = f"{self.namespace}/{node}".lstrip("/")
        return next((status for key, status in self._statuses.items() if name in key), None)

    def has(self, service: str) -> bool:
        """Return whether a service exists."""
        return self._node.count_services(service) > 0

    def call(self, service: str, value: bool | None, timeout: float) -> str:
        """Call a Trigger service, or a SetBool service with a value; see `ServiceCaller`."""
        return self.services.trigger(service, timeout) if value is None else self.services.set(service, value, timeout)

    def start(self, node: str, parameters: Mapping[str, object]) -> str:
        """Start a node and wait for its services; a node that runs already keeps its parameters.

        Raises:
            DynidError: it ends at once.
        """
        if self._processes.has(node, parameters):
            return f"{node} runs"
        if node not in self._processes and self._runs(node):
            return f"{node} runs already, with the parameters of whoever started it"
        self.begin(node, parameters)
        # a node with a state is ready when it has published the state
        self._processes.wait_for(node, lambda: self._runs(node) and self.texts.get(f"{node}/state", "no state") != "")
        return f"{node} runs"

    def begin(self, node: str, parameters: Mapping[str, object]) -> None:
        """Start the process of a node without waiting for it."""
        self._processes.start(node, parameters)
        if f"{node}/state" in self.texts:
            self.forget(f"{node}/state")

    def forget(self, topic: str) -> None:
        """Forget the last text of a topic."""
        self.texts[topic] = ""

    def wait_for(self, topic: str, is_over: Callable[[str], bool]) -> str:
        """Wait until the text of a topic fulfils a condition, and return it."""
        node = topic.partition("/")[0]
        while not is_over(self.texts[topic]):
            if node not in self._processes and not self._runs(node):
                raise DynidError(f"node {node} has ended; its log has the reason")
            time.sleep(WAIT_PERIOD_S)
        return self.texts[topic]

    def stop(self) -> str:
        """Stop the motion and ramp the compensation out, both at once."""

        def halt(service: str) -> str:
            try:
                return self.call(service, STOP_SERVICES[service], STOP_TIMEOUT_S)
            except DynidError as error:
                return str(error)

        with ThreadPoolExecutor() as pool:
            answers = list(pool.map(halt, filter(self.has, STOP_SERVICES)))
        return " ".join(answers) or "no node that moves the arm runs"

    def end(self) -> None:
        """End the started nodes, each in its order, and this one."""
        self._processes.end()
        self._executor.shutdown(STOP_TIMEOUT_S)
        self._thread.join(STOP_TIMEOUT_S)
        rclpy.try_shutdown()

    def _runs(self, node: str) -> bool:
        return self.has(f"{node}/get_parameters")

    def _receive(self, is_watched: bool) -> None:
        """Begin or end to receive joint states and diagnostics."""
        for stream in self._streams:
            self._node.destroy_subscription(stream)
        self._streams = []
        if is_watched:
            node = self._node
            states = newest_states(1)
            self._streams = [
                node.create_subscription(JointState, JOINT_STATES, print, states, callback_group=self._unserved),
                node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10),
            ]

    def _take_state(self) -> None:
        """Take the newest joint state, if there is one."""
        for data, _ in waiting_messages(self._streams[0], 1):
            message = deserialize_message(data, JointState)
            if not self._order.concerns(message):
                continue
            try:
                values = {"position": self._order.pick(message, "position")}
                self._state_problem = ""
            except DynidError as error:
                self._state_problem = str(error)
                return
            with suppress(DynidError):  # not all drivers fill effort
                values["effort"] = self._order.pick(message, "effort")
            stamp = message.header.stamp
            self.state = (stamp.sec + 1e-9 * stamp.nanosec, values)
            self.state_time = time.monotonic()

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()

    def _on_text(self, topic: str, message: String) -> None:
        self.texts[topic] = message.data

    def _on_progress(self, message: Float32) -> None:
        self.progress = message.data

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self._statuses |= {status.name: status for status in message.status}
