"""Direction of gravity in the frame of a tilting base, estimated from an IMU and checked for plausibility."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

SETTLING_TIME_CONSTANTS = 3.0
"""Time constants of the low-pass after which its output is used."""
MAX_NORM_ERROR = 1.0
"""Largest difference between the norm of the filtered acceleration and gravity, m/s^2."""
MAX_ORIENTATION_ERROR_RAD = math.radians(10.0)
"""Largest angle between gravity by orientation and by acceleration, both low-pass filtered, rad."""
MIN_UPSIDE_DOWN_ANGLE_RAD = math.radians(150.0)
"""Smallest angle from the configured direction at which a sensor counts as upside down, rad."""


@dataclass(frozen=True)
class BaseRules:
    """Limits within which the messages of an IMU are accepted.

    Attributes:
        time_constant: time constant of the low-pass for accelerations, s.
        largest_tilt: largest angle between measured and configured gravity, rad.
        max_rate: fastest rotation of the gravity direction in force, rad/s.
        timeout: largest age of a message, s.
    """

    time_constant: float = 0.5
    largest_tilt: float = 0.5
    max_rate: float = 0.5
    timeout: float = 0.2


class BaseGravity:
    """Direction of gravity in the frame of a base, updated with each message of an IMU.

    At rest the acceleration is the negative of gravity. Driving and vibration add to it; a low-pass removes them at
    the cost of a delay. An orientation also uses angular rates and has no such delay. Some drivers without an
    orientation publish the identity, though, so the orientation must agree with the acceleration.

    Args:
        gravity: (3,) configured gravity in the base frame, m/s^2.
        rules: limits within which messages are accepted.

    Attributes:
        down: (3,) gravity in force, m/s^2.
    """

    def __init__(self, gravity: Sequence[float], rules: BaseRules) -> None:
        self._rules = rules
        self._magnitude = math.hypot(*gravity)
        self._configured = tuple(gravity)
        self.down = tuple(gravity)
        self._by_acceleration: tuple[float, ...] | None = None
        self._by_orientation: tuple[float, ...] | None = None
        self._filtered_orientation: tuple[float, ...] = self.down
        self._first_time = -math.inf
        self._last_time = -math.inf
        self._turn_time = -math.inf
        self._message_fault = ""

    @property
    def source(self) -> str:
        """Description of the signal that determines the direction."""
        if self._by_acceleration is None:
            return "nothing yet"
        if self._by_orientation is None:
            return "low-passed acceleration, as the IMU gives no orientation"
        return "the IMU's orientation, which its acceleration confirms"

    def add_sample(self, time: float, acceleration: Sequence[float], oriented: Sequence[float] | None) -> None:
        """Filter one message of the IMU.

        Args:
            time: arrival of the message, s of the steady clock.
            acceleration: (3,) specific force in the base frame, m/s^2, upwards at rest.
            oriented: (3,) gravity by the orientation, in the base frame, of any length; None without an orientation.
        """
        if not all(map(math.isfinite, (*acceleration, *(oriented or ())))):
            self._message_fault = "has numbers that are not finite"
            return
        self._message_fault = ""
        gravity = [-value for value in acceleration]
        step = time - self._last_time
        if self._by_acceleration is None or step > self._rules.timeout:
            self._by_acceleration = tuple(gravity)
            self._by_orientation = None
            self._first_time = time
        share = 1.0 - math.exp(-max(step, 0.0) / self._rules.time_constant) if math.isfinite(step) else 1.0
        self._by_acceleration = _interpolated(self._by_acceleration, gravity, share)
        # The same low-pass for the orientation gives both the same delay when they are compared.
        if oriented is not None:
            before = self._filtered_orientation if self._by_orientation else oriented
            self._filtered_orientation = _interpolated(before, oriented, share)
        self._by_orientation = None if oriented is None else tuple(oriented)
        self._last_time = time

    def problem(self, time: float) -> str:
        """Return why gravity is unknown at `time`, as the predicate of a sentence about the IMU; empty if known."""
        if self._message_fault or self._by_acceleration is None:
            return self._message_fault or "has said nothing yet"
        age = time - self._last_time
        if age > self._rules.timeout:
            return f"has said nothing for {age:.2f} s (timeout {self._rules.timeout:g} s)"
        norm = math.hypot(*self._by_acceleration)
        if abs(norm - self._magnitude) > MAX_NORM_ERROR:
            return (
                f"feels {norm:.2f} m/s^2 in the mean, gravity is {self._magnitude:.2f}: the base accelerates for "
                "long, or the driver has other units or leaves gravity out"
            )
        if self._by_orientation:
            difference = _angle(self._filtered_orientation, self._by_acceleration)
            if difference > MAX_ORIENTATION_ERROR_RAD:
                return (
                    f"has an orientation {math.degrees(difference):.0f} degrees away from gravity by its acceleration"
                )
        tilt = _angle(self._measured, self._configured)
        if tilt > self._rules.largest_tilt:
            cause = (
                "it is upside down, or its acceleration has the sign of gravity: "
                if tilt > MIN_UPSIDE_DOWN_ANGLE_RAD
                else ""
            )
            return (
                f"says that the base is tilted by {math.degrees(tilt):.0f} degrees from the configured gravity, "
                f"more than {math.degrees(self._rules.largest_tilt):.0f} (imu_largest_tilt): {cause}check its mounting"
            )
        return ""

    def unsettled(self, time: float) -> bool:
        """Return whether the low-pass still remembers its initial value."""
        return time - self._first_time < SETTLING_TIME_CONSTANTS * self._rules.time_constant

    def follow(self, time: float, *, free: bool) -> None:
        """Turn the gravity in force towards the measured direction.

        Args:
            time: s of the steady clock.
            free: whether to turn at once; otherwise at most at the rate of the rules.
        """
        elapsed = max(time - self._turn_time, 0.0)
        self._turn_time = time
        if self._by_acceleration is None or self.problem(time):
            return
        measured = _scaled(self._measured, self._magnitude)
        angle = _angle(measured, self.down)
        share = 1.0 if free or angle == 0.0 else min(1.0, self._rules.max_rate * elapsed / angle)
        self.down = _scaled(_interpolated(self.down, measured, share), self._magnitude)

    @property
    def _measured(self) -> tuple[float, ...]:
        return self._by_orientation or self._by_acceleration or self._configured


def _interpolated(before: Sequence[float], after: Sequence[float], share: float) -> tuple[float, ...]:
    return tuple(a + share * (b - a) for a, b in zip(before, after, strict=True))


def _scaled(vector: Sequence[float], magnitude: float) -> tuple[float, ...]:
    length = math.hypot(*vector)
    return tuple(magnitude * value / length for value in vector) if length else tuple(vector)


def _angle(first: Sequence[float], second: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(first, second, strict=True))
    lengths = math.hypot(*first) * math.hypot(*second)
    return math.acos(min(max(product / lengths, -1.0), 1.0)) if lengths else math.pi
