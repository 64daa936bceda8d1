"""Torques of the planned motion and against friction at rest, which are added to gravity and feedback."""

import math
from collections.abc import Callable, Sequence

from dynid_ros.control.compensator_settings import JointSettings
from dynid_ros.control.joint_feedback import JointFeedback
from dynid_ros.control.joint_motion import JointMotion
from dynid_ros.control.planned_motion import PlannedMotion
from dynid_ros.control.rest_friction import RestFriction


class AddedTorques:
    """Torques that prepare a motion: of the plan, and of a hand that is about to begin one.

    Args:
        joints: settings of the joints.

    Attributes:
        plan: planned motion.
    """

    def __init__(self, joints: JointSettings) -> None:
        self.plan = PlannedMotion(joints)
        self._rest: RestFriction | None = None

    def planned(
        self,
        time: float,
        position: Sequence[float],
        gravity: Sequence[float],
        gravity_model: Callable[..., Sequence[float]] | None,
        *,
        feedback: JointFeedback,
        motion: JointMotion,
    ) -> list[float]:
        """Return the torque (n,) of the planned motion, N m (N).

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            gravity: (n,) gravity torque, N m (N).
            gravity_model: gravity torque in force, which may know the torque of motions; None: no motion is added.
            feedback: the desired pose, which may be the plan.
            motion: delay of the loop.
        """
        if self.plan.is_setpoint:
            self.plan.report(time, feedback.desired, feedback.speed, [0.0] * len(gravity))
        motion_torque = getattr(gravity_model, "motion", None)
        return self.plan.torque(time, position, gravity, motion_torque, motion.command_delay)

    def at_rest(
        self,
        time: float,
        position: Sequence[float],
        gravity: Sequence[float],
        gravity_model: Callable[..., Sequence[float]] | None,
        joints: JointSettings,
        *,
        feedback: JointFeedback,
        motion: JointMotion,
        active: bool,
    ) -> list[float]:
        """Return the torque (n,) against friction of joints at rest, N m (N).

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            gravity: (n,) gravity torque, which loads the gears, N m (N).
            gravity_model: gravity torque in force, which may know a payload that can be removed.
            joints: settings in force.
            feedback: receives how far friction of moving joints is compensated.
            motion: velocities of the joints and delay of the loop.
            active: whether the torque may act; otherwise it begins anew later.
        """
        friction = joints.feedback.rest
        if friction is None or not active:
            self._rest = None
            feedback.trust = [1.0] * len(position)
            return [0.0] * len(position)
        if self._rest is None:
            self._rest = RestFriction(len(position))
        brake = joints.brake
        still = [0.0] * len(position)
        payload = getattr(gravity_model, "payload_torque", None)
        torque = self._rest.torque(
            time,
            position,
            motion.velocity,
            friction.levels(motion.velocity, gravity),
            rates=joints.rate,
            damping=[math.inf] * len(position) if brake is None else brake.damping(motion.delay),
            planned=feedback.speed if joints.feedback.holds else still,
            friction_velocity=joints.feedback.friction_velocity,
            payload=payload(position) if payload else still,
        )
        feedback.trust = self._rest.trust
        return torque
