"""Torques as a controller gets them, and the proof that they never step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory

JITTER = 0.03
"""s that a busy machine may let pass between the computation of a torque and its publication."""


class CommandWatch:
    """Callback of a subscription that keeps each command with the time, s, at which it was sent."""

    def __init__(self) -> None:
        self.commands: list[tuple[float, Any]] = []
        self.foreign: list[float] = []  # a command of somebody else, which is no command of the node

    def __call__(self, message: Any, info: dict) -> None:
        if self.foreign and torque_of(message) == self.foreign:
            return
        self.commands.append((info["source_timestamp"] * 1e-9, message))

    def torques(self) -> list[list[float]]:
        """One row for each command, N m."""
        return [torque_of(message) for _, message in list(self.commands)]

    def check(self, rate: float, limit: float, late: float = 0.0, start: Sequence[float] | None = None) -> None:
        """All torques are finite and within the limit, none went faster than the rate, from what acted before them.

        Between any two commands, not just neighbours: the jitter of many small steps does not add up. Commands that a
        busy machine loses do no harm, the torque had time meanwhile.

        Args:
            rate: N m/s.
            limit: N m.
            late: by how much the machine was seen to be late in the same run, s.
            start: torques that acted before the first command, N m; None: zero.
        """
        if not self.commands:
            return
        times = np.array([time for time, _ in self.commands])
        torques = np.array(self.torques())
        assert np.isfinite(torques).all(), "a torque that is not finite was commanded"
        assert np.abs(torques).max() <= limit + 1e-9, (
            f"{np.abs(torques).max()} N m were commanded, the limit is {limit}"
        )
        first = np.abs(torques[0] - (0.0 if start is None else np.array(start))).max()
        assert first <= rate * (JITTER + late), f"the first torque is {first:.3f} N m from the one that acted before"
        for sign in (1.0, -1.0):
            ahead = sign * torques - rate * (times - times[0])[:, np.newaxis]
            faster = np.max(ahead - np.minimum.accumulate(ahead, axis=0))
            assert faster <= rate * (JITTER + late), (
                f"the torque went {faster:.3f} N m further than {rate:g} N m/s allow"
            )


def torque_of(message: Any) -> list[float]:
    """Torques of a command, whatever its type."""
    return list(message.points[0].effort if isinstance(message, JointTrajectory) else message.data)
