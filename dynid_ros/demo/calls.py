"""Service calls of a script-like node, which spins while it waits and raises where a service refuses."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool, Trigger

from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.topics import UNKNOWN_NAME, node_of

MAX_SPIN_S = 0.1
"""Longest time of one spin, after which conditions are checked."""
START_DISCOVERY_TIMEOUT_S = 5.0
"""Longest wait for the name of a publisher's node, s: the demo starts all its nodes at once."""


def spin_for(node: Node, duration: float) -> None:
    """Process messages for some time, s."""
    end = time.monotonic() + duration
    while True:
        rclpy.spin_once(node, timeout_sec=max(end - time.monotonic(), 0.0))
        if time.monotonic() >= end:
            break


def spin_until(node: Node, reached: Callable[[], bool], timeout: float, failure: str) -> None:
    """Process messages until a condition is true.

    Raises:
        DynidError: with the text `failure`, if that takes longer than `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while not reached():
        if time.monotonic() > deadline:
            raise DynidError(failure)
        rclpy.spin_once(node, timeout_sec=MAX_SPIN_S)


def require_simulation(node: Node) -> None:
    """Check that the demo moves nothing but the simulator.

    The middleware may announce a publisher before the name of its node, which is therefore waited for.

    Raises:
        DynidError: another node than the simulator publishes joint states.
    """

    def other_publishers() -> set[str]:
        return {node_of(info) for info in node.get_publishers_info_by_topic("joint_states")} - {"/simulator"}

    deadline = time.monotonic() + START_DISCOVERY_TIMEOUT_S
    drivers = other_publishers()
    while UNKNOWN_NAME in drivers and time.monotonic() < deadline:
        time.sleep(MAX_SPIN_S)
        drivers = other_publishers()
    if drivers:
        raise DynidError(
            f"the demo moves a simulated arm alone, and {' and '.join(sorted(drivers))} publishes joint_states, too; "
            "play it on another ROS domain, as `dynid demo` and demo.launch.py do"
        )


class ServiceCaller:
    """Calls services of other nodes."""

    def __init__(self, node: Node) -> None:
        self._node = node

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
            rclpy.spin_once(self._node, timeout_sec=MAX_SPIN_S)

    def trigger(self, name: str, timeout: float = 60.0) -> str:
        """Call a Trigger service and return its message."""
        return self.begin(name, timeout)()

    def begin(self, name: str, timeout: float = 60.0) -> Callable[[], str]:
        """Call a Trigger service; the returned function waits for the message, and raises as `trigger` does."""
        answer = self._begin(Trigger, name, Trigger.Request(), timeout)
        return lambda: _message_of(name, answer())

    def set(self, name: str, value: bool, timeout: float = 60.0) -> str:
        """Call a SetBool service and return its message."""
        return _message_of(name, self._begin(SetBool, name, SetBool.Request(data=value), timeout)())

    def change_state(self, node: str, transition: int, timeout: float = 30.0) -> None:
        """Request a transition of a lifecycle node, a constant of `lifecycle_msgs/Transition`."""
        request = ChangeState.Request(transition=Transition(id=transition))
        name = f"{node}/change_state"
        _message_of(name, self._begin(ChangeState, name, request, timeout)())

    def set_parameters(self, node: str, values: Mapping[str, object], timeout: float = 30.0) -> None:
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

    def _begin(self, kind: type, name: str, request: object, timeout: float) -> Callable[[], Any]:
        """Send a request; the returned function waits for the response."""
        client = self._node.create_client(kind, name)
        if not client.wait_for_service(timeout_sec=timeout):
            self._node.destroy_client(client)
            raise DynidError(f"service {name} did not come up within {timeout:g} s; is the node running?")
        future = client.call_async(request)

        def answer() -> Any:
            try:
                rclpy.spin_until_future_complete(self._node, future, timeout_sec=timeout)
                if not future.done():
                    raise DynidError(f"service {name} did not answer within {timeout:g} s")
                return future.result()
            finally:
                self._node.destroy_client(client)

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
