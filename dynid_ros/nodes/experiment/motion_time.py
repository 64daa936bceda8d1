"""The time in which an arm moves."""

import time
from typing import cast

from rclpy.clock import ROSClock
from rclpy.node import Node

LONGEST_STEP = 0.5
"""s by which simulated time may go on between two looks; more is a jump."""


class MotionTime:
    """Seconds that pass by the clock that the arm's controller has; they never jump.

    On a robot that is the computer's steady clock, which nobody sets. With `use_sim_time` it is the simulation's. Where
    that jumps, or one takes the place of the other, this time stands still, so that a motion can be brought to rest
    from where it is.
    """

    def __init__(self, node: Node) -> None:
        self._clock = cast(ROSClock, node.get_clock())
        self._simulated, self._reading = self._read()
        self._now = self._jump = 0.0
        self._advanced = time.monotonic()

    @property
    def stalled(self) -> float:
        """For how long the clock has been standing still, s."""
        self.now()
        return time.monotonic() - self._advanced

    def now(self) -> float:
        """The time, s; to be asked for at a steady rate while the arm moves."""
        before = self._simulated, self._reading
        self._simulated, self._reading = self._read()
        step = self._reading - before[1]
        if step:
            self._advanced = time.monotonic()
        if self._simulated == before[0] and (not self._simulated or 0.0 <= step <= LONGEST_STEP):
            self._now += step
        else:
            self._jump = self._jump or step
        return self._now

    def take_jump(self) -> float:
        """By how much the clock has jumped, s; 0 if it has not, and from then on until it does again."""
        self.now()
        jump, self._jump = self._jump, 0.0
        return jump

    def _read(self) -> tuple[bool, float]:
        simulated = self._clock.ros_time_is_active
        return simulated, self._clock.now().nanoseconds * 1e-9 if simulated else time.monotonic()
