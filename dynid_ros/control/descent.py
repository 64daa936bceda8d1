"""How an arm that was held by gravity compensation is put down: held for a while, then lowered at a bounded speed."""

import math
from collections.abc import Sequence

END_SPEED_FACTOR = 2.0
"""Factor on the descent speed where the process must end soon."""
REST_SPEED = 0.02
"""rad/s (m/s) below which a joint is at rest."""
REST_S = 0.3
"""Time at rest after which nothing needs to be braked any more, s."""
MAX_BRAKING_S = 5.0
"""Longest time for which an arm is braked that no gravity torque holds any more, s."""
MAX_LOWERING_S = 60.0
"""Longest time for which a lowering waits for the motion, s; afterwards the torque ramps out whatever the arm does."""
MAX_RAMP_S = 10.0
"""Longest duration of a lowering ramp that the stability of the loop may ask for, s."""


class Descent:
    """Pace at which the torque goes to zero, by what the arm does.

    The arm is held until `hold_until`. Then the scale of the torque falls at the pace of the ramp while the arm rests,
    stays where a joint sinks at the descent speed, and rises where it sinks faster. A joint therefore sinks no faster
    than about that speed, until it hangs or lies on something.

    Args:
        hold_until: s of the steady clock.
        ramp_time: duration of the ramp to zero of an arm that does not move, s.
        speed: rad/s (m/s).
        ends: s of the steady clock, after which the ramp waits no longer; None: a minute after the hold.
    """

    def __init__(self, hold_until: float, ramp_time: float, speed: float, ends: float | None = None) -> None:
        self.hold_until = hold_until
        self.ends = hold_until + MAX_LOWERING_S if ends is None else ends
        self._ramp_time = ramp_time
        self._speed = speed
        self._moved = -math.inf
        self._empty_since: float | None = None

    def pace(self, time: float, velocity: Sequence[float], brakes: bool) -> float:
        """Return the change of the scale, 1/s.

        Args:
            time: s of the steady clock.
            velocity: (n,) rad/s (m/s).
            brakes: whether the arm can be braked; without, the ramp does not follow the motion.
        """
        fastest = max(map(abs, velocity), default=0.0)
        if fastest > REST_SPEED:
            self._moved = time
        if time < self.hold_until:
            return 0.0
        ratio = fastest / self._speed if brakes and time < self.ends else 0.0
        return min(max(ratio - 1.0, -1.0), 1.0) / self._ramp_time

    def done(self, time: float, scale: float) -> bool:
        """Return whether nothing needs to be commanded any more: no gravity torque is left, and the arm rests."""
        if scale > 0.0:
            self._empty_since = None
            return False
        if self._empty_since is None:
            self._empty_since = time
        return time - self._moved > REST_S or time - self._empty_since > MAX_BRAKING_S
