"""Nodes that spin while a test runs."""

import threading

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node


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
