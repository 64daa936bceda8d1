"""Bench of an identification node in a thread, with a client that calls it."""

import time
from collections.abc import Callable
from pathlib import Path

import rclpy
import yaml
from helpers.node_threads import SpinThread
from helpers.waiting import START_TIMEOUT_S as TIMEOUT
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.identified.identified_file import load_identified
from dynid_ros.nodes.shared.child_process import ServiceCaller
from dynid_ros.nodes.shared.topics import LATCHED


class IdentificationBench:
    """Node with parameters, and a client; `close` ends both."""

    def __init__(self, make_node: Callable[[], Node], **parameters: object) -> None:
        arguments = [part for name, value in parameters.items() for part in ("-p", f"{name}:={value}")]
        rclpy.init(args=["--ros-args", *arguments])
        self.node = make_node()
        self.client = rclpy.create_node("client")
        self.caller = ServiceCaller(self.client)
        self.thread = SpinThread(self.node)

    def close(self) -> None:
        self.thread.close(TIMEOUT)
        for node in (self.node, self.client):
            node.destroy_node()
        rclpy.shutdown()

    def set_parameters(self, **values: object) -> None:
        self.caller.set_parameters(self.node.get_name(), values)

    def announce_bag(self, bag: object) -> None:
        self.client.create_publisher(String, "/recorder/bag", LATCHED).publish(String(data=str(bag)))

    def identify(self) -> Trigger.Response:
        service = self.client.create_client(Trigger, f"/{self.node.get_name()}/identify")
        assert service.wait_for_service(TIMEOUT)
        future = service.call_async(Trigger.Request())
        rclpy.spin_until_future_complete(self.client, future, timeout_sec=TIMEOUT)
        return future.result()

    def identify_until_success(self) -> Trigger.Response:
        """Call ~/identify until it succeeds, because announcements take time to arrive."""
        deadline = time.monotonic() + TIMEOUT
        while not (response := self.identify()).success and time.monotonic() < deadline:
            rclpy.spin_once(self.client, timeout_sec=0.1)
        return response

    def result(self) -> dict:
        """Return the latched result, completed by the file that it names."""
        received: list[String] = []
        self.client.create_subscription(String, f"/{self.node.get_name()}/result", received.append, LATCHED)
        deadline = time.monotonic() + TIMEOUT
        while not received:
            assert time.monotonic() < deadline, "nothing on ~/result"
            rclpy.spin_once(self.client, timeout_sec=0.1)
        result = yaml.safe_load(received[0].data)
        return result | load_identified(Path(result["identified"])) if "identified" in result else result


def make_starter(keep: Callable, make: Callable, **defaults: object) -> Callable[..., IdentificationBench]:
    """Return a function that starts a node with default and other parameters; `keep` closes its bench.

    `make` is a class of nodes or of benches.
    """

    def start(**parameters: object) -> IdentificationBench:
        values = defaults | parameters
        is_bench = isinstance(make, type) and issubclass(make, IdentificationBench)
        return keep(make(**values) if is_bench else IdentificationBench(make, **values))

    return start
