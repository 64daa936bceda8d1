"""Measured positions of the links of flexible joints, for `gravity_compensation`."""

import math
import time
from collections.abc import Sequence

from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.shared.joint_states import JointOrder

LINK_STATES = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


class CompensationLinks:
    """Positions of the links as a topic tells them; none where they cannot be believed.

    What a link encoder or a camera says is a help, not a condition: without it the links are where the springs of the
    model file let them sag to, and where it has no springs, where the motors are.

    Args:
        node: listens.
        topic: of `JointState`, joints by the names that they have in joint_states; empty: none.
        joint_names: of the model.
        timeout: s, oldest state of the links that is believed.
        largest_deflection: rad (m) by which a link may be away from its motor.

    Attributes:
        topic: as given.
        problem: why the links' positions are not counted with; empty if they are, or if there is no topic.

    Raises:
        ControlError: a largest deflection that lets none pass.

    """

    def __init__(
        self, node: LifecycleNode, topic: str, joint_names: Sequence[str], *, timeout: float, largest_deflection: float
    ) -> None:
        if not 0.0 < largest_deflection < math.inf:
            raise ControlError(
                f"largest_deflection is {largest_deflection}; expected a finite number of rad (m) above 0"
            )
        self.problem = f"no state of the links has come on {topic} yet" if topic else ""
        self._node = node
        self.topic = topic
        self._names = list(joint_names)
        self._order = JointOrder(joint_names)
        self._timeout = timeout
        self._largest = largest_deflection
        self._message: JointState | None = None
        self._stamp = (0, 0)
        self._received = 0.0
        self._subscription = node.create_subscription(JointState, topic, self._on_state, LINK_STATES) if topic else None

    def at(self, now: float, motors: Sequence[float]) -> list[float] | None:
        """Positions (n,) of the links at `now`, s of the monotonic clock, while the motors are at `motors` (n,)."""
        if self._message is None:
            return None
        try:
            links = self._order.pick(self._message, "position")
        except DynidError as error:
            self.problem = f"{self.topic}: {error}"
            return None
        self.problem = self._doubt(now - self._received, links, motors)
        return None if self.problem else links

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _on_state(self, message: JointState) -> None:
        stamp = (message.header.stamp.sec, message.header.stamp.nanosec)
        if set(self._names).isdisjoint(message.name) or (any(stamp) and stamp == self._stamp):
            return  # of another arm, or the same state sent again
        self._message, self._stamp, self._received = message, stamp, time.monotonic()

    def _doubt(self, age: float, links: Sequence[float], motors: Sequence[float]) -> str:
        if age > self._timeout:
            return f"{self.topic}: no new state of the links for {age:.2f} s"
        for name, link, motor in zip(self._names, links, motors, strict=True):
            if abs(link - motor) > self._largest:
                return (
                    f"{self.topic}: the link of joint '{name}' is {link - motor:+.4f} from its motor; at most "
                    f"{self._largest:g} are believed (parameter largest_deflection)"
                )
        return ""
