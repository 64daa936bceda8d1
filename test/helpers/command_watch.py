"""Record the torques of commands, and assert that they never step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory

JITTER_S = 0.03
"""Time in s between the computation of a torque and its publication on a busy computer."""


class CommandWatch:
    """Callback of a subscription that stores each command with the time in s at which it was sent."""

    def __init__(self) -> None:
        self.commands: list[tuple[float, Any]] = []
        self.foreign: list[float] = []  # command of another node, which is ignored

    def __call__(self, message: Any, info: dict) -> None:
        if self.foreign and torque_of(message) == self.foreign:
            return
        self.commands.append((info["source_timestamp"] * 1e-9, message))

    def torques(self) -> list[list[float]]:
        """Return the torques of all commands in N m."""
        return [torque_of(message) for _, message in list(self.commands)]

    def check(self, rate: float, limit: float, late: float = 0.0, start: Sequence[float] | None = None) -> None:
        """Assert that all torques are finite, within the limit, and changed no faster than the rate.

        All pairs of commands are compared, so the jitter of many small steps does not add up. Commands that a busy
        computer loses do no harm, because the torque had time meanwhile.

        Args:
            rate: largest rate in N m/s.
            limit: largest torque in N m.
            late: largest delay of the computer in the same run in s.
            start: torques in N m that acted before the first command; None: zero.
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
        assert first <= rate * (JITTER_S + late), f"the first torque is {first:.3f} N m from the one that acted before"
        for sign in (1.0, -1.0):
            advance = sign * torques - rate * (times - times[0])[:, np.newaxis]
            excess = np.max(advance - np.minimum.accumulate(advance, axis=0))
            assert excess <= rate * (JITTER_S + late), (
                f"the torque went {excess:.3f} N m further than {rate:g} N m/s allow"
            )


def torque_of(message: Any) -> list[float]:
    """Return the torques of a command of any type."""
    return list(message.points[0].effort if isinstance(message, JointTrajectory) else message.data)
