"""Offsets of set-points that carry the gravity torque of position servos without an effort interface.

The torque of a proportional servo is k (q_d − q), so it sags by τ / k below its set-point under a torque τ. A set-point
of q_d + τ(q_d) / k brings it to q_d. The torque is ramped, limited and watched in N m, as with an effort interface.
Only the last step converts it to an offset in rad.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynid_ros.control.joint_feedback import numbers
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel

MAX_OFFSET_LIMIT = 0.5
"""Largest offset that may be allowed, rad (m); a servo that sags further is overloaded or switched off."""
DEVIATION_MARGIN = 0.05
"""Distance beyond the largest offset that a joint may be away from its resting set-point, rad (m)."""
MIN_DEVIATION_TIME_S = 0.5
"""Time that a joint may be farther away, s, because it follows a set-point with a delay and a person may touch it."""


@dataclass(frozen=True)
class ServoOffset:
    """Stiffness of n position servos, and limits of the set-points that are sent to them.

    Attributes:
        stiffness: (n,) torque per position error, N m/rad (N/m).
        limit: (n,) largest absolute offset, rad (m).
        lower: (n,) smallest set-point that is sent, rad (m).
        upper: (n,) largest set-point that is sent, rad (m).
    """

    stiffness: tuple[float, ...]
    limit: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @classmethod
    def from_robot(
        cls,
        robot: RobotModel,
        identified: Mapping[str, float],
        *,
        stiffness: Sequence[float] = (),
        limit: Sequence[float] = (0.1,),
    ) -> "ServoOffset":
        """Check stiffness and limits for a robot; a sequence of one value holds for all joints.

        Args:
            robot: arm whose position limits also bound the set-points.
            identified: identified stiffness by joint name, N m/rad (N/m).
            stiffness: known stiffness, N m/rad (N/m); empty: the identified one.
            limit: largest offsets, rad (m).

        Raises:
            ControlError: the stiffness of a joint is unknown, or a value is out of range.
        """
        names = tuple(robot.joint_names)
        unknown = [name for name in names if name not in identified]
        if not stiffness and unknown:
            raise ControlError(
                f"output position needs the stiffness of {', '.join(unknown)}: give servo_stiffness, N m/rad (N/m), or "
                "a model_file with the section servos in N m (dynid identify servos --stiffness or --reference-mass)"
            )
        gains = numbers(stiffness or [identified[name] for name in names], names, "servo_stiffness", least=0.0)
        limits = numbers(limit, names, "offset_limits", least=0.0)
        for name, gain, largest in zip(names, gains, limits, strict=True):
            if not gain:
                raise ControlError(f"servo_stiffness of joint '{name}' is {gain}; expected a number above 0")
            if not 0.0 < largest <= MAX_OFFSET_LIMIT:
                raise ControlError(
                    f"offset_limits of joint '{name}' is {largest}; expected above 0, at most {MAX_OFFSET_LIMIT} "
                    "rad (m)"
                )
        lower, upper = (tuple(map(float, values)) for values in (robot.limits.lower, robot.limits.upper))
        return cls(gains, limits, lower, upper)

    def torque_limits(self, limits: Sequence[float]) -> list[float]:
        """Return the torques (n,) that the largest offsets cause, but at most the torque limits (n,), N m (N)."""
        rows = zip(limits, self.stiffness, self.limit, strict=True)
        return [min(limit, gain * offset) if limit > 0.0 else gain * offset for limit, gain, offset in rows]

    def command(self, desired: Sequence[float], torque: Sequence[float]) -> list[float]:
        """Return the set-points (n,) to send for desired positions (n,) and torques (n,)."""
        rows = zip(desired, torque, self.stiffness, self.lower, self.upper, strict=True)
        return [_between(q + value / gain, min(low, q), max(high, q)) for q, value, gain, low, high in rows]

    def present(
        self, position: Sequence[float], gravity: Sequence[float], scale: Sequence[float], limits: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        """Return desired positions (n,) and torques (n,) whose `command` is the present set-point of an arm at rest.

        A servo at rest carries its gravity torque g, so its present set-point is g / k beyond its position, whichever
        program sent it. The arm therefore does not move when the first command is sent.

        Args:
            position: (n,) measured positions, rad (m).
            gravity: (n,) gravity torques at these positions, N m (N).
            scale: (n,) factors on the gravity torque that the compensation will apply.
            limits: (n,) largest torques, N m (N).
        """
        rows = zip(gravity, scale, limits, strict=True)
        torque = [_between(factor * value, -limit, limit) for value, factor, limit in rows]
        rest = zip(position, gravity, torque, self.stiffness, strict=True)
        return [q + (value - part) / gain for q, value, part, gain in rest], torque


def _between(value: float, lower: float, upper: float) -> float:
    return min(max(value, lower), upper)


class SetpointWatch:
    """Detection of joints that stay away from constant set-points: blocked, overloaded, or without power."""

    def __init__(self) -> None:
        self._desired: list[float] = []
        self._since = math.inf

    def doubt(
        self, time: float, names: Sequence[str], servo: ServoOffset, position: Sequence[float], desired: Sequence[float]
    ) -> str:
        """Return a message if a joint does not reach its set-point, otherwise an empty text."""
        distances = [abs(q - target) for q, target in zip(position, desired, strict=True)]
        excess = [distance - limit - DEVIATION_MARGIN for distance, limit in zip(distances, servo.limit, strict=True)]
        if list(desired) != self._desired or max(excess) <= 0.0:
            self._desired = list(desired)
            self._since = time
            return ""
        if time - self._since < MIN_DEVIATION_TIME_S:
            return ""
        worst = excess.index(max(excess))
        return (
            f"joint '{names[worst]}' stays {distances[worst]:.3g} rad (m) away from its set-point: it is blocked, "
            "overloaded or without power; free it, or raise offset_limits"
        )
