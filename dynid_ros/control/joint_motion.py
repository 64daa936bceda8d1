"""Joint velocities and the delay of the control loop, estimated from arriving joint states."""

import math
from collections.abc import Sequence

INTERVAL_SHARE = 0.05
"""Weight of the newest interval between two joint states in their mean."""
MIN_STEP_S = 5e-4
"""Shortest time between two joint states whose positions are differentiated, s."""
FIRST_INTERVAL_S = 0.01
"""Interval that is assumed before two joint states have arrived, s."""
DIFFERENCE_FILTER_INTERVALS = 2.0
"""Time constant of the low-pass for differentiated positions, in intervals of the joint states."""
MEASURED_DELAY_INTERVALS = 2.0
"""Delay of a damping torque by measured velocities, in intervals: one until the controller reads the command, half a
one for the hold of the command, and half a one for the sampling of the driver."""
COMMAND_DELAY_INTERVALS = 1.5
"""Mean delay until a command acts, in intervals: one until the controller reads it, half a one for its hold."""
DIFFERENCE_DELAY_INTERVALS = MEASURED_DELAY_INTERVALS + DIFFERENCE_FILTER_INTERVALS + 0.5


class JointMotion:
    """Velocity of each joint, measured or differentiated, and the delay with which a torque answers it.

    Attributes:
        velocity: (n,) rad/s (m/s); zero before the second joint state.
        interval: mean time between two joint states, s.
    """

    def __init__(self, joints: int) -> None:
        self.velocity = [0.0] * joints
        self.interval = FIRST_INTERVAL_S
        self._age = 0.0
        self._measured = False
        self._time = -math.inf
        self._stamp: float | None = None
        self._position: tuple[float, ...] = ()

    @property
    def delay(self) -> float:
        """Time from a motion to the torque that answers it, s: age of the joint state, controller cycle, filter."""
        intervals = MEASURED_DELAY_INTERVALS if self._measured else DIFFERENCE_DELAY_INTERVALS
        return self._age + intervals * self.interval

    @property
    def command_delay(self) -> float:
        """Mean time from a command to its effect, s."""
        return COMMAND_DELAY_INTERVALS * self.interval

    def update(
        self,
        time: float,
        position: Sequence[float],
        velocity: Sequence[float] | None = None,
        stamp: float | None = None,
        age: float = 0.0,
    ) -> None:
        """Update velocities, interval and delay with one joint state.

        Args:
            time: arrival of the joint state, s of the steady clock.
            position: (n,) rad (m).
            velocity: (n,) rad/s (m/s); None or not finite: the positions are differentiated.
            stamp: s of the driver's clock; None: unknown.
            age: time between measurement and arrival, s; 0: unknown.
        """
        step = self._step(time, stamp)
        if self._position and 0.0 <= step < MIN_STEP_S:
            return  # in a burst of messages, differences of positions are no velocities
        if self._position and 0.0 < step < math.inf:
            self.interval += INTERVAL_SHARE * (min(step, 3.0 * self.interval) - self.interval)
        self._age += INTERVAL_SHARE * (age - self._age)
        self._measured = velocity is not None and all(map(math.isfinite, velocity))
        if velocity is not None and self._measured:
            self.velocity = list(velocity)
        elif self._position and 0.0 < step < math.inf:
            share = 1.0 - math.exp(-step / (DIFFERENCE_FILTER_INTERVALS * self.interval))
            self.velocity = [
                old + share * ((now - before) / step - old)
                for old, now, before in zip(self.velocity, position, self._position, strict=True)
            ]
        self._time = time
        self._stamp = stamp
        self._position = tuple(position)

    def forget(self) -> None:
        """Forget the last position, after a joint state that was rejected."""
        self._position = ()
        self.velocity = [0.0] * len(self.velocity)

    def _step(self, time: float, stamp: float | None) -> float:
        """Return the time since the last joint state, s: from the stamps if they advance, else from the arrivals."""
        if stamp is not None and self._stamp is not None and 0.0 < stamp - self._stamp < 1.0:
            return stamp - self._stamp
        return time - self._time
