"""Torques of the planned motion and against friction at rest, which are added to gravity and feedback."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dynid_ros.control.compensator_settings import JointSettings
from dynid_ros.control.joint_feedback import JointFeedback
from dynid_ros.control.joint_states import JointMotion
from dynid_ros.control.rest_friction import RestFriction

MAX_PLAN_AGE_S = 0.1
"""Largest age of a sample of the plan, s."""
FADE_OUT_S = 0.2
"""Fade-out time of the torque after the plan ends or is inconsistent, s."""
FADE_IN_S = 0.2
"""Fade-in time of the torque, s."""
MIN_CONSISTENT_S = 0.2
"""Time for which a plan must be consistent before it is followed, s."""
PLAN_FILTER_S = 0.004
"""Time constant of the low-pass of the torque, s; it reduces vibrations after steps of the planned acceleration."""
MAX_VELOCITY_EXCESS = 1.1
"""Largest planned velocity as a multiple of the joint's velocity limit."""
MAX_VELOCITY_ERROR = 0.5
"""Largest difference between planned velocity and slope of the planned position, as a fraction of the limit."""
MAX_POSITION_STEP = 1e-4
"""Largest step of the planned position that counts as rounding, rad (m)."""
UNLIMITED_VELOCITY = 2.0
"""Velocity that replaces the limit in `MAX_VELOCITY_ERROR` for joints without one, rad/s (m/s)."""
MAX_TRACKING_ERROR = 0.2
"""Largest distance of the arm from the plan, rad (m); beyond it the arm does not follow the plan."""

MIN_PLANNED_SPEED = 0.01
"""Planned speed above which a motion of the arm is attributed to the plan, rad/s (m/s)."""

PlannedTorque = Callable[[Sequence[float], Sequence[float], Sequence[float], Sequence[float]], Sequence[float]]
"""Function from positions, velocities, accelerations and gravity torques to the torques of a motion, each (n,)."""


class _Sample(NamedTuple):
    """Sample of a plan at `time`, s of the controller's clock, which arrived at `arrival`, s of the steady clock."""

    time: float
    arrival: float
    position: list[float]
    velocity: list[float]
    acceleration: list[float]


class PlannedMotion:
    """Torque of a planned motion, which a controller reports sample by sample.

    The plan is extrapolated to the time at which the torque acts. The torque passes a low-pass filter and is limited to
    a fraction of each joint's torque limit. It fades out if no sample arrived for `MAX_PLAN_AGE_S`, or if the plan is
    inconsistent: not finite, beyond limits, with positions that do not follow its velocities, or far from the arm.

    Args:
        joints: limits of the joints, and factors on the torque.

    Attributes:
        joints: settings in force.
        is_setpoint: whether the plan is the desired pose of this package, not that of a controller.
        problem: reason why the plan is not followed; empty while it is.
        speed: (n,) speeds of the plan that is followed, rad/s (m/s).
    """

    def __init__(self, joints: JointSettings) -> None:
        self.is_setpoint = False
        self.problem = "no plan has come yet"
        self.joints = joints
        n = len(joints.names)
        self.speed = [0.0] * n
        self._sample: _Sample | None = None
        self._good_since = -math.inf
        self._target = [0.0] * n
        self._filtered = [0.0] * n
        self._weight = 0.0
        self._time = -math.inf

    @property
    def moves(self) -> bool:
        """Whether a plan is followed that moves a joint."""
        return max(self.speed) > MIN_PLANNED_SPEED

    def report(
        self,
        now: float,
        position: Sequence[float],
        velocity: Sequence[float],
        acceleration: Sequence[float] | None = None,
        stamp: float | None = None,
    ) -> None:
        """Take a sample of the plan.

        Args:
            now: arrival, s of the steady clock.
            position: (n,) rad (m).
            velocity: (n,) rad/s (m/s).
            acceleration: (n,) rad/s² (m/s²); None or not finite: the velocities are differentiated.
            stamp: time of the sample, s of the controller's clock; None: unknown.
        """
        sample_time = now if stamp is None else stamp
        before = self._sample
        step = sample_time - before.time if before else math.inf
        if before and step == 0.0:
            return
        if before and not 0.0 < step < MAX_PLAN_AGE_S:
            before = None
        self.problem = self._contradiction(position, velocity, before, step)
        if self.problem:
            self._sample = None
            self._good_since = math.inf
            return
        if math.isinf(self._good_since):
            self._good_since = now
        if acceleration is None or not all(map(math.isfinite, acceleration)):
            acceleration = [0.0] * len(position)
            if before:
                acceleration = [(new - old) / step for new, old in zip(velocity, before.velocity, strict=True)]
        self._sample = _Sample(sample_time, now, list(position), list(velocity), list(acceleration))

    def refuse(self, problem: str) -> None:
        """Stop following the plan because of `problem`, until its samples are consistent again."""
        self.problem = problem
        self._sample = None
        self._good_since = math.inf

    def torque(
        self,
        now: float,
        position: Sequence[float],
        gravity: Sequence[float],
        motion_torque: PlannedTorque | None,
        delay: float,
    ) -> list[float]:
        """Return the torque (n,), N m (N).

        Args:
            now: s of the steady clock.
            position: (n,) measured positions, rad (m).
            gravity: (n,) gravity torque, N m (N).
            motion_torque: torque of a motion without gravity; None: the plan is not followed.
            delay: time until the torque acts, s.
        """
        elapsed = min(max(now - self._time, 0.0), FADE_IN_S)
        self._time = now
        follows = motion_torque is not None and any(self.joints.planned_scale) and self._follows(now, position)
        if follows and self._sample is not None and motion_torque is not None:
            lead = min(now - self._sample.arrival, MAX_PLAN_AGE_S) + delay + PLAN_FILTER_S
            _, _, q, v, a = self._sample
            v = [velocity + lead * change for velocity, change in zip(v, a, strict=True)]
            q = [value + lead * velocity for value, velocity in zip(q, v, strict=True)]
            torque = motion_torque(q, v, a, gravity)
            rows = zip(self.joints.planned_scale, torque, self.joints.planned_torque, strict=True)
            self._target = [min(max(factor * value, -limit), limit) for factor, value, limit in rows]
            self.speed = [abs(velocity) for velocity in v]
        else:
            self.speed = [0.0] * len(position)
        change = elapsed / FADE_IN_S if follows else -elapsed / FADE_OUT_S
        self._weight = min(max(self._weight + change, 0.0), 1.0)
        share = 1.0 - math.exp(-elapsed / PLAN_FILTER_S)
        self._filtered = [old + share * (new - old) for old, new in zip(self._filtered, self._target, strict=True)]
        return [self._weight * value for value in self._filtered]

    def _follows(self, now: float, position: Sequence[float]) -> bool:
        """Return whether the plan is fresh, consistent, and near the arm."""
        if self._sample is None:
            return False
        age = now - self._sample.arrival
        if age > MAX_PLAN_AGE_S:
            self.refuse(f"no sample of the plan for {age:.2f} s")
            return False
        for name, planned, measured in zip(self.joints.names, self._sample.position, position, strict=True):
            if abs(planned - measured) > MAX_TRACKING_ERROR:
                self.refuse(f"joint '{name}' is at {measured:.3f}, and its plan at {planned:.3f}")
                return False
        return now - self._good_since >= MIN_CONSISTENT_S

    def _contradiction(
        self,
        position: Sequence[float],
        velocity: Sequence[float],
        before: _Sample | None,
        step: float,
    ) -> str:
        """Return why a sample is inconsistent; empty if it is consistent."""
        joints = self.joints
        for i, (name, q, v, limit) in enumerate(zip(joints.names, position, velocity, joints.velocity, strict=True)):
            if not (math.isfinite(q) and math.isfinite(v)):
                return f"the plan of joint '{name}' is {q}, {v}; expected finite numbers"
            if not joints.lower[i] <= q <= joints.upper[i] or abs(v) > MAX_VELOCITY_EXCESS * limit:
                return f"the plan of joint '{name}' is beyond its limits: position {q:.3f}, velocity {v:.3f}"
            if before is None:
                continue
            jump = q - before.position[i] - 0.5 * (v + before.velocity[i]) * step
            allowed = MAX_VELOCITY_ERROR * (limit if math.isfinite(limit) else UNLIMITED_VELOCITY) * step
            if abs(jump) > allowed + MAX_POSITION_STEP:
                return f"the plan of joint '{name}' jumps by {jump:.4f} against its velocity of {v:.3f}"
        return ""


