"""Ramps of a commanded torque: in, out, and from one model to another, with bounded steps between two commands."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import JointSettings

MAX_STEP_PERIODS = 3.0
"""Largest time step of the ramp, in mean periods of the commands; after a longer gap the ramp continues later."""
LOAD_CHANGE_S = 0.3
"""Longest ramp after a change of load, s; during a longer one an arm that holds the load would sink."""
MIN_STEP_PERIOD_S = 0.01
"""Smallest period for that limit, s: the period of the watch, which drives ramps without joint states."""
PERIOD_SHARE = 0.1
"""Weight of the newest interval in the mean period."""


class TorqueRamp:
    """Torque `scale · target + weight · start`: the torque of the beginning gives way while the target comes in.

    Both weights change with time: `scale` up or down, the weight of the start down alone. A ramp in therefore goes
    from the start to the target on a straight line, and a ramp that reverses takes both to zero.

    This torque changes by at most the joint's rate times the time between two commands, and that time counts for at
    most `MAX_STEP_PERIODS` mean periods: after a gap in the joint states the torque does not catch up at once. Brakes
    come on top, as a rate limit would delay them and make the arm swing. They are continuous in the arm's motion.

    Attributes:
        torque: (n,) last command, N m (N).
        scale: weight of the target, 0 to 1.
        weight: weight of the start, 0 to 1.
    """

    def __init__(self, joints: int) -> None:
        self.torque = [0.0] * joints
        self.scale = 0.0
        self.weight = 0.0
        self._unbraked = [0.0] * joints  # last command without the brakes
        self._start = [0.0] * joints
        self._time = -math.inf
        self._held_until = -math.inf
        self._period = MIN_STEP_PERIOD_S

    def begin(self, start: Sequence[float]) -> None:
        """Start the ramp at `start` (n,), N m (N), with the next step."""
        self.torque = list(start)
        self._unbraked = list(start)
        self._start = list(start)
        self.scale = 0.0
        self.weight = 1.0
        self._time = math.inf
        self._held_until = -math.inf

    def shift(self, difference: Sequence[float]) -> None:
        """Add `difference` (n,), N m (N), old target minus new one, which then fades as the start does."""
        self._start = [
            self.weight * start + self.scale * change for start, change in zip(self._start, difference, strict=True)
        ]
        self.weight = 1.0

    def fade(self, time: float) -> list[float]:
        """Start the ramp to zero and return the torque (n,) that fades, N m (N)."""
        self.scale = 1.0
        self.weight = 0.0
        self._time = time  # the ramp begins now: the time since the last command would be a step
        self._held_until = -math.inf
        self._unbraked = list(self.torque)
        return list(self.torque)

    def hold(self, until: float = -math.inf) -> None:
        """Keep the torque constant up to that time; a time in the past ends the hold."""
        self._held_until = until

    def clear(self) -> None:
        """Set the torque to zero at once, because commands have no effect."""
        self.torque = [0.0] * len(self.torque)
        self._unbraked = [0.0] * len(self.torque)
        self.weight = 0.0

    def elapsed(self, time: float) -> float:
        """Return the time since the last command that counts, s."""
        longest = MAX_STEP_PERIODS * max(self._period, MIN_STEP_PERIOD_S)
        return min(max(time - self._time, 0.0), longest)

    def step(
        self,
        time: float,
        target: Sequence[float],
        joints: JointSettings,
        pace: float,
        *,
        weight_pace: float | None = None,
        brake: Sequence[float] | None = None,
    ) -> list[float]:
        """Return the torque (n,) at `time`.

        Args:
            time: s of the steady clock.
            target: (n,) torque at scale 1, N m (N).
            joints: limits and rates.
            pace: change of the scale, 1/s; negative: out.
            weight_pace: change of the weight of the start, 1/s; None: minus the magnitude of `pace`.
            brake: (n,) torque that is added without scale and rate limit, N m (N); None without brakes.
        """
        if time < self._held_until:
            self._time = max(time, self._time)
            return list(self.torque)
        elapsed = self.elapsed(time)
        if math.isfinite(self._time) and time > self._time:
            interval = min(time - self._time, 2.0 * self._period)
            self._period += PERIOD_SHARE * (interval - self._period)
        self._time = time if math.isinf(self._time) else max(time, self._time)
        fade = -abs(pace) if weight_pace is None else weight_pace
        self.scale = min(max(self.scale + elapsed * pace, 0.0), 1.0)
        self.weight = min(max(self.weight + elapsed * fade, 0.0), 1.0)
        for i, (last, start, value, limit, rate) in enumerate(
            zip(self._unbraked, self._start, target, joints.torque, joints.rate, strict=True)
        ):
            step = rate * elapsed
            wanted = self.scale * value + min(max(self.weight * start, -limit), limit)
            self._unbraked[i] = min(max(wanted, last - step), last + step)
        if brake is None:
            self.torque = list(self._unbraked)
        else:
            rows = zip(self._unbraked, brake, joints.torque, strict=True)
            self.torque = [min(max(value + more, -limit), limit) for value, more, limit in rows]
        return list(self.torque)
