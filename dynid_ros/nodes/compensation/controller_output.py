"""What `joint_trajectory_controller` says of its commands to the hardware, where `control_msgs` is installed."""

import math
import time
from collections.abc import Sequence
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from dynid_ros.control import JointSettings
from dynid_ros.nodes.compensation.output_watch import OutputWatch
from dynid_ros.nodes.shared.controller_watch import message_type

FRESH = 0.5
"""s for which a message tells what acts; while the controller is active there is one in each of its periods."""
NEWEST = QoSProfile(depth=1)


class ControllerOutput:
    """Listens to `<controller>/controller_state`, whose `output` is read back from the command interfaces.

    ros2_controllers 4.42.1, joint_trajectory_controller.cpp, `publish_state`.

    Args:
        node: listens.
        controller: name of the controller's node.
        joints: settings of the model's joints.
        controlled: names of those that the controller has.

    Attributes:
        problem: how the torques that act differ from those that were sent; empty: they do not, or nobody knows.

    """

    def __init__(self, node: Node, controller: str, joints: JointSettings, controlled: Sequence[str]) -> None:
        self.problem = ""
        self._node = node
        self._joints = list(joints.names)
        self._index = [self._joints.index(name) for name in controlled]
        self._watch = OutputWatch(controlled, [joints.torque[i] for i in self._index])
        self._heard = -math.inf
        self._effort: list[float] | None = None
        self._positions: list[float] | None = None
        kind = message_type("control_msgs", "JointTrajectoryControllerState")
        topic = f"{controller}/controller_state"
        self._subscription = None if kind is None else node.create_subscription(kind, topic, self.on_state, NEWEST)

    def on_state(self, message: Any) -> None:
        """Take `control_msgs/JointTrajectoryControllerState`."""
        self._heard = now = time.monotonic()
        names, output = list(message.joint_names), message.output
        self._effort = self._picked(names, output.effort)
        self._positions = self._picked(names, output.positions)
        if self._effort is not None:
            self.problem = self._watch.seen(now, [self._effort[i] for i in self._index])

    def sent(self, now: float, torque: Sequence[float]) -> None:
        """Take note of a command."""
        self._watch.sent(now, [torque[i] for i in self._index])

    def rest(self) -> None:
        """Nothing is commanded any longer."""
        self.problem = ""
        self._watch.clear()

    def effort(self, now: float) -> list[float] | None:
        """Torques (n,) that act, N m (N); None: nobody knows."""
        return self._effort if now - self._heard < FRESH and finite(self._effort) else None

    def positions(self, now: float) -> list[float] | None:
        """Positions (n,) that are commanded, rad (m); None: nobody knows."""
        return self._positions if now - self._heard < FRESH and finite(self._positions) else None

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _picked(self, names: list[str], values: Sequence[float]) -> list[float] | None:
        """In the model's order; None where they are not there. A joint that the controller lacks has zero."""
        if len(values) != len(names):
            return None
        found = dict(zip(names, values, strict=True))
        return [found.get(name, 0.0) for name in self._joints]


def finite(values: Sequence[float] | None) -> bool:
    """Whether they are there, and each is a number."""
    return values is not None and all(map(math.isfinite, values))
