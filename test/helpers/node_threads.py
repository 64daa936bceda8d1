"""Nodes that spin while a test runs."""

import threading
from typing import Any

from helpers.waiting import START_TIME, wait
from rclpy.exceptions import InvalidHandle
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node


class SpinThread:
    """Spins nodes in one thread, which outlives what the test destroys from its own thread meanwhile.

    An executor that meets such an entity on its way to the wait set raises and would never spin again.
    """

    def __init__(self, *nodes: Node):
        self.executor = SingleThreadedExecutor()
        for node in nodes:
            self.executor.add_node(node)
        self.closed = False
        self.thread = threading.Thread(target=self._spin, daemon=True)
        self.thread.start()

    def _spin(self) -> None:
        while not self.closed and self.executor.context.ok():
            try:
                self.executor.spin_once(timeout_sec=1.0)
            except InvalidHandle:
                continue

    def close(self, timeout: float = 5.0) -> None:
        """Spin no longer; the nodes are still there."""
        self.closed = True
        self.executor.wake()
        self.thread.join(timeout)
        self.executor.shutdown()


class NodeThreads:
    """Spins each node in a thread of its own."""

    def __init__(self, *nodes: Node):
        self.threads = [SpinThread(node) for node in nodes]

    def close(self) -> None:
        """Spin no longer; the nodes are still there."""
        for thread in self.threads:
            thread.close()


def call(node: Node, kind: type, name: str, request: Any = None) -> Any:
    """Answer of a service to a node that spins in a thread."""
    for _ in range(10):  # on a busy machine one of many clients was seen to wait in vain for a service that was there
        client = node.create_client(kind, name)
        if client.wait_for_service(START_TIME / 10):
            break
    else:
        raise AssertionError(f"there is no service {name}")
    future = client.call_async(kind.Request() if request is None else request)
    wait(future.done, START_TIME)
    return future.result()
