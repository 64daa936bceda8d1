"""Torques on their way: from what acts to a target, and from there to zero, no faster than the rates allow."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import JointSettings


class TorqueRamp:
    """Torque `scale · target + weight · start`: what acted at the beginning gives way as the target comes in.

    Both weights change by the time since the last command over the length of the ramp: `scale` up or down, that of the
    start down alone. So a ramp in goes from the start to the target on a straight line, and one that turns round on its
    way takes what is left of both to zero.

    Attributes:
        torque: (n,) last command, N m (N).
        scale: weight of the target, 0 to 1.

    """

    def __init__(self, joints: int) -> None:
        self.torque = [0.0] * joints
        self.scale = 0.0
        self._start = [0.0] * joints
        self._weight = 0.0
        self._time = -math.inf
        self._held_until = -math.inf

    def begin(self, start: Sequence[float]) -> None:
        """Begin at `start` (n,), N m (N), with the next step, however late that is."""
        self.torque, self._start = list(start), list(start)
        self.scale, self._weight = 0.0, 1.0
        self._time = math.inf
        self._held_until = -math.inf

    def fade(self, time: float) -> list[float]:
        """Begin the way to zero; the torque (n,) that fades."""
        self.scale, self._weight = 1.0, 0.0
        self._time = time  # the ramp begins now: the time since the last command would be a step
        self._held_until = -math.inf
        return list(self.torque)

    def hold(self, until: float = -math.inf) -> None:
        """Keep the torque as it is up to that time; a time that is over: no longer."""
        self._held_until = until

    def clear(self) -> None:
        """Be at zero at once, where no command arrives."""
        self.torque = [0.0] * len(self.torque)
        self._weight = 0.0

    def elapsed(self, time: float) -> float:
        """Time since the last command, s."""
        return max(time - self._time, 0.0)

    def step(self, time: float, target: Sequence[float], joints: JointSettings, ramp: float) -> list[float]:
        """Torque (n,) at `time`; `ramp`: s from nothing to all of the target, below 0 from all to nothing."""
        if time < self._held_until:
            self._time = max(time, self._time)
            return list(self.torque)
        elapsed = self.elapsed(time)
        self._time = time if math.isinf(self._time) else max(time, self._time)
        self.scale = min(max(self.scale + elapsed / ramp, 0.0), 1.0)
        self._weight = max(self._weight - elapsed / abs(ramp), 0.0)
        for i, (last, start, value, limit, rate) in enumerate(
            zip(self.torque, self._start, target, joints.torque, joints.rate, strict=True)
        ):
            step = rate * elapsed
            wanted = self.scale * value + min(max(self._weight * start, -limit), limit)
            self.torque[i] = min(max(wanted, last - step), last + step)
        return list(self.torque)
