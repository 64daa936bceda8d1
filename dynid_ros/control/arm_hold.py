"""Brake and spring torque added to the gravity torque: above speed limits, after a suspicion, and during a descent."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import JointSettings
from dynid_ros.control.joint_motion import JointMotion

ENGAGE_S = 0.1
"""Time in which the brakes reach full damping and the spring reaches or loses its largest torque, s."""
PLANNED_SPEED_MARGIN = 1.2
"""Multiple of the planned speed above which a joint is braked."""


class ArmHold:
    """Damping of the joints and a spring towards a pose; the sum has no steps.

    Attributes:
        pose: (n,) equilibrium of the spring, rad (m); empty without a spring.
    """

    def __init__(self, joints: int) -> None:
        self.pose: tuple[float, ...] = ()
        self._spring = [0.0] * joints
        self._braked_since = math.inf
        self._time = math.inf

    def torque(
        self,
        time: float,
        position: Sequence[float],
        motion: JointMotion,
        joints: JointSettings,
        *,
        brakes: bool,
        scale: float,
        planned: Sequence[float],
    ) -> list[float] | None:
        """Return the torque (n,) of brake and spring, N m (N); None if both are off.

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            motion: velocities of the joints and delay of the loop.
            joints: speed limits, brake limits, and damping gains of the feedback, which reduce the braking needed.
            brakes: whether to brake at any speed; otherwise only above the speed limits.
            scale: factor on the spring torque, 0 to 1.
            planned: (n,) speeds of a planned motion, which is not braked.
        """
        brake = joints.brake
        if brake is None:
            return None
        elapsed = min(max(time - self._time, 0.0), ENGAGE_S)
        self._time = time
        spring = self._wanted_spring(position, motion, joints)
        for i, (wanted, limit) in enumerate(zip(spring, brake.hold_limit, strict=True)):
            step = limit * elapsed / ENGAGE_S
            self._spring[i] = min(max(wanted, self._spring[i] - step), self._spring[i] + step)
        allowed = [0.0] * len(joints.names)
        if not brakes:
            allowed = [
                max(limit, PLANNED_SPEED_MARGIN * speed)
                for limit, speed in zip(joints.speed_limit, planned, strict=True)
            ]
        slow = all(abs(v) <= free for v, free in zip(motion.velocity, allowed, strict=True))
        if slow and not brakes and not any(self._spring):
            self._braked_since = math.inf
            return None
        self._braked_since = min(self._braked_since, time)
        share = min((time - self._braked_since) / ENGAGE_S, 1.0) if brakes else 1.0
        damping = [
            share * max(coefficient - gain, 0.0)
            for coefficient, gain in zip(brake.damping(motion.delay), joints.feedback.damping, strict=True)
        ]
        torque = brake.torque(motion.velocity, allowed, damping)
        return [value + scale * more for value, more in zip(torque, self._spring, strict=True)]

    def carried(self, joints: JointSettings) -> list[float]:
        """Return the spring torque of each joint as a fraction of its maximum; empty without a spring."""
        if joints.brake is None or not self.pose:
            return []
        return [abs(torque) / limit for torque, limit in zip(self._spring, joints.brake.hold_limit, strict=True)]

    def release(self) -> None:
        """Remove brake and spring at once, because the torque no longer follows the pose."""
        self.pose = ()
        self._spring = [0.0] * len(self._spring)
        self._braked_since = math.inf

    def _wanted_spring(self, position: Sequence[float], motion: JointMotion, joints: JointSettings) -> list[float]:
        if not self.pose or joints.brake is None:
            return [0.0] * len(position)
        deflection = [rest - q for rest, q in zip(self.pose, position, strict=True)]
        return joints.brake.spring(deflection, motion.delay)
