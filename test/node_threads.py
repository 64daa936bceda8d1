"""Nodes that spin while a test runs."""

import threading
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from waiting import START_TIME, wait


class NodeThreads:
    """Spins each node in a thread of its own."""

    def __init__(self, *nodes: Node):
        self.executors = [SingleThreadedExecutor() for _ in nodes]
        self.threads = []
        for executor, node in zip(self.executors, nodes, strict=True):
            executor.add_node(node)
            self.threads.append(threading.Thread(target=executor.spin, daemon=True))
            self.threads[-1].start()

    def close(self) -> None:
        """Spin no longer; the nodes are still there."""
        for executor, thread in zip(self.executors, self.threads, strict=True):
            executor.shutdown()
            thread.join(5.0)


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
