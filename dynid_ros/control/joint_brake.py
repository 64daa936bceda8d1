"""Damping torque that a delayed control loop can apply to an arm without oscillation.

A joint of effective inertia D that is damped by b with a delay T obeys D v' = -b v(t - T), which is stable for
b T / D < pi / 2 (Stepan 1989, "Retarded dynamical systems", section 3.1). Joints are coupled, so b is chosen for the
fastest mode of the arm in any pose.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.model import RobotModel

MAX_DAMPING_DELAY_RATIO = 0.5
"""Product b T / D of the fastest mode; the stability limit pi / 2 allows for threefold errors of inertia or delay."""
SAMPLED_POSES = 60
"""Number of random poses within the joints' limits at which inertias and gravity torques are evaluated."""
MIN_INERTIA = 1e-9
"""Eigenvalue of the mass matrix, kg m^2 (kg), at or below which the masses of the robot count as unknown."""
HOLD_FRACTION = 0.5
"""Largest torque of the holding spring, as a fraction of the joint's braking limit."""
MIN_SPRING_TRAVEL = 0.05
"""Smallest deflection at which a spring reaches its largest torque, rad (m)."""
MIN_BRAKE_FRACTION = 0.1
"""Smallest braking limit, as a fraction of the joint's torque limit."""


@dataclass(frozen=True)
class JointBrake:
    """Limits of the brake of each joint, one entry per joint.

    Attributes:
        damping_delay: product of damping coefficient and loop delay, N m s^2/rad (N s^2/m); 0: no damping is safe.
        limit: largest braking torque, N m (N).
        gravity: largest gravity torque in any pose, N m (N).
    """

    damping_delay: tuple[float, ...]
    limit: tuple[float, ...]
    gravity: tuple[float, ...]

    @classmethod
    def from_robot(
        cls,
        robot: RobotModel,
        torque_limits: Sequence[float],
        *,
        parameters: ArrayLike | None = None,
        rotor_inertia: ArrayLike = 0.0,
    ) -> "JointBrake":
        """Compute the brake from the mass matrices and gravity torques of the arm in many poses.

        Args:
            robot: the arm.
            torque_limits: (n,) torque limits, N m (N); values that are not positive and finite: the gravity torque.
            parameters: (10 m,) inertial parameters of the links; None: those of the URDF.
            rotor_inertia: (n,) rotor inertias reflected to the joints, kg m^2 (kg).
        """
        n = robot.n_joints
        poses = random_poses(robot, SAMPLED_POSES)
        gravity = np.abs(robot.gravity_torque(poses, parameters)).max(axis=0)
        limits = np.asarray(torque_limits, dtype=float)
        limits = np.where(np.isfinite(limits) & (limits > 0.0), limits, gravity)
        inertia = mass_matrices(robot, poses, parameters) + np.diag(np.broadcast_to(rotor_inertia, n))
        is_positive = np.linalg.eigvalsh(inertia).min(axis=1) > MIN_INERTIA
        braking = np.minimum(np.maximum(gravity, MIN_BRAKE_FRACTION * limits), limits)
        if not is_positive.all():
            damping = np.zeros(n)
        else:
            compliance = np.linalg.inv(inertia)
            # If all other joints are free, the inertia of joint j is 1 / (M^-1)_jj, less than M_jj.
            effective = (1.0 / np.diagonal(compliance, axis1=1, axis2=2)).min(axis=0)
            # With damping b = c D, the fastest mode decays at c times the largest eigenvalue of D^1/2 M^-1 D^1/2.
            root = np.sqrt(effective)
            fastest = np.linalg.eigvalsh(root[:, np.newaxis] * compliance * root).max()
            damping = MAX_DAMPING_DELAY_RATIO / fastest * effective
        return cls(tuple(damping.tolist()), tuple(braking.tolist()), tuple(gravity.tolist()))

    @property
    def hold_limit(self) -> list[float]:
        """Largest torques (n,) of the springs that hold the arm, N m (N)."""
        return [HOLD_FRACTION * limit for limit in self.limit]

    def damping(self, delay: float) -> list[float]:
        """Return the damping coefficients (n,), N m s/rad (N s/m), at a loop delay, s."""
        return [value / delay for value in self.damping_delay]

    def torque(self, velocity: Sequence[float], allowed: Sequence[float], damping: Sequence[float]) -> list[float]:
        """Return the braking torque (n,), N m (N).

        Args:
            velocity: (n,) rad/s (m/s).
            allowed: (n,) speeds up to which the braking torque is zero, rad/s (m/s).
            damping: (n,) coefficients, N m s/rad (N s/m).
        """
        torque = []
        for v, free, coefficient, limit in zip(velocity, allowed, damping, self.limit, strict=True):
            excess = max(abs(v) - free, 0.0)
            torque.append(-math.copysign(min(coefficient * excess, limit), v))
        return torque

    def spring(self, deflection: Sequence[float], delay: float) -> list[float]:
        """Return the torque (n,) of saturating springs that are stable together with the damping, N m (N).

        The stiffness is b / (2 T), but at most `hold_limit` / `MIN_SPRING_TRAVEL`. The largest torque is `hold_limit`.

        Args:
            deflection: (n,) pose to be held minus measured pose, rad (m).
            delay: delay T of the loop, s.
        """
        return [
            math.copysign(min(damping / (2.0 * delay) * abs(e), limit * abs(e) / MIN_SPRING_TRAVEL, limit), e)
            for e, damping, limit in zip(deflection, self.damping(delay), self.hold_limit, strict=True)
        ]

    def lowering_time(self, delay: float, speed: float) -> float:
        """Return the shortest duration of a ramp of the gravity torque to zero that causes no oscillation, s.

        The ramp waits while the arm sinks at `speed` or faster. This feedback acts on each joint like a stiffness
        K = g / (duration · speed) with the delay T of the loop. A delayed stiffness acts like a negative damping K T,
        which is at most half of the damping b if K <= b / (2 T).

        Args:
            delay: delay T of the loop, s.
            speed: speed of the sinking joints, rad/s (m/s).
        """
        times = [
            2.0 * gravity * delay / (damping * speed)
            for gravity, damping, limit in zip(self.gravity, self.damping(delay), self.limit, strict=True)
            if damping > 0.0 and gravity > MIN_BRAKE_FRACTION * limit
        ]
        return max(times, default=0.0)


def random_poses(robot: RobotModel, count: int) -> NDArray:
    """Return poses (count, n) within the limits, rad (m); joints without limits turn once around."""
    lower, upper = (np.asarray(bound, dtype=float) for bound in (robot.limits.lower, robot.limits.upper))
    turns = ~(np.isfinite(lower) & np.isfinite(upper))
    return np.random.default_rng(0).uniform(
        np.where(turns, -math.pi, lower), np.where(turns, math.pi, upper), (count, robot.n_joints)
    )


def mass_matrices(robot: RobotModel, poses: NDArray, parameters: ArrayLike | None = None) -> NDArray:
    """Return the mass matrices (N, n, n) at `poses` (N, n), kg m^2 (kg m, kg), without rotor inertias."""
    n = robot.n_joints
    rest = np.zeros_like(poses)
    gravity = robot.inverse_dynamics(poses, rest, rest, parameters)
    columns = [
        robot.inverse_dynamics(poses, rest, np.broadcast_to(np.eye(n)[j], poses.shape), parameters) - gravity
        for j in range(n)
    ]
    return np.stack(columns, axis=2)
