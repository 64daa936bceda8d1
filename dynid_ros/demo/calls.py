"""Waits of the coordinator, which processes messages meanwhile, and its check that it moves a simulated arm."""

import time
from collections.abc import Callable

import rclpy
from rclpy.node import Node

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
    """Process messages until a condition is true."""
    deadline = time.monotonic() + timeout
    while not reached():
        if time.monotonic() > deadline:
            raise DynidError(failure)
        rclpy.spin_once(node, timeout_sec=MAX_SPIN_S)


def require_simulation(node: Node) -> None:
    """Check that the demo moves nothing but the simulator.

    The middleware may announce a publisher before the name of its node, which is therefore waited for.
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
