"""One status line per node on `/diagnostics`, once a second (diagnostic_updater is not needed for that)."""

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


class Diagnostics:
    """Publishes what `status` returns: level, message and values; `what` tells two of one node apart."""

    def __init__(self, node: Node, status: Callable[[], tuple[bytes, str, dict[str, object]]], what: str = "") -> None:
        self._node = node
        self._status = status
        self._name = ": ".join(part for part in (node.get_fully_qualified_name().lstrip("/"), what) if part)
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        node.create_timer(1.0, self.publish)

    def publish(self) -> None:
        """Send the status now."""
        level, message, values = self._status()
        status = DiagnosticStatus(level=level, name=self._name, message=message, hardware_id="")
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)
