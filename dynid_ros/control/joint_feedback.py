"""PD control about a desired pose and compensation of friction, added to the feed-forward of gravity.

Ma and Hollerbach (1996), figure 1: position feedback and gravity feed-forward, summed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.joint_friction import least_friction
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import per_joint

LARGEST_FRICTION_SCALE = 0.8
"""What is left of a joint's friction must brake it, whatever a delay and an error of the identification make of it."""


def numbers(values: Sequence[float], joints: Sequence[str], what: str, least: float = -math.inf) -> tuple[float, ...]:
    """Values (n,) of a setting, see `per_joint`, as the control loop takes them; raises `ControlError`."""
    return tuple(per_joint(values, joints, what, error=ControlError, least=least).tolist())


@dataclass(frozen=True)
class FeedbackGains:
    """One entry per joint, in the model's order.

    Attributes:
        stiffness: torque per position error, N m/rad (N/m).
        damping: torque per velocity error, N m s/rad (N s/m).
        setpoint_velocity: at which the desired position moves, rad/s (m/s).
        coulomb: friction that is compensated for, N m (N).
        viscous: likewise, N m s/rad (N s/m).
        friction_velocity: rad/s (m/s) from which on all of `coulomb` is; below half of it none.
    """

    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    setpoint_velocity: tuple[float, ...]
    coulomb: tuple[float, ...]
    viscous: tuple[float, ...]
    friction_velocity: float = 0.05

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        *,
        stiffness: Sequence[float] = (0.0,),
        damping: Sequence[float] = (0.0,),
        setpoint_velocity: Sequence[float] = (0.25,),
        coulomb: Sequence[float] = (0.0,),
        viscous: Sequence[float] = (0.0,),
        friction_velocity: float = 0.05,
    ) -> FeedbackGains:
        """Gains for `robot`; a sequence of one value holds for all joints.

        Args:
            robot: its velocity limits, where it has them, hold for the desired position too.
            stiffness: as above.
            damping: as above.
            setpoint_velocity: as above.
            coulomb: as above.
            viscous: as above.
            friction_velocity: as above.

        Raises:
            ControlError: a value is out of range, a list has another length than the robot has joints, or a joint has a
                stiffness and no damping.
        """
        names = tuple(robot.joint_names)
        stiff, damp, coulombs, viscouses = (
            numbers(values, names, name, least=0.0)
            for name, values in (
                ("stiffness", stiffness),
                ("damping", damping),
                ("coulomb", coulomb),
                ("viscous", viscous),
            )
        )
        for name, k, d in zip(names, stiff, damp, strict=True):
            if k and not d:
                raise ControlError(
                    f"joint '{name}' has stiffness {k:g} and no damping, and would swing; give it damping, to begin "
                    "with a tenth of the stiffness"
                )
        speeds = numbers(setpoint_velocity, names, "setpoint_velocity", least=0.0)
        for name, speed in zip(names, speeds, strict=True):
            if not speed:
                raise ControlError(f"setpoint_velocity of joint '{name}' is {speed}; expected a number above 0")
        if not (math.isfinite(friction_velocity) and friction_velocity > 0.0):
            raise ControlError(f"friction_velocity is {friction_velocity}; expected a number of rad/s (m/s) above 0")
        limits = [float(limit) or math.inf for limit in robot.limits.velocity]
        allowed = tuple(min(speed, limit) for speed, limit in zip(speeds, limits, strict=True))
        return cls(stiff, damp, allowed, coulombs, viscouses, friction_velocity)

    @cached_property
    def holds(self) -> bool:
        """Whether any joint is pulled towards its desired position."""
        return any(self.stiffness)

    @cached_property
    def needs_velocity(self) -> bool:
        """Whether the torque depends on velocities."""
        return any(map(any, (self.damping, self.coulomb, self.viscous)))

    @cached_property
    def rows(self) -> tuple[tuple[float, ...], ...]:
        """(n,) of stiffness, damping, Coulomb and viscous friction."""
        return tuple(zip(self.stiffness, self.damping, self.coulomb, self.viscous, strict=True))


