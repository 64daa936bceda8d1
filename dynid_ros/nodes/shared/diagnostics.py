"""One status line per node on `/diagnostics`, twice a second; the package diagnostic_updater is not needed for that."""

import re
import time
import traceback
from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from dynid_ros.nodes.shared.process import steady_timer

OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR
STATUS_PERIOD_S = 0.5
"""Time between two statuses; viewers take a node that is silent for some seconds for dead."""
MAX_SILENCE_S = 1.0
"""Longest time without a message before a warning."""
NO_CLOCK = "use_sim_time is set and nothing comes on /clock; run the simulation, play the bag with --clock, or unset it"

Status = tuple[bytes, str, dict[str, object]]
"""Level, message and values."""


def silence(topic: str, received: float) -> str:
    """Return a warning if a topic has been silent for too long; otherwise empty.

    Args:
        topic: name of the topic.
        received: arrival of the last message, or begin of the subscription, s of the monotonic clock.
    """
    age = time.monotonic() - received
    return f"no message on {topic} for {age:.1f} s" if age > MAX_SILENCE_S else ""


def robot_name(urdf: str) -> str:
    """Return the name of the robot in a URDF, without parsing the rest; empty without a name."""
    tag = re.search(r"<robot\b[^>]{,10000}", urdf)  # bounded, because a publisher may send anything
    name = re.search(r"\bname\s*=\s*([\"'])(.*?)\1", tag[0], flags=re.DOTALL) if tag else None
    return name[2] if name else ""


class Diagnostics:
    """Publisher of the status of a node.

    Args:
        status: function that returns the status. An exception is reported as status, because a node that holds an arm
            must not end by it.
        what: distinguishes several statuses of one node.
        hardware: name of the robot, or a function that returns it.
    """

    def __init__(
        self, node: Node, status: Callable[[], Status], what: str = "", hardware: str | Callable[[], str] = ""
    ) -> None:
        self._node = node
        self._status = status
        self._hardware = hardware
        self._name = ": ".join(part for part in (node.get_fully_qualified_name().lstrip("/"), what) if part)
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._since = time.monotonic()
        steady_timer(node, STATUS_PERIOD_S, self.publish)

    def publish(self) -> None:
        """Publish the status now."""
        array = DiagnosticArray(status=[self._message()])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)

    def _message(self) -> DiagnosticStatus:
        try:
            level, message, values = self._status()
            hardware = self._hardware() if callable(self._hardware) else self._hardware
        except Exception as error:
            self._node.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)
            message = f"the status is not known: {type(error).__name__}: {error}"
            return DiagnosticStatus(level=ERROR, name=self._name, message=message)
        if self._lacks_clock():
            self._node.get_logger().warning(NO_CLOCK, once=True)
            level = max(level, WARN)
            message = f"{message}; {NO_CLOCK}"
        status = DiagnosticStatus(level=level, name=self._name, message=message, hardware_id=hardware)
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        return status

    def _lacks_clock(self) -> bool:
        clock = self._node.get_clock()
        waits = clock.ros_time_is_active and not clock.now().nanoseconds  # type: ignore[attr-defined]
        return waits and time.monotonic() - self._since > MAX_SILENCE_S
