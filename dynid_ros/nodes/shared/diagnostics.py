"""One status line per node on `/diagnostics`, twice a second (diagnostic_updater is not needed for that)."""

import re
import time
import traceback
from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from dynid_ros.nodes.shared.steady_thread import steady_timer

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
PERIOD = 0.5
"""s; who looks takes a node that is silent for some seconds for dead."""

SILENCE = 1.0
"""s without a message that are worth a warning."""

NO_CLOCK = "use_sim_time is set and nothing comes on /clock; run the simulation, play the bag with --clock, or unset it"

Status = tuple[bytes, str, dict[str, object]]
"""Level, message and values."""


def silence(topic: str, received: float) -> str:
    """Warning about a topic that was heard last at `received` (s, monotonic) or watched since; empty: no cause."""
    age = time.monotonic() - received
    return f"no message on {topic} for {age:.1f} s" if age > SILENCE else ""


def robot_name(urdf: str) -> str:
    """Name that a URDF gives its robot, without a look at the rest of it; empty: none."""
    tag = re.search(r"<robot\b[^>]{,10000}", urdf)  # one tag, of bounded length: a publisher may send anything
    found = re.search(r"\bname\s*=\s*([\"'])(.*?)\1", tag[0], flags=re.DOTALL) if tag else None
    return found[2] if found else ""


class Diagnostics:
    """Publishes what `status` returns.

    Args:
        node: that it is of.
        status: makes the status; an exception in it is reported, and ends no node that holds an arm.
        what: tells two of one node apart.
        hardware: name of the robot, or what returns it where it comes later.
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
        steady_timer(node, PERIOD, self.publish)

    def publish(self) -> None:
        """Send the status now."""
        array = DiagnosticArray(status=[self._now()])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)

    def _now(self) -> DiagnosticStatus:
        try:
            level, message, values = self._status()
            hardware = self._hardware() if callable(self._hardware) else self._hardware
        except Exception as error:
            self._node.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)
            message = f"the status is not known: {type(error).__name__}: {error}"
            return DiagnosticStatus(level=ERROR, name=self._name, message=message)
        if self._lacks_clock():
            self._node.get_logger().warning(NO_CLOCK, once=True)
            level, message = max(level, WARN), f"{message}; {NO_CLOCK}"
        status = DiagnosticStatus(level=level, name=self._name, message=message, hardware_id=hardware)
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        return status

    def _lacks_clock(self) -> bool:
        clock = self._node.get_clock()
        waits = clock.ros_time_is_active and not clock.now().nanoseconds  # type: ignore[attr-defined]
        return waits and time.monotonic() - self._since > SILENCE
