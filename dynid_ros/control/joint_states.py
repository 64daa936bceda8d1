"""Velocities and loop delay from arriving joint states, and the plausibility of their values, age and steps."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import JointSettings

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

STAMP_JITTER_S = 0.05
"""Jitter between the stamp and the sample in a driver without real-time priority, s."""
ALTERNATION_S = 1.0
"""Time within which two jumps indicate two drivers, s; a single jump indicates an encoder that was set."""


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
