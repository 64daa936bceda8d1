"""Spin nodes in threads while a test runs, and call their services."""

import threading
from typing import Any

from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.exceptions import InvalidHandle
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node


class SpinThread:
    """Thread that spins nodes, even if the test destroys entities of these nodes meanwhile.

    An executor that meets a destroyed entity while it builds its wait set raises and would stop spinning.
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
        """Stop spinning; the nodes continue to exist."""
        self.closed = True
        self.executor.wake()
        self.thread.join(timeout)
        self.executor.shutdown()


class NodeThreads:
    """Threads that spin one node each."""

    def __init__(self, *nodes: Node):
        self.threads = [SpinThread(node) for node in nodes]

    def close(self) -> None:
        """Stop spinning; the nodes continue to exist."""
        for thread in self.threads:
            thread.close()


def call(node: Node, kind: type, name: str, request: Any = None) -> Any:
    """Call a service by a node that spins in a thread, and return the response."""
    for _ in range(10):  # on a busy computer a client may wait in vain for an existing service
        client = node.create_client(kind, name)
        if client.wait_for_service(START_TIMEOUT_S / 10):
            break
    else:
        raise AssertionError(f"there is no service {name}")
    future = client.call_async(kind.Request() if request is None else request)
    wait(future.done, START_TIMEOUT_S)
    return future.result()


def assert_success(response: Any, *texts: str) -> None:
    """Assert that a service succeeded, with these texts in its message."""
    assert response.success, response.message
    for text in texts:
        assert text in response.message, response.message


def assert_refused(response: Any, *texts: str) -> None:
    """Assert that a service refused, with these texts in its message."""
    assert not response.success, response.message
    for text in texts:
        assert text in response.message, response.message
