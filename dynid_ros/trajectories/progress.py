"""A motion while a controller follows it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.trajectories.trajectory import Trajectory

INSTANTS = 6
"""Instants within the latency at which the motion is looked at."""


@dataclass(frozen=True)
class MotionInProgress:
    """A trajectory that started at a time of some clock.

    Attributes:
        trajectory: the motion.
        start: time of its first sample, s.
        tracking_error_limit: (n,) how far a joint may be from the motion, rad or m.
        latency: how old a measured position may be, s.

    """

    trajectory: Trajectory
    start: float
    tracking_error_limit: NDArray
    latency: float

    def done(self, now: float) -> bool:
        """Whether the last sample is past."""
        return now >= self.start + self.trajectory.duration

    def fraction(self, now: float) -> float:
        """Part of the duration that is past, 0 to 1."""
        return float(np.clip((now - self.start) / self.trajectory.duration, 0.0, 1.0))

    def check(self, measured: ArrayLike, now: float) -> None:
        """The arm, at `measured` (n,), is where the motion is `now` or was within the latency.

        Raises:
            TrajectoryError: names the joint that is too far away, its place and the expected one.

        """
        recent = self.trajectory.at(now - self.start - np.linspace(0.0, self.latency, INSTANTS))[0]
        measured = np.asarray(measured, dtype=float)
        expected = np.clip(measured, recent.min(axis=0), recent.max(axis=0))
        excess = np.abs(measured - expected) - self.tracking_error_limit
        i = int(np.argmax(excess))
        if not excess[i] <= 0:
            raise TrajectoryError(
                f"joint '{self.trajectory.joint_names[i]}' is at {measured[i]:.4g}, the motion at {recent[0, i]:.4g}: "
                f"further away than tracking_error_limit {self.tracking_error_limit[i]:g}"
            )
