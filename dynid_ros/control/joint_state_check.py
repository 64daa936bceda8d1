"""Whether a joint state can be believed: its values, its age, and how far it is from the one before."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import JointSettings

STAMP_JITTER_S = 0.05
"""Time between the stamp and the sample of a driver that is no real-time process, s."""
ALTERNATION_S = 1.0
"""Time within which two jumps are those of two drivers; one alone is of an encoder that was set, s."""


class JointStateCheck:
    """Checks joint states against the limits of the joints and against the last good one.

    A position may change as far as the velocity limit allows between the stamps of two states, and some jitter. Without
    stamps, or where these jump, the limit is loose: a state may be up to `timeout` old when it arrives, so two arrivals
    dt apart may be `dt + timeout` apart.

    Attributes:
        position: the last good joint positions (n,), rad (m); empty before the first.
        unfit: why the newest joint state cannot be used; empty: it can.
    """

    def __init__(self) -> None:
        self.position: tuple[float, ...] = ()
        self.unfit = "no joint state has arrived yet"
        self._time = -math.inf
        self._stamp: float | None = None
        self._jump_times = (-math.inf, -math.inf)
        self._last_jump = ""

    def accept(self, time: float, position: Sequence[float], stamp: float | None) -> None:
        """Take a joint state as the last good one."""
        self.position = tuple(position)
        self.unfit = ""
        self._time = time
        self._stamp = stamp

    def stale(self, time: float, timeout: float) -> str:
        """Say that the last good joint state is too old; empty: it is not."""
        age = time - self._time
        if age <= timeout:
            return ""
        return (
            f"no new joint state for {age:.3f} s (timeout {timeout:g} s): "
            "the driver stopped, its stamps stand still, or this computer is overloaded"
        )

    def alternating(self, time: float) -> str:
        """Say that joint states of the last second disagree, as those of two drivers; empty: they do not."""
        return self._last_jump if time - self._jump_times[0] < ALTERNATION_S else ""

    def problem(self, position: Sequence[float], joints: JointSettings) -> str:
        """Say what is wrong with positions (n,), rad (m); empty: nothing."""
        if len(position) != len(joints.names):
            return f"{len(position)} positions for {len(joints.names)} joints ({', '.join(joints.names)})"
        for name, value, lower, upper in zip(joints.names, position, joints.lower, joints.upper, strict=True):
            if not math.isfinite(value):
                return f"position of joint '{name}' is {value}; expected a finite number"
            if not lower <= value <= upper:
                return f"position of joint '{name}' is {value:.4f}, far outside its limits ({lower:.4f} to {upper:.4f})"
        return ""

    def jump(
        self, time: float, position: Sequence[float], stamp: float | None, joints: JointSettings, timeout: float
    ) -> str:
        """Say that positions (n,) jumped from the last good ones; empty: they did not."""
        span = time - self._time + timeout
        if stamp is not None and self._stamp is not None and stamp > self._stamp:
            span = min(span, stamp - self._stamp + STAMP_JITTER_S)
        if not self.position:
            return ""
        for name, value, before, velocity in zip(joints.names, position, self.position, joints.velocity, strict=True):
            if abs(value - before) > velocity * span:
                return (
                    f"position of joint '{name}' jumped from {before:.4f} to {value:.4f}, faster than its velocity "
                    f"limit {velocity:g} allows: check the encoder, and that no other node publishes its joint states"
                )
        return ""

    def remember(self, time: float, jump: str) -> None:
        """Remember a jump between joint states that are both taken as good, while no torque follows the pose."""
        self._jump_times = (self._jump_times[1], time)
        self._last_jump = jump
