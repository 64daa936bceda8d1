"""Range of positions and speeds that a motion covers, and the limits that it might use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import require_finite
from dynid_ros.trajectories.limits import MotionLimits

MIN_SAMPLES = 3
USED_SPEED_FRACTION = 0.5
"""Fraction of the described velocity limits that planned motions use by default."""
MAX_USUAL_SPEED = 3.0
"""Highest usual speed, per s; some descriptions contain velocity limits of 1000 where the limit is unknown."""
MIN_USUAL_SPEED = 1.0
"""Usual speed of a joint without velocity limit, per s."""
MIN_USUAL_ACCELERATION = 2.0
"""Usual acceleration of a slow motion, per s²."""
HALF_RANGE_RAD = np.pi
"""Largest range of a revolute joint to either side."""
HALF_RANGE_M = 0.5
"""Range of a sliding joint without limits to either side."""


@dataclass(frozen=True, eq=False)
class MotionCoverage:
    """Range of positions and speeds that a motion covers, for n joints.

    Attributes:
        rate: equations per second; None: unknown.
        lower: (n,) lowest position, rad or m.
        upper: (n,) highest position, rad or m.
        speed: (n,) highest speed.
        limits: limits that a motion of the arm might use.
    """

    samples: int
    rate: float | None
    lower: NDArray
    upper: NDArray
    speed: NDArray
    limits: MotionLimits

    @property
    def middle(self) -> NDArray:
        """Middle (n,) of the range of positions."""
        return (self.lower + self.upper) / 2

    @staticmethod
    def from_stretches(
        robot: RobotModel,
        stretches: Sequence[Sequence[NDArray]],
        samples: int,
        rate: float | None = None,
        limits: MotionLimits | None = None,
    ) -> MotionCoverage:
        """Determine the coverage of stretches of position, velocity and acceleration, (M, n) each.

        Args:
            robot: the arm.
            stretches: consecutive samples of the motion.
            samples: number of equations of each joint.
            rate: equations per second; None: unknown.
            limits: limits that a motion might use; None: see `usual_limits`.
        """
        if samples < MIN_SAMPLES:
            raise TrajectoryError(f"the motion has {samples} samples; at least {MIN_SAMPLES} are needed to judge it")
        if rate is not None and not (np.isfinite(rate) and rate > 0):
            raise TrajectoryError(f"rate is {rate:g}; expected samples per second, above 0")
        for stretch in stretches:
            named = dict(zip(("q", "qd", "qdd"), stretch, strict=True))
            require_finite(robot.joint_names, TrajectoryError, **named)
        lower = np.min([q.min(axis=0) for q, _, _ in stretches], axis=0)
        upper = np.max([q.max(axis=0) for q, _, _ in stretches], axis=0)
        speed = np.max([np.abs(qd).max(axis=0) for _, qd, _ in stretches], axis=0)
        acceleration = np.max([np.abs(qdd).max(axis=0) for _, _, qdd in stretches], axis=0)
        if not (np.any(upper > lower) or np.any(speed) or np.any(acceleration)):
            raise TrajectoryError("no joint moves: all samples are of one pose at rest; judge a motion")
        limits = limits or usual_limits(robot, lower, upper, speed, acceleration)
        if limits.joint_names != robot.joint_names:
            raise TrajectoryError(
                f"the limits are of {', '.join(limits.joint_names)}; expected {', '.join(robot.joint_names)}"
            )
        return MotionCoverage(samples, rate, lower, upper, speed, limits)


def usual_limits(
    robot: RobotModel, lower: NDArray, upper: NDArray, speed: NDArray, acceleration: NDArray
) -> MotionLimits:
    """Return the limits of the robot's description at half its speed, widened to the values of a motion.

    Args:
        robot: the arm.
        lower: (n,) lowest position of the motion.
        upper: (n,) highest position.
        speed: (n,) highest speed.
        acceleration: (n,) highest acceleration.
    """
    described = robot.limits
    slides = robot.chain.prismatic
    half_range = np.where(slides, HALF_RANGE_M, HALF_RANGE_RAD)
    # Exporters write zeros where nothing was entered.
    limited = (described.lower < described.upper) & np.isfinite(described.lower) & np.isfinite(described.upper)
    low = np.where(limited, described.lower, np.minimum(lower, -half_range))
    high = np.where(limited, described.upper, np.maximum(upper, half_range))
    middle = np.clip(0.0, low, high)
    largest_half_range = np.where(slides, np.inf, HALF_RANGE_RAD)
    has_speed = np.isfinite(described.velocity) & (described.velocity > 0)
    described_speed = np.minimum(USED_SPEED_FRACTION * described.velocity, MAX_USUAL_SPEED)
    return MotionLimits(
        tuple(robot.joint_names),
        tuple("m" if slide else "rad" for slide in slides),
        np.maximum(low, middle - largest_half_range),
        np.minimum(high, middle + largest_half_range),
        np.maximum(speed, np.where(has_speed, described_speed, MIN_USUAL_SPEED)),
        np.maximum(acceleration, MIN_USUAL_ACCELERATION),
    )
