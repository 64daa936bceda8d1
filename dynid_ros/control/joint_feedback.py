"""PD control about a desired pose and compensation of friction, added to the feed-forward of gravity.

Ma and Hollerbach (1996), figure 1: position feedback and gravity feed-forward, summed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dynid_ros.control.rest_friction import MAX_REST_SCALE, BreakawayFriction, moving_share
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.joint_friction import least_breakaway, least_friction
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import per_joint

MAX_FRICTION_SCALE = 0.8
"""Largest compensated fraction of friction; the rest brakes the joint despite delays and identification errors."""


def numbers(values: Sequence[float], joints: Sequence[str], what: str, least: float = -math.inf) -> tuple[float, ...]:
    """Return the values (n,) of a setting as a tuple; see `per_joint`. Invalid values raise `ControlError`."""
    return tuple(per_joint(values, joints, what, error=ControlError, least=least).tolist())


@dataclass(frozen=True)
class FeedbackGains:
    """Gains of position feedback and friction compensation, one entry per joint in the model's order.

    Attributes:
        stiffness: torque per position error, N m/rad (N/m).
        damping: torque per velocity error, N m s/rad (N s/m).
        setpoint_velocity: speed of the desired position, rad/s (m/s).
        coulomb: compensated Coulomb friction, N m (N).
        viscous: compensated viscous friction, N m s/rad (N s/m).
        friction_velocity: speed above which `coulomb` is compensated fully, rad/s (m/s); below half of it, not at all.
        rest: compensated breakaway friction of joints at rest; None: none.
    """

    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    setpoint_velocity: tuple[float, ...]
    coulomb: tuple[float, ...]
    viscous: tuple[float, ...]
    friction_velocity: float = 0.05
    rest: BreakawayFriction | None = None

    @classmethod
    def from_robot(
        cls,
        robot: RobotModel,
        *,
        stiffness: Sequence[float] = (0.0,),
        damping: Sequence[float] = (0.0,),
        setpoint_velocity: Sequence[float] = (0.25,),
        coulomb: Sequence[float] = (0.0,),
        viscous: Sequence[float] = (0.0,),
        friction_velocity: float = 0.05,
        rest: BreakawayFriction | None = None,
    ) -> FeedbackGains:
        """Check the gains for a robot; a sequence of one value holds for all joints.

        Args:
            robot: arm whose velocity limits also bound `setpoint_velocity`.
            stiffness: N m/rad (N/m).
            damping: N m s/rad (N s/m).
            setpoint_velocity: rad/s (m/s).
            coulomb: N m (N).
            viscous: N m s/rad (N s/m).
            friction_velocity: rad/s (m/s).
            rest: compensated breakaway friction of joints at rest; None: none.

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
        return cls(stiff, damp, allowed, coulombs, viscouses, friction_velocity, rest)

    @cached_property
    def holds(self) -> bool:
        """Whether any joint has stiffness."""
        return any(self.stiffness)

    @cached_property
    def needs_velocity(self) -> bool:
        """Whether the torque depends on velocities."""
        return any(map(any, (self.damping, self.coulomb, self.viscous)))

    @cached_property
    def rows(self) -> tuple[tuple[float, ...], ...]:
        """Stiffness, damping, Coulomb and viscous friction of each of the n joints."""
        return tuple(zip(self.stiffness, self.damping, self.coulomb, self.viscous, strict=True))


class JointFeedback:
    """PD control of the position and compensation of friction, updated with each sample.

    The desired position moves to its target at most at `setpoint_velocity`, so a distant target causes no jump.

    Friction compensation depends on the measured velocity. It is zero below half the friction velocity, where noise
    determines the sign, and rises linearly to its full value at the friction velocity. It stays below the friction of
    the joint, so the sum of both still dissipates energy: neither noise nor delay can drive the joint.

    Attributes:
        desired: (n,) desired position, rad (m); empty before `hold`.
        speed: (n,) velocity of the desired position, rad/s (m/s).
        trust: (n,) factors on friction compensation, 0 to 1; empty: 1.
    """

    def __init__(self) -> None:
        self.desired: list[float] = []
        self.speed: list[float] = []
        self.trust: list[float] = []
        self._target: list[float] = []

    def hold(self, position: Sequence[float]) -> None:
        """Set the desired position and its target to `position` (n,), rad (m)."""
        self.desired = list(position)
        self._target = list(position)

    def aim(self, position: Sequence[float]) -> None:
        """Set the target of the desired position to `position` (n,), rad (m); joints with NaN keep their target."""
        self._target = [old if math.isnan(new) else new for old, new in zip(self._target, position, strict=True)]

    def halt(self) -> None:
        """Stop the motion of the desired position."""
        self._target = list(self.desired)

    def stiffen(self, before: FeedbackGains, gains: FeedbackGains, position: Sequence[float]) -> None:
        """Set the desired position of each joint whose stiffness was zero `before` to `position` (n,), rad (m)."""
        for i, (old, new) in enumerate(zip(before.stiffness, gains.stiffness, strict=True)):
            if new and not old:
                self.desired[i] = self._target[i] = position[i]

    def torque(
        self, gains: FeedbackGains, elapsed: float, position: Sequence[float], velocity: Sequence[float] | None
    ) -> list[float]:
        """Return the feedback torque (n,), N m (N).

        Args:
            gains: gains in force.
            elapsed: time since the last call, s.
            position: (n,) rad (m).
            velocity: (n,) rad/s (m/s); None: not measured.

        Raises:
            ControlError: the gains need velocities, and they are not measured.
        """
        if velocity is None:
            if gains.needs_velocity:
                raise ControlError("damping and friction need velocities, and none are measured")
            velocity = [0.0] * len(position)
        self.speed = speed = self._approach(gains, elapsed)
        if not (gains.holds or gains.needs_velocity):
            return [0.0] * len(position)
        trust = self.trust or [1.0] * len(position)
        torque = []
        for factor, (stiffness, damping, coulomb, viscous), target, target_speed, q, v in zip(
            trust, gains.rows, self.desired, speed, position, velocity, strict=True
        ):
            value = stiffness * (target - q) + damping * (target_speed - v) + factor * viscous * v
            if coulomb:
                value += factor * math.copysign(coulomb * moving_share(v, gains.friction_velocity), v)
            torque.append(value)
        return torque

    def _approach(self, gains: FeedbackGains, elapsed: float) -> list[float]:
        """Move the desired position towards its target and return its velocity (n,), rad/s (m/s)."""
        speed = [0.0] * len(self.desired)
        if self.desired == self._target or elapsed <= 0.0:
            return speed
        for i, (now, target, limit) in enumerate(zip(self.desired, self._target, gains.setpoint_velocity, strict=True)):
            step = min(max(target - now, -limit * elapsed), limit * elapsed)
            self.desired[i] = now + step
            speed[i] = step / elapsed
        return speed


