"""A hand that leads the arm of the demo: a spring between the hand and a link."""

import time
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray
from rclpy.node import Node

from dynid_ros.demo.arm import DemoArm
from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel

PUSH_TOPIC = "/simulator/push"
PUSH_RATE_HZ = 50.0
HAND_SPEED_M_S = 0.2
STIFFNESS_N_M = 600.0
DAMPING_N_S_M = 80.0
MAX_FORCE_N = 60.0
HOLD_TIME_S = 0.6
"""Time for which the hand holds the arm at the end of a lead."""
MAX_STATE_AGE_S = 0.1
"""Largest age of a joint state that the hand pulls by."""
MAX_WAIT_S = 120.0


def link_origins(robot: RobotModel, link: str, position: NDArray) -> NDArray:
    """Return the origin of a link in the base frame (T, 3), m, for positions (T, n)."""
    return robot.forward_kinematics(position)[:, robot.link_names.index(link), :3, 3]


class Hand:
    """Pulls a link along; the nodes perceive only the motion of the arm.

    Args:
        node: node of the coordinator.
        arm: arm, which must be listened to.
        link: link that is held at the origin of its frame; the simulator has it as its parameter `push_link`.

    Attributes:
        forces: stamps, s, and sizes of the force, N.
        leads: stamps of start and end of each lead, s.
    """

    def __init__(self, node: Node, arm: DemoArm, link: str) -> None:
        self._node = node
        self._arm = arm
        self._link = link
        self._publisher = node.create_publisher(WrenchStamped, PUSH_TOPIC, 10)
        self.forces: list[tuple[float, float]] = []
        self.leads: list[tuple[float, float]] = []

    def lead(self, displacement: Sequence[float]) -> None:
        """Lead the link by a displacement (3,) in the base frame, m, and let go."""
        start = place = self._link_origin()
        target = np.asarray(displacement, float)
        duration = float(np.linalg.norm(target)) / HAND_SPEED_M_S
        first = self._arm.track[-1][0]
        elapsed = 0.0
        before = time.monotonic()
        deadline = before + MAX_WAIT_S
        while elapsed < duration + HOLD_TIME_S:
            self._arm.wait(before + 1.0 / PUSH_RATE_HZ - time.monotonic())
            last = place
            place = self._link_origin()
            now = time.monotonic()
            step = now - before
            before = now
            if self._state_age() > MAX_STATE_AGE_S:
                self._pull(np.zeros(3))
                if now > deadline:
                    raise DynidError("joint states come too late for a hand to lead the arm; the machine is too busy")
                continue
            elapsed += min(step, MAX_STATE_AGE_S)
            hand = start + target * min(elapsed / duration, 1.0)
            force = STIFFNESS_N_M * (hand - place) - DAMPING_N_S_M * (place - last) / step
            self._pull(force * min(1.0, MAX_FORCE_N / max(float(np.linalg.norm(force)), 1e-9)))
        self._pull(np.zeros(3))
        self.leads.append((first, self._arm.track[-1][0]))

    def _state_age(self) -> float:
        """Return the age of the last joint state, s."""
        return self._node.get_clock().now().nanoseconds * 1e-9 - self._arm.track[-1][0]

    def _link_origin(self) -> NDArray:
        return link_origins(self._arm.robot, self._link, np.array([self._arm.track[-1][1]]))[0]

    def _pull(self, force: NDArray) -> None:
        message = WrenchStamped()
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force.tolist()
        self._publisher.publish(message)
        self.forces.append((self._arm.track[-1][0], float(np.linalg.norm(force))))
