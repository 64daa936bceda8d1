"""Controlled descent of an arm: gravity compensation holds it for a while, then lowers it at a bounded speed."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import Timing
from dynid_ros.control.joint_brake import JointBrake

END_SPEED_FACTOR = 2.0
"""Factor on the descent speed if the process must end soon."""
REST_SPEED = 0.02
"""Speed below which a joint is at rest, rad/s (m/s)."""
REST_S = 0.3
"""Time at rest after which the brakes are released, s."""
MAX_BRAKING_S = 5.0
"""Longest braking after the gravity torque has reached zero, s."""
MAX_LOWERING_S = 60.0
"""Longest time for which the lowering waits for the motion, s; then the torque ramps out at a fixed pace."""
MAX_RAMP_S = 10.0
"""Longest lowering ramp, s, even if stability of the loop needs a slower one."""


class Descent:
    """Pace at which the torque goes to zero, controlled by the motion of the arm.

    The arm is held until `hold_until`. Then the scale of the torque falls at the pace of the ramp while the arm rests,
    stays constant while a joint sinks at the descent speed, and rises while a joint sinks faster. Each joint therefore
    sinks at about that speed at most, until it hangs or lies on a support.

    Args:
        hold_until: end of the hold, s of the steady clock.
        ramp_time: duration of the ramp to zero for an arm at rest, s.
        speed: descent speed of each joint, rad/s (m/s).
        ends: s of the steady clock, after which the ramp waits no longer; None: a minute after the hold.
    """

    def __init__(self, hold_until: float, ramp_time: float, speed: float, ends: float | None = None) -> None:
        self.hold_until = hold_until
        self.ends = hold_until + MAX_LOWERING_S if ends is None else ends
        self._ramp_time = ramp_time
        self._speed = speed
        self._moved = -math.inf
        self._empty_since: float | None = None

    @classmethod
    def plan(
        cls, hold_until: float, timing: Timing, brake: JointBrake | None, delay: float, ends: float | None
    ) -> "Descent":
        """Return a descent that does not make the arm swing.

        Args:
            hold_until: end of the hold, s of the steady clock.
            timing: duration of the ramp, which is longer if the brake needs that, and speed.
            brake: damping of the loop; None: joints are not braked.
            delay: delay of the loop, s.
            ends: time by which the descent must end, which makes it faster, s; None: no such time.
        """
        ramp_time = timing.ramp_time
        speed = timing.descent_speed if ends is None else END_SPEED_FACTOR * timing.descent_speed
        if brake is not None:
            ramp_time = max(ramp_time, min(brake.lowering_time(delay, speed), MAX_RAMP_S))
        return cls(hold_until, ramp_time, speed, ends)

    def pace(self, time: float, velocity: Sequence[float], brakes: bool) -> float:
        """Return the change of the scale, 1/s.

        Args:
            time: s of the steady clock.
            velocity: (n,) rad/s (m/s).
            brakes: whether the arm can be braked; otherwise the ramp ignores the motion.
        """
        fastest = max(map(abs, velocity), default=0.0)
        if fastest > REST_SPEED:
            self._moved = time
        if time < self.hold_until:
            return 0.0
        ratio = fastest / self._speed if brakes and time < self.ends else 0.0
        return min(max(ratio - 1.0, -1.0), 1.0) / self._ramp_time

    def done(self, time: float, scale: float) -> bool:
        """Return whether the descent has ended: the gravity torque is zero and the arm rests."""
        if scale > 0.0:
            self._empty_since = None
            return False
        if self._empty_since is None:
            self._empty_since = time
        return time - self._moved > REST_S or time - self._empty_since > MAX_BRAKING_S