@dataclass(frozen=True)
class IdentifiedFriction:
    """Lower bounds of the identified friction of each joint, see `least_friction`.

    Attributes:
        least: (n,) Coulomb friction, N m (N), and viscous friction, N m s/rad (N s/m), or a message if not identified.
        breakaway: (n,) Coulomb friction and Stribeck friction (additional friction at rest), N m (N), Stribeck
            velocity, rad/s (m/s), and friction per torque of the links; zero if not identified.
    """

    joint_names: tuple[str, ...]
    least: tuple[tuple[float, float] | str, ...]
    breakaway: tuple[tuple[float, float, float, float], ...] = ()

    @classmethod
    def from_document(cls, document: Mapping[str, Any], joint_names: Sequence[str]) -> IdentifiedFriction:
        """Read the friction from the document of `identified.yaml`."""
        least: list[tuple[float, float] | str] = []
        for name in joint_names:
            try:
                least.append(least_friction(document, name))
            except IdentifiedFileError as error:
                least.append(str(error))
        return cls(tuple(joint_names), tuple(least), tuple(least_breakaway(document, name) for name in joint_names))

    def compensated(self, scale: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the Coulomb friction (n,), N m, and viscous friction (n,), N m s/rad, to compensate.

        Args:
            scale: fraction of the friction, 0 (off) to 0.8; one value, or n.

        Raises:
            ControlError: a scale out of range.
            IdentifiedFileError: friction of a joint whose scale is above 0 was not identified.
        """
        scales = self._checked(scale, "friction_scale", MAX_FRICTION_SCALE)
        coulomb, viscous = [], []
        for factor, least in zip(scales, self.least, strict=True):
            dry, linear = (0.0, 0.0) if isinstance(least, str) else least
            coulomb.append(factor * dry)
            viscous.append(factor * linear)
        return tuple(coulomb), tuple(viscous)

    def compensated_at_rest(self, scale: Sequence[float]) -> BreakawayFriction | None:
        """Return the breakaway friction to compensate at rest; None if there is none.

        Args:
            scale: fraction of the friction, 0 (off) to 0.76; one value, or n.

        Raises:
            ControlError: a scale out of range.
            IdentifiedFileError: friction of a joint whose scale is above 0 was not identified.
        """
        scales = self._checked(scale, "friction_at_rest", MAX_REST_SCALE)
        if not any(scales):
            return None
        rows = list(zip(scales, self.breakaway, strict=True))
        return BreakawayFriction(
            tuple(factor * coulomb for factor, (coulomb, _, _, _) in rows),
            tuple(factor * stribeck for factor, (_, stribeck, _, _) in rows),
            tuple(speed for _, (_, _, speed, _) in rows),
            tuple(factor * load for factor, (_, _, _, load) in rows),
        )

    def _checked(self, scale: Sequence[float], parameter: str, largest: float) -> tuple[float, ...]:
        """Return the scales (n,) of a parameter after a check of their range."""
        scales = numbers(scale, self.joint_names, parameter, least=0.0)
        for name, value, least in zip(self.joint_names, scales, self.least, strict=True):
            if value > largest:
                raise ControlError(
                    f"{parameter} of joint '{name}' is {value:g}; expected at most {largest:g}: if less friction is "
                    "left, errors of the identification could drive the joint"
                )
            if value and isinstance(least, str):
                raise IdentifiedFileError(least)
        return scales
