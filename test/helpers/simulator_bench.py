"""Bench of a simulator node with a client."""

from collections.abc import Callable

import rclpy
from helpers.node_threads import NodeThreads
from rclpy.node import Node

from dynid_ros.nodes.simulator import SimulatorNode


class SimulatorBench:
    """Simulator and client, each in a thread.

    Args:
        client: function that makes the client.
        arguments: ROS arguments besides the parameters.
        parameters: parameters of the simulator.
    """

    def __init__(self, client: Callable[[], Node], *arguments: str, **parameters: object) -> None:
        words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        rclpy.init(args=["--ros-args", *arguments, *words])
        self.node = SimulatorNode()
        self.client = client()
        self.threads = NodeThreads(self.node, self.client)

    def close(self) -> None:
        """End both nodes."""
        self.threads.close()
        self.node.destroy_node()
        self.client.destroy_node()
        rclpy.shutdown()