class JointFeedback:
    """The desired pose, and the torque that it and the measured state ask for, one sample at a time.

    The desired position goes to its target no faster than the gains allow, so that no target makes the arm jump.

    Friction is compensated for by the measured velocity: not at all below half the gains' friction velocity, where
    noise sets its sign, rising to all of it at the friction velocity. Whatever the velocity and its noise, that is
    only a part of the joint's own friction, so together they always take energy from the motion: neither noise nor
    delay makes it go on by itself.

    Attributes:
        desired: (n,) position, rad (m); empty before `hold`.
    """

    def __init__(self) -> None:
        self.desired: list[float] = []
        self._target: list[float] = []

    def hold(self, position: Sequence[float]) -> None:
        """Take `position` (n,) as desired."""
        self.desired, self._target = list(position), list(position)

    def aim(self, position: Sequence[float]) -> None:
        """Let the desired position go to `position` (n,); what is NaN stays as it was aimed at."""
        self._target = [old if math.isnan(new) else new for old, new in zip(self._target, position, strict=True)]

    def halt(self) -> None:
        """Keep the desired position where it is on its way."""
        self._target = list(self.desired)

    def stiffen(self, before: FeedbackGains, gains: FeedbackGains, position: Sequence[float]) -> None:
        """Take `position` (n,) as desired where there is stiffness that was not there before."""
        for i, (old, new) in enumerate(zip(before.stiffness, gains.stiffness, strict=True)):
            if new and not old:
                self.desired[i] = self._target[i] = position[i]

    def torque(
        self, gains: FeedbackGains, elapsed: float, position: Sequence[float], velocity: Sequence[float] | None
    ) -> list[float]:
        """Torque (n,) N m (N) at `position` and `velocity` (n,), `elapsed` s after the last call.

        Raises:
            ControlError: a velocity is needed and is not given.
        """
        if velocity is None:
            if gains.needs_velocity:
                raise ControlError("damping and friction need velocities, and none are measured")
            velocity = [0.0] * len(position)
        speed = self._approach(gains, elapsed)
        if not (gains.holds or gains.needs_velocity):
            return [0.0] * len(position)
        full = gains.friction_velocity
        torque = []
        for (stiffness, damping, coulomb, viscous), target, target_speed, q, v in zip(
            gains.rows, self.desired, speed, position, velocity, strict=True
        ):
            value = stiffness * (target - q) + damping * (target_speed - v) + viscous * v
            fast = 2.0 * abs(v) / full - 1.0
            if coulomb and fast > 0.0:
                value += math.copysign(coulomb * min(fast, 1.0), v)
            torque.append(value)
        return torque

    def _approach(self, gains: FeedbackGains, elapsed: float) -> list[float]:
        """Let the desired position go on towards its target; its velocity (n,)."""
        speed = [0.0] * len(self.desired)
        if self.desired == self._target or elapsed <= 0.0:
            return speed
        for i, (now, target, limit) in enumerate(zip(self.desired, self._target, gains.setpoint_velocity, strict=True)):
            way = min(max(target - now, -limit * elapsed), limit * elapsed)
            self.desired[i] = now + way
            speed[i] = way / elapsed
        return speed


@dataclass(frozen=True)
class IdentifiedFriction:
    """Friction that each joint of a model has at least, see `least_friction`; it belongs to the model that was read.

    Attributes:
        joint_names: n names.
        least: (n,) Coulomb N m and viscous N m s/rad friction, or why it is not known.
    """

    joint_names: tuple[str, ...]
    least: tuple[tuple[float, float] | str, ...]

    @classmethod
    def from_document(cls, document: Mapping[str, Any], joint_names: Sequence[str]) -> IdentifiedFriction:
        """Read it from the document of `identified.yaml`."""
        least: list[tuple[float, float] | str] = []
        for name in joint_names:
            try:
                least.append(least_friction(document, name))
            except IdentifiedFileError as error:
                least.append(str(error))
        return cls(tuple(joint_names), tuple(least))

    def compensated(self, scale: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return Coulomb (n,) N m and viscous (n,) N m s/rad friction to compensate for.

        Args:
            scale: part of the friction, 0 (none) to 0.8; one value, or n.

        Raises:
            ControlError: a scale out of range.
            IdentifiedFileError: friction of a joint whose scale is above 0 was not identified.
        """
        scales = numbers(scale, self.joint_names, "friction_scale", least=0.0)
        for name, value in zip(self.joint_names, scales, strict=True):
            if value > LARGEST_FRICTION_SCALE:
                raise ControlError(
                    f"friction_scale of joint '{name}' is {value:g}; expected at most {LARGEST_FRICTION_SCALE:g}: if "
                    "less friction is left, errors of the identification could drive the joint"
                )
        coulomb, viscous = [], []
        for part, least in zip(scales, self.least, strict=True):
            if part and isinstance(least, str):
                raise IdentifiedFileError(least)
            dry, linear = (0.0, 0.0) if isinstance(least, str) else least
            coulomb.append(part * dry)
            viscous.append(part * linear)
        return tuple(coulomb), tuple(viscous)
