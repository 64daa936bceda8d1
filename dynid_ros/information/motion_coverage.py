"""What a motion covers, and what it might have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import blocks
from dynid_ros.trajectories.limits import MotionLimits

LEAST_SAMPLES = 3
HALF_SPEED = 0.5
"""Part of the speed in a robot's description that motions have, as they are planned here."""
FASTEST = 3.0
"""That such motions are, per s, whatever the description says: some say 1000 where nobody knew."""
SPEED, ACCELERATION = 1.0, 2.0
"""At least, that a joint without limits may do, per s and per s²."""
TURN, SLIDE = np.pi, 0.5
"""To either side, that a joint goes at most, rad, or goes without limits, m."""


@dataclass(frozen=True, eq=False)
class MotionCoverage:
    """What a motion covers, of n joints.

    Attributes:
        samples: how many equations each joint has.
        rate: of them, per s; None: not known.
        lower, upper: (n,) extreme positions, rad or m.
        speed: (n,) highest.
        limits: what the joints might do.
    """

    samples: int
    rate: float | None
    lower: NDArray
    upper: NDArray
    speed: NDArray
    limits: MotionLimits

    @property
    def middle(self) -> NDArray:
        """(n,) between the extreme positions."""
        return (self.lower + self.upper) / 2

    @staticmethod
    def of(
        robot: RobotModel,
        stretches: Sequence[Sequence[NDArray]],
        samples: int,
        rate: float | None = None,
        limits: MotionLimits | None = None,
    ) -> MotionCoverage:
        """Judge stretches of position, velocity and acceleration, (M, n) each.

        Raises:
            TrajectoryError: too few samples, one that is not finite, no joint moves, or limits or a rate that are none.
        """
        if samples < LEAST_SAMPLES:
            raise TrajectoryError(f"the motion has {samples} samples; at least {LEAST_SAMPLES} are needed to judge it")
        if rate is not None and not (np.isfinite(rate) and rate > 0):
            raise TrajectoryError(f"rate is {rate:g}; expected samples per second, above 0")
        for stretch in stretches:
            _check_finite(robot, stretch)
        lower = np.min([q.min(axis=0) for q, _, _ in stretches], axis=0)
        upper = np.max([q.max(axis=0) for q, _, _ in stretches], axis=0)
        speed = np.max([np.abs(qd).max(axis=0) for _, qd, _ in stretches], axis=0)
        most = np.max([np.abs(qdd).max(axis=0) for _, _, qdd in stretches], axis=0)
        if not (np.any(upper > lower) or np.any(speed) or np.any(most)):
            raise TrajectoryError("no joint moves: all samples are of one pose at rest; judge a motion")
        limits = limits or usual_limits(robot, lower, upper, speed, most)
        if limits.joint_names != robot.joint_names:
            raise TrajectoryError(
                f"the limits are of {', '.join(limits.joint_names)}; expected {', '.join(robot.joint_names)}"
            )
        return MotionCoverage(samples, rate, lower, upper, speed, limits)


def usual_limits(robot: RobotModel, lower: NDArray, upper: NDArray, speed: NDArray, most: NDArray) -> MotionLimits:
    """Limits of the robot's description, at half its speed, and where it has none, about what a motion reached.

    Args:
        robot: the arm.
        lower: (n,) lowest position that was reached.
        upper: (n,) highest.
        speed: (n,) highest.
        most: (n,) highest acceleration.
    """
    described = robot.limits
    slides = robot.chain.prismatic
    reach = np.where(slides, SLIDE, TURN)
    # Exporters write zeros where nobody entered a limit.
    limited = (described.lower < described.upper) & np.isfinite(described.lower) & np.isfinite(described.upper)
    low = np.where(limited, described.lower, np.minimum(lower, -reach))
    high = np.where(limited, described.upper, np.maximum(upper, reach))
    middle = np.clip(0.0, low, high)
    turn = np.where(slides, np.inf, TURN)
    known = np.isfinite(described.velocity) & (described.velocity > 0)
    return MotionLimits(
        tuple(robot.joint_names),
        tuple("m" if slide else "rad" for slide in slides),
        np.maximum(low, middle - turn),
        np.minimum(high, middle + turn),
        np.maximum(speed, np.where(known, np.minimum(HALF_SPEED * described.velocity, FASTEST), SPEED)),
        np.maximum(most, ACCELERATION),
    )


def _check_finite(robot: RobotModel, samples: Sequence[NDArray]) -> None:
    for name, array in zip(("q", "qd", "qdd"), samples, strict=True):
        for block in blocks(len(array)):
            if not np.isfinite(array[block]).all():
                row, joint = np.argwhere(~np.isfinite(array[block]))[0]
                raise TrajectoryError(
                    f"{name} of {robot.joint_names[joint]} is {array[block][row, joint]} in sample "
                    f"{block.start + row}; leave such samples out"
                )
