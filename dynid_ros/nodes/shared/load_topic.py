"""Optional topics, and the topic of the load that an arm carries."""

from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile

from dynid_ros.control import CarriedLoad
from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.joint_states import nanoseconds
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.topics import LATCHED

LOG_PERIOD_S = 5.0
"""Shortest time between two log messages about one input."""
MAX_CLOCK_DIFFERENCE_NS = 10**9
"""Largest difference between the clocks of two computers."""
LOAD_TOPIC = NodeParameter(
    "load_topic", "load", "latched geometry_msgs/InertiaStamped, the load in the tip link's frame; empty: none"
)


class Listener:
    """Subscription to one topic of a node; no subscription if the name is empty.

    Attributes:
        problem: fault of the last message; empty without one.
        refused: number of refused messages.
    """

    def __init__(self, node: Node, kind: type, topic: str, act: Callable[[Any], None], qos: QoSProfile | int) -> None:
        self.problem = ""
        self.refused = 0
        self._node = node
        self._subscription = node.create_subscription(kind, topic, act, qos) if topic else None

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _refuse(self, problem: str) -> None:
        self.refused += 1
        self.problem = problem
        self._node.get_logger().warning(problem, throttle_duration_sec=LOG_PERIOD_S)


class LoadListener(Listener):
    """Subscription to the load of an arm; a refused load leaves the one in force.

    Args:
        node: node that subscribes.
        topic: name of the topic; empty without one.
        take: function that puts a load in force; it raises `ControlError` to refuse the load.
        in_force: function that returns the load in force, for messages.
    """

    def __init__(
        self, node: Node, topic: str, take: Callable[[CarriedLoad], None], in_force: Callable[[], CarriedLoad | None]
    ) -> None:
        super().__init__(node, InertiaStamped, topic, self._on_message, LATCHED)
        self._take = take
        self._in_force = in_force
        self._stamp = 0

    def _on_message(self, message: InertiaStamped) -> None:
        try:
            load, stamp = published_load(self._node, message, self._stamp)
            self._take(load)
        except ControlError as error:
            self._refuse(f"a load was refused, the one in force stays ({self._in_force() or 'none'}): {error}")
            return
        self.problem = ""
        self._stamp = stamp or self._stamp
        self._node.get_logger().info(f"The load in force is {load}.", throttle_duration_sec=LOG_PERIOD_S)


def published_load(node: Node, message: InertiaStamped, newest: int) -> tuple[CarriedLoad, int]:
    """Return the load of a message and its stamp, ns; 0 without a stamp.

    Args:
        node: node whose clock is compared with the stamp.
        message: the message.
        newest: stamp of the load in force, ns.
    """
    stamp = nanoseconds(message.header)
    ahead = stamp - node.get_clock().now().nanoseconds
    if stamp < 0:
        raise ControlError(f"its stamp is {stamp / 1e9:.1f} s, before the clock began; expected 0 or a time")
    if stamp and ahead > MAX_CLOCK_DIFFERENCE_NS:
        raise ControlError(f"its stamp is {ahead / 1e9:.1f} s in the future; set the clocks")
    if stamp and stamp < newest:
        raise ControlError(f"its stamp is {(newest - stamp) / 1e9:.3f} s older than that of the load in force")
    inertia = message.inertia
    about_center = tuple(getattr(inertia, name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    center = (inertia.com.x, inertia.com.y, inertia.com.z)
    return CarriedLoad(inertia.m, center, message.header.frame_id.lstrip("/"), about_center), stamp
