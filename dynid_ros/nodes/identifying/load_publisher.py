"""The load that an arm carries on a latched topic, for those who reckon with it."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node

from dynid_ros.identification import LoadResult
from dynid_ros.nodes.shared.robot_description import LATCHED


class LoadPublisher:
    """Tells of loads that are decided, and of nothing else.

    Args:
        node: that publishes.
        topic: of `InertiaStamped`.
        frame: the tip link, in which all numbers are.
        largest_error: half width of the mass's 95 % interval over the mass, up to which a load is decided.
        smallest_load: mass, kg, below which the whole interval must be for there to be no load.

    Attributes:
        mass: kg, as told last; None: nothing was told.

    """

    def __init__(self, node: Node, topic: str, frame: str, *, largest_error: float, smallest_load: float) -> None:
        self.mass: float | None = None
        self._node, self._frame = node, frame
        self._largest_error, self._smallest_load = largest_error, smallest_load
        self._publisher = node.create_publisher(InertiaStamped, topic, LATCHED)

    def tell(self, result: LoadResult) -> bool:
        """Publish the load, or that there is none, if the data decide it; returns whether they do."""
        low, high = result.confidence_intervals()[0]
        if high < self._smallest_load:
            self.tell_none()
            return True
        if not (low > 0 and high - low < 2 * self._largest_error * result.mass):
            return False
        body = result.possible
        message = self._message(body.mass)
        inertia = message.inertia
        inertia.com.x, inertia.com.y, inertia.com.z = map(float, body.center)
        # NaN where it is not known: at rest no inertia shows.
        inertia.ixx, inertia.ixy, inertia.ixz, inertia.iyy, inertia.iyz, inertia.izz = map(
            float, body.inertia[np.triu_indices(3)]
        )
        self._publish(message)
        return True

    def tell_none(self) -> None:
        """Publish a mass of zero."""
        self._publish(self._message(0.0))

    def _message(self, mass: float) -> InertiaStamped:
        message = InertiaStamped()
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = self._frame
        message.inertia.m = mass
        return message

    def _publish(self, message: InertiaStamped) -> None:
        self.mass = message.inertia.m
        self._publisher.publish(message)
