"""Compares the torques that a controller puts out with those that were sent to it.

`joint_trajectory_controller` says what it commands to the hardware, where `control_msgs` is installed.
"""

import math
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from dynid_ros.control import JointSettings
from dynid_ros.nodes.shared.controllers import message_type

WINDOW = 0.1
"""s for which a command may be on its way; what is put out lies between the commands of that time."""
GRACE = 0.1
"""s for which it may lie elsewhere."""
PART = 0.05
"""Largest deviation of the output, in parts of a joint's torque limit."""
SAMPLES = 3
"""Least number of samples that must agree; two may be of one late moment each."""


class OutputWatch:
    """Knows commands and outputs of one controller, each (n,) N m (N), and says when they part."""

    def __init__(self, names: Sequence[str], limits: Sequence[float]) -> None:
        self._names = list(names)
        self._allowed = [PART * limit for limit in limits]
        self._sent: deque[tuple[float, list[float]]] = deque()
        self._apart: tuple[float, int] | None = None  # since when, and in how many samples

    def sent(self, time: float, torque: Sequence[float]) -> None:
        """Take note of a command."""
        self._sent.append((time, list(torque)))
        self._forget(time)

    def clear(self) -> None:
        """Forget all commands, as nothing is commanded."""
        self._sent.clear()
        self._apart = None

    def seen(self, time: float, output: Sequence[float]) -> str:
        """Take what is put out now; what is wrong in words, empty: nothing, or not for long enough."""
        self._forget(time)
        problem = self._difference(output) if self._sent else ""
        if not problem:
            self._apart = None
            return ""
        since, count = self._apart or (time, 0)
        self._apart = since, count + 1
        return problem if time - since >= GRACE and count + 1 >= SAMPLES else ""

    def _forget(self, time: float) -> None:
        """Keep the commands of the last while, and the one that was in force when it began."""
        while len(self._sent) > 1 and self._sent[1][0] <= time - WINDOW:
            self._sent.popleft()

    def _difference(self, output: Sequence[float]) -> str:
        if len(output) != len(self._names):
            return f"it has {len(output)} efforts for {len(self._names)} joints"
        commands = [torque for _, torque in self._sent]
        for i, (name, value, allowed) in enumerate(zip(self._names, output, self._allowed, strict=True)):
            column = [torque[i] for torque in commands]
            if not min(column) - allowed <= value <= max(column) + allowed:
                return f"joint '{name}' gets {value:.3g} N m (N), not the {column[-1]:.3g} that were sent"
        return ""


FRESH = 0.5
"""s for which a message says what acts; while the controller is active there is one in each of its periods."""
NEWEST = QoSProfile(depth=1)


class ControllerOutput:
    """Listens to `<controller>/controller_state`, whose `output` is read back from the command interfaces.

    ros2_controllers 4.42.1, joint_trajectory_controller.cpp, `publish_state`. `controlled` names the joints that the
    controller has.

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
