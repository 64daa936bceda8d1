"""Plausibility of a joint state: its values, its age, and its distance from the state before."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import JointSettings

STAMP_JITTER_S = 0.05
"""Jitter between the stamp and the sample in a driver without real-time priority, s."""
ALTERNATION_S = 1.0
"""Time within which two jumps indicate two drivers, s; a single jump indicates an encoder that was set."""


class JointStateCheck:
    """Comparison of joint states with the limits of the joints and with the last good state.

    A position may change by the velocity limit times the time between the stamps of two states, plus some jitter.
    Without stamps, or if they jump, the limit is loose: a state may be up to `timeout` old when it arrives, so the
    samples of two arrivals dt apart may be `dt + timeout` apart.

    Attributes:
        position: last good joint positions (n,), rad (m); empty before the first.
        unfit: reason why the newest joint state cannot be used; empty if it can.
    """

    def __init__(self) -> None:
        self.position: tuple[float, ...] = ()
        self.unfit = "no joint state has arrived yet"
        self._time = -math.inf
        self._stamp: float | None = None
        self._jump_times = (-math.inf, -math.inf)
        self._last_jump = ""

    def accept(self, time: float, position: Sequence[float], stamp: float | None) -> None:
        """Store a joint state as the last good one."""
        self.position = tuple(position)
        self.unfit = ""
        self._time = time
        self._stamp = stamp

    def stale(self, time: float, timeout: float) -> str:
        """Return a message if the last good joint state is older than `timeout`, s; otherwise an empty string."""
        age = time - self._time
        if age <= timeout:
            return ""
        return (
            f"no new joint state for {age:.3f} s (timeout {timeout:g} s): "
            "the driver stopped, its stamps stand still, or this computer is overloaded"
        )

    def alternating(self, time: float) -> str:
        """Return a message if joint states of the last second alternate, as with two drivers; otherwise empty."""
        return self._last_jump if time - self._jump_times[0] < ALTERNATION_S else ""

    def problem(self, position: Sequence[float], joints: JointSettings) -> str:
        """Return the fault of positions (n,), rad (m), as a message; empty if they are plausible."""
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
        """Return a message if positions (n,) jumped from the last good ones; otherwise an empty string."""
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
        """Remember a jump between two accepted joint states, while no torque follows the pose."""
        self._jump_times = (self._jump_times[1], time)
        self._last_jump = jump
