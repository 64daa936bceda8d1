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