class AddedTorques:
    """Torques of a planned motion, and torques against friction of joints at rest.

    Args:
        joints: limits of the joints, and factors on the torque.
        feedback: position feedback. Its desired pose may be the plan. Its `trust`, a factor on the compensated friction
            of moving joints, is set here.
        motion: velocities of the joints and delay of the loop.

    Attributes:
        plan: planned motion, to which samples are reported.
    """

    def __init__(self, joints: JointSettings, feedback: JointFeedback, motion: JointMotion) -> None:
        self.plan = PlannedMotion(joints)
        self._feedback = feedback
        self._motion = motion
        self._rest: RestFriction | None = None

    def planned(
        self, time: float, position: Sequence[float], gravity: Sequence[float], motion_torque: PlannedTorque | None
    ) -> list[float]:
        """Return the torque (n,) of the planned motion, N m (N).

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            gravity: (n,) gravity torque, N m (N).
            motion_torque: torque of motions with the load in force; None: unknown, or no motion may be added.
        """
        if self.plan.is_setpoint:
            self.plan.report(time, self._feedback.desired, self._feedback.speed, [0.0] * len(gravity))
        return self.plan.torque(time, position, gravity, motion_torque, self._motion.command_delay)

    def at_rest(
        self,
        time: float,
        position: Sequence[float],
        gravity: Sequence[float],
        payload_torque: Callable[[Sequence[float]], Sequence[float]] | None,
        joints: JointSettings,
        *,
        active: bool,
    ) -> list[float]:
        """Return the torque (n,) against friction of joints at rest, N m (N).

        Args:
            time: s of the steady clock.
            position: (n,) rad (m).
            gravity: (n,) gravity torque, which loads the gears, N m (N).
            payload_torque: gravity torque of a load that may be put down, from positions (n,); None: no such load.
            joints: settings in force.
            active: whether the torque may act; if not, the detection of a hand is reset.
        """
        friction = joints.feedback.rest
        if friction is None or not active:
            self._rest = None
            self._feedback.trust = [1.0] * len(position)
            return [0.0] * len(position)
        if self._rest is None:
            self._rest = RestFriction(len(position))
        brake = joints.brake
        still = [0.0] * len(position)
        velocity = self._motion.velocity
        torque = self._rest.torque(
            time,
            position,
            velocity,
            friction.levels(velocity, gravity),
            rates=joints.rate,
            damping=[math.inf] * len(position) if brake is None else brake.damping(self._motion.delay),
            planned=self._feedback.speed if joints.feedback.holds else still,
            friction_velocity=joints.feedback.friction_velocity,
            payload=payload_torque(position) if payload_torque else still,
        )
        self._feedback.trust = self._rest.trust
        return torque
