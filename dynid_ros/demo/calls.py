"""Calls of services that raise instead of answering `success = False`."""

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

# Waiting in a script-like node that hears messages meanwhile.


LONGEST_SPIN = 0.1
"""s, after which it is looked whether something else has happened."""


def spin_for(node: Node, duration: float) -> None:
    """Let time pass, s; what has arrived is heard even if none is left."""
    end = time.monotonic() + duration
    while True:
        rclpy.spin_once(node, timeout_sec=max(end - time.monotonic(), 0.0))
        if time.monotonic() >= end:
            break


def spin_until(node: Node, reached: Callable[[], bool], timeout: float, otherwise: str) -> None:
    """Wait until something is so.

    Raises:
        DynidError: `otherwise`, if it is not so within `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while not reached():
        if time.monotonic() > deadline:
            raise DynidError(otherwise)
        rclpy.spin_once(node, timeout_sec=LONGEST_SPIN)


def require_simulation(node: Node) -> None:
    """See that no robot is there which would be moved as well.

    Raises:
        DynidError: somebody else than the simulator publishes joint states.
    """
    drivers = {info.node_name for info in node.get_publishers_info_by_topic("joint_states")} - {"simulator"}
    if drivers:
        raise DynidError(
            f"the demo moves a simulated arm alone, and {' and '.join(sorted(drivers))} publishes joint_states, too; "
            "play it on another ROS domain, as `dynid demo` and demo.launch.py do"
        )


class ServiceCaller:
    """Calls services of other nodes from a script-like node that spins while it waits."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def wait(self, *names: str, timeout: float = 30.0) -> None:
        """Wait until every service exists.

        Raises:
            DynidError: names the services that did not come up.
        """
        deadline = time.monotonic() + timeout
        missing = set(names)
        while missing and time.monotonic() < deadline:
            missing -= {name for name, _ in self._node.get_service_names_and_types()}
            rclpy.spin_once(self._node, timeout_sec=0.1)
        if missing:
            names_ = ", ".join(sorted(missing))
            raise DynidError(f"service(s) {names_} did not come up within {timeout:g} s; is the node running?")

    def trigger(self, name: str, timeout: float = 60.0) -> str:
        """Call a Trigger service; its message."""
        return self._call(Trigger, name, Trigger.Request(), timeout)

    def begin(self, name: str, timeout: float = 60.0) -> Callable[[], str]:
        """Call a Trigger service and go on; what is returned waits for the message, and raises as `trigger` does."""
        answer = self._begin(Trigger, name, Trigger.Request(), timeout)
        return lambda: _message(name, answer())

    def set(self, name: str, value: bool, timeout: float = 60.0) -> str:
        """Call a SetBool service; its message."""
        return self._call(SetBool, name, SetBool.Request(data=value), timeout)

    def change_state(self, node: str, transition: int, timeout: float = 30.0) -> None:
        """Ask a lifecycle node for a transition (`lifecycle_msgs/Transition` constant)."""
        request = ChangeState.Request(transition=Transition(id=transition))
        self._call(ChangeState, f"{node}/change_state", request, timeout)

    def set_parameters(self, node: str, values: Mapping[str, object], timeout: float = 30.0) -> None:
        """Set parameters of another node."""
        parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        request = SetParameters.Request(parameters=parameters)
        results = self._answer(SetParameters, f"{node}/set_parameters", request, timeout).results
        for name, result in zip(values, results, strict=True):
            if not result.successful:
                raise DynidError(f"node {node} refused parameter {name}: {result.reason}")

    def _call(self, kind: type, name: str, request: object, timeout: float) -> str:
        return _message(name, self._answer(kind, name, request, timeout))

    def _answer(self, kind: type, name: str, request: object, timeout: float) -> Any:
        return self._begin(kind, name, request, timeout)()

    def _begin(self, kind: type, name: str, request: object, timeout: float) -> Callable[[], Any]:
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


def _message(name: str, response: Any) -> str:
    message = getattr(response, "message", "see the log of that node")
    if not response.success:
        raise DynidError(f"service {name} refused: {message}")
    return message
