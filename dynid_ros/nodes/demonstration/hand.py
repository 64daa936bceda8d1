"""A hand that leads the demo's arm: a spring between both."""

import time
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray
from rclpy.node import Node

from dynid_ros.errors import DynidError
from dynid_ros.jobs.demonstration.guiding import place_of
from dynid_ros.nodes.demonstration.arm import DemoArm

PUSH_TOPIC = "/simulator/push"
RATE = 50.0
"""Of the pushes, Hz."""
SPEED = 0.2
"""Of the hand, m/s."""
STIFFNESS, DAMPING, LARGEST_FORCE = 600.0, 80.0, 60.0
"""Of the spring, N/m and N s/m, and N."""
HOLD = 0.6
"""For which the hand holds the arm at the end of the way, s."""
STALE, TIMEOUT = 0.1, 120.0
"""s. A hand feels at once where the arm is: it pulls by fresh joint states only, and waits for them so long."""


class Hand:
    """Pulls a link along; the nodes notice it as they would a human's, by nothing but the arm's motion.

    Args:
        node: of the coordinator.
        arm: is listened to while it is led.
        link: that is held, at the origin of its frame; the simulator is told by its parameter `push_link`.

    Attributes:
        forces: stamps, s, and sizes, N.
        led: stamps of begin and end of each lead, s.

    """

    def __init__(self, node: Node, arm: DemoArm, link: str) -> None:
        self._node, self._arm, self._link = node, arm, link
        self._push = node.create_publisher(WrenchStamped, PUSH_TOPIC, 10)
        self.forces: list[tuple[float, float]] = []
        self.led: list[tuple[float, float]] = []

    def lead(self, way: Sequence[float]) -> None:
        """Take the link by `way` (3,), in the base frame, m; then let go.

        Raises:
            DynidError: joint states come too late, all the time.

        """
        start, far = self._place(), np.asarray(way, float)
        duration, past = float(np.linalg.norm(far)) / SPEED, 0.0
        first, place, before = self._arm.track[-1][0], start, time.monotonic()
        deadline = before + TIMEOUT
        while past < duration + HOLD:
            self._arm.wait(before + 1.0 / RATE - time.monotonic())
            now, last, place = time.monotonic(), place, self._place()
            step, before = now - before, now
            if self._age() > STALE:
                self._pull(np.zeros(3))
                if now > deadline:
                    raise DynidError("joint states come too late for a hand to lead the arm; the machine is too busy")
                continue
            past += min(step, STALE)
            hand = start + far * min(past / duration, 1.0)
            force = STIFFNESS * (hand - place) - DAMPING * (place - last) / step
            self._pull(force * min(1.0, LARGEST_FORCE / max(float(np.linalg.norm(force)), 1e-9)))
        self._pull(np.zeros(3))
        self.led.append((first, self._arm.track[-1][0]))

    def _age(self) -> float:
        """Of the last joint state, s."""
        return self._node.get_clock().now().nanoseconds * 1e-9 - self._arm.track[-1][0]

    def _place(self) -> NDArray:
        return place_of(self._arm.robot, self._link, np.array([self._arm.track[-1][1]]))[0]

    def _pull(self, force: NDArray) -> None:
        message = WrenchStamped()
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force.tolist()
        self._push.publish(message)
        self.forces.append((self._arm.track[-1][0], float(np.linalg.norm(force))))
