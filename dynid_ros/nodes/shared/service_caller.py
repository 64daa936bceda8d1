"""Calls of services of other nodes, which raise an error where a service refuses."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
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

PARAMETER_TIMEOUT_S = 30.0
SERVICE_TIMEOUT_S = 60.0
SPIN_PERIOD_S = 0.1


class ServiceCaller:
    """Client of the services of other nodes.

    Args:
        node: node of the clients.
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
        missing = set(names)

        def all_exist() -> bool:
            missing.difference_update(name for name, _ in self._node.get_service_names_and_types())
            return not missing

        deadline = time.monotonic() + timeout
        while not all_exist():
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
