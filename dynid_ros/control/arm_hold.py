"""Brake and spring that act on an arm besides gravity torque: above its speed limits, in doubt, and on its way down."""

import math
from collections.abc import Sequence

from dynid_ros.control.compensator_settings import JointSettings
from dynid_ros.control.joint_motion import JointMotion

ENGAGE_S = 0.1
"""Time within which brakes are put on, and a spring reaches its largest torque or lets go, s."""


class ArmHold:
    """Damping of the joints, and a spring towards a pose, without steps of the torque.

    Attributes:
        pose: (n,) that the spring holds, rad (m); empty: the spring lets go.
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
    ) -> list[float] | None:
        """Return the torque (n,), N m (N); None where neither acts.

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            motion: velocities and delay.
            joints: speed limits, damping gains of the feedback, which count as brakes, and what the brakes may do.
            brakes: whether the joints are braked at any speed; else above their speed limits alone.
            scale: of the spring, 0 to 1.
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
        allowed = [0.0] * len(joints.names) if brakes else joints.speed_limit
        slow = all(abs(v) <= free for v, free in zip(motion.velocity, allowed, strict=True))
        if slow and not brakes and not any(self._spring):
            self._braked_since = math.inf
            return None
        self._braked_since = min(self._braked_since, time)
        share = min((time - self._braked_since) / ENGAGE_S, 1.0) if brakes else 1.0
        damping = [
            share * max(coefficient - own, 0.0)
            for coefficient, own in zip(brake.damping(motion.delay), joints.feedback.damping, strict=True)
        ]
        torque = brake.torque(motion.velocity, allowed, damping)
        return [value + scale * more for value, more in zip(torque, self._spring, strict=True)]

    def carried(self, joints: JointSettings) -> list[float]:
        """Return for each joint the torque of the spring as a part of its largest; empty: there is no spring."""
        if joints.brake is None or not self.pose:
            return []
        return [abs(torque) / most for torque, most in zip(self._spring, joints.brake.hold_limit, strict=True)]

    def release(self) -> None:
        """Let go of the arm at once, where the torque no longer follows the pose."""
        self.pose = ()
        self._spring = [0.0] * len(self._spring)
        self._braked_since = math.inf

    def _wanted_spring(self, position: Sequence[float], motion: JointMotion, joints: JointSettings) -> list[float]:
        if not self.pose or joints.brake is None:
            return [0.0] * len(position)
        deflection = [rest - q for rest, q in zip(self.pose, position, strict=True)]
        return joints.brake.spring(deflection, motion.delay)
