"""Gravity in the frame of a base that tilts, as an IMU on it feels it; filtered, and believed only where it can be."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

SETTLING = 3.0
"""Time constants of the low-pass that pass before what it says is believed."""
NORM = 1.0
"""m/s^2 by which the filtered acceleration may differ from gravity."""
APART = math.radians(10.0)
"""Largest angle between what orientation and acceleration, filtered alike, say of gravity, rad."""
REVERSED = math.radians(150.0)
"""Angle from the configured direction from which on a sensor is upside down, rad."""


@dataclass(frozen=True)
class BaseRules:
    """What is believed of an IMU.

    Attributes:
        time_constant: of the low-pass of its accelerations, s.
        largest_tilt: of the base from its configured direction, rad.
        max_rate: fastest turn of gravity, rad/s.
        timeout: age of the oldest message that is still acted on, s.
    """

    time_constant: float = 0.5
    largest_tilt: float = 0.5
    max_rate: float = 0.5
    timeout: float = 0.2


class BaseGravity:
    """Direction of gravity in the frame of a base, one message of an IMU at a time.

    An acceleration at rest is gravity turned round; a base that drives or shakes feels more, which a low-pass takes
    out as it takes out time. An orientation has been made of turning rates too and knows no such delay, but drivers
    that have none may publish that of an upright sensor: so it has to agree with the acceleration.

    Args:
        gravity: (3,) as configured, in the base frame, m/s^2.
        rules: what is believed.

    Attributes:
        down: (3,) gravity in force, m/s^2.
    """

    def __init__(self, gravity: Sequence[float], rules: BaseRules) -> None:
        self._rules = rules
        self._size = math.hypot(*gravity)
        self._given = tuple(gravity)
        self.down = tuple(gravity)
        self._felt: tuple[float, ...] | None = None
        self._oriented: tuple[float, ...] | None = None
        self._late: tuple[float, ...] = self.down
        self._began = self._heard = self._moved = -math.inf
        self._bad = ""

    @property
    def source(self) -> str:
        """Where the direction is from, and why."""
        if self._felt is None:
            return "nothing yet"
        if self._oriented is None:
            return "low-passed acceleration, as the IMU gives no orientation"
        return "the IMU's orientation, which its acceleration confirms"

    def hear(self, time: float, acceleration: Sequence[float], oriented: Sequence[float] | None) -> None:
        """Take in a message at `time`, s of one steady clock.

        Args:
            time: of its arrival.
            acceleration: (3,) in the base frame, m/s^2, upwards at rest.
            oriented: (3,) gravity by its orientation, in the base frame, of any length; None: it gives none.
        """
        if not all(map(math.isfinite, (*acceleration, *(oriented or ())))):
            self._bad = "has numbers that are not finite"
            return
        self._bad = ""
        up = [-value for value in acceleration]
        step = time - self._heard
        if self._felt is None or step > self._rules.timeout:
            self._felt, self._oriented, self._began = tuple(up), None, time
        share = 1.0 - math.exp(-max(step, 0.0) / self._rules.time_constant) if math.isfinite(step) else 1.0
        self._felt = _mixed(self._felt, up, share)
        # Filtered as well, that both speak of the same time when they are compared.
        if oriented is not None:
            self._late = _mixed(self._late if self._oriented else oriented, oriented, share)
        self._oriented = None if oriented is None else tuple(oriented)
        self._heard = time

    def problem(self, time: float) -> str:
        """Why gravity is not known at `time`, an end of a sentence about the IMU; empty: it is."""
        if self._bad or self._felt is None:
            return self._bad or "has said nothing yet"
        age = time - self._heard
        if age > self._rules.timeout:
            return f"has said nothing for {age:.2f} s (timeout {self._rules.timeout:g} s)"
        norm = math.hypot(*self._felt)
        if abs(norm - self._size) > NORM:
            return (
                f"feels {norm:.2f} m/s^2 in the mean, gravity is {self._size:.2f}: the base accelerates for long, or "
                "the driver has other units or leaves gravity out"
            )
        if self._oriented and (apart := _angle(self._late, self._felt)) > APART:
            return f"has an orientation {math.degrees(apart):.0f} degrees away from what its acceleration says"
        tilt = _angle(self._wanted, self._given)
        if tilt > self._rules.largest_tilt:
            why = "it is upside down, or says which way gravity pulls, not what holds against it: " * (tilt > REVERSED)
            return (
                f"says that the base is tilted by {math.degrees(tilt):.0f} degrees from the configured gravity, "
                f"more than {math.degrees(self._rules.largest_tilt):.0f} (imu_largest_tilt): {why}check its mounting"
            )
        return ""

    def unsettled(self, time: float) -> bool:
        """Whether the low-pass has heard too little yet."""
        return time - self._began < SETTLING * self._rules.time_constant

    def follow(self, time: float, *, free: bool) -> None:
        """Turn the gravity in force towards what is felt, no further than its rate allows; `free`: at once."""
        elapsed, self._moved = max(time - self._moved, 0.0), time
        if self._felt is None or self.problem(time):
            return
        wanted = self._wanted
        angle = _angle(wanted, self.down)
        share = 1.0 if free or angle == 0.0 else min(1.0, self._rules.max_rate * elapsed / angle)
        size = math.hypot(*wanted)
        unit = [value / size * self._size for value in wanted]
        self.down = _scaled(_mixed(self.down, unit, share), self._size)

    @property
    def _wanted(self) -> tuple[float, ...]:
        return self._oriented or self._felt or self._given


def _mixed(before: Sequence[float], after: Sequence[float], share: float) -> tuple[float, ...]:
    return tuple(a + share * (b - a) for a, b in zip(before, after, strict=True))


def _scaled(vector: Sequence[float], size: float) -> tuple[float, ...]:
    length = math.hypot(*vector)
    return tuple(size * value / length for value in vector) if length else tuple(vector)


def _angle(one: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    size = math.hypot(*one) * math.hypot(*other)
    return math.acos(min(max(product / size, -1.0), 1.0)) if size else math.pi
