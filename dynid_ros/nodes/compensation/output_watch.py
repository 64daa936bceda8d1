"""Comparison of the torques that a controller applies with the commands sent to it.

`joint_trajectory_controller` publishes its commands to the hardware, if `control_msgs` is installed.
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

MAX_COMMAND_DELAY_S = 0.1
"""Longest delay of a command, s; the output must lie between the commands of that time."""
MIN_DEVIATION_S = 0.1
"""Duration of a deviation before it is reported, s."""
MAX_DEVIATION_FRACTION = 0.05
"""Largest tolerated deviation of the output, as a fraction of a joint's torque limit."""
MIN_DEVIATING_SAMPLES = 3
"""Number of deviating samples before a deviation is reported; two may both be late."""


class OutputWatch:
    """Comparison of commands and outputs of one controller, each (n,), N m (N)."""

    def __init__(self, names: Sequence[str], limits: Sequence[float]) -> None:
        self._names = list(names)
        self._allowed = [MAX_DEVIATION_FRACTION * limit for limit in limits]
        self._sent: deque[tuple[float, list[float]]] = deque()
        self._deviation: tuple[float, int] | None = None  # time of the first deviating sample, and their number

    def sent(self, time: float, torque: Sequence[float]) -> None:
        """Record a command."""
        self._sent.append((time, list(torque)))
        self._forget(time)

    def clear(self) -> None:
        """Forget all commands."""
        self._sent.clear()
        self._deviation = None

    def seen(self, time: float, output: Sequence[float]) -> str:
        """Compare an output with the commands; return a message after a persistent deviation, otherwise empty."""
        self._forget(time)
        problem = self._difference(output) if self._sent else ""
        if not problem:
            self._deviation = None
            return ""
        since, count = self._deviation or (time, 0)
        self._deviation = since, count + 1
        return problem if time - since >= MIN_DEVIATION_S and count + 1 >= MIN_DEVIATING_SAMPLES else ""

    def _forget(self, time: float) -> None:
        """Drop commands older than the delay, except the one in force at its beginning."""
        while len(self._sent) > 1 and self._sent[1][0] <= time - MAX_COMMAND_DELAY_S:
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


MAX_REPORT_AGE_S = 0.5
"""Largest age of a report of the output, s; an active controller publishes one in each of its periods."""
NEWEST_ONLY = QoSProfile(depth=1)


class ControllerOutput:
    """Output of a controller, from `<controller>/controller_state`.

    Its field `output` is read back from the command interfaces (ros2_controllers 4.42.1,
    joint_trajectory_controller.cpp, `publish_state`).

    Args:
        node: node that subscribes.
        controller: name of the controller.
        joints: limits of the model's joints.
        controlled: names of the controller's joints.

    Attributes:
        problem: message that the output differs from the commands; empty if it agrees or is unknown.
    """

    def __init__(self, node: Node, controller: str, joints: JointSettings, controlled: Sequence[str]) -> None:
        self.problem = ""
        self._node = node
        self._joints = list(joints.names)
        self._index = [self._joints.index(name) for name in controlled]
        self._watch = OutputWatch(controlled, [joints.torque[i] for i in self._index])
        self._received = -math.inf
        self._effort: list[float] | None = None
        self._positions: list[float] | None = None
        kind = message_type("control_msgs", "JointTrajectoryControllerState")
        topic = f"{controller}/controller_state"
        self._subscription = None if kind is None else node.create_subscription(kind, topic, self.on_state, NEWEST_ONLY)

    def on_state(self, message: Any) -> None:
        """Process a message `control_msgs/JointTrajectoryControllerState`."""
        now = time.monotonic()
        self._received = now
        names = list(message.joint_names)
        output = message.output
        self._effort = self._picked(names, output.effort)
        self._positions = self._picked(names, output.positions)
        if self._effort is not None:
            self.problem = self._watch.seen(now, [self._effort[i] for i in self._index])

    def sent(self, now: float, torque: Sequence[float]) -> None:
        """Record a command."""
        self._watch.sent(now, [torque[i] for i in self._index])

    def rest(self) -> None:
        """Forget the commands, because no command is sent any longer."""
        self.problem = ""
        self._watch.clear()

    def effort(self, now: float) -> list[float] | None:
        """Return the torques (n,) that the controller applies, N m (N); None if unknown."""
        return self._effort if now - self._received < MAX_REPORT_AGE_S and finite(self._effort) else None

    def positions(self, now: float) -> list[float] | None:
        """Return the positions (n,) that the controller commands, rad (m); None if unknown."""
        return self._positions if now - self._received < MAX_REPORT_AGE_S and finite(self._positions) else None

    def destroy(self) -> None:
        """Remove the topic from the node."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _picked(self, names: list[str], values: Sequence[float]) -> list[float] | None:
        """Return values in the model's joint order, zero for joints that the controller lacks; None without values."""
        if len(values) != len(names):
            return None
        by_name = dict(zip(names, values, strict=True))
        return [by_name.get(name, 0.0) for name in self._joints]


def finite(values: Sequence[float] | None) -> bool:
    """Return whether values exist and all of them are finite."""
    return values is not None and all(map(math.isfinite, values))
