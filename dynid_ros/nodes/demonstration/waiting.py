"""Waiting in a script-like node that hears messages meanwhile."""

import time
from collections.abc import Callable

import rclpy
from rclpy.node import Node

from dynid_ros.errors import DynidError

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
