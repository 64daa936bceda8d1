"""What a planned motion uses of the limits of the joints, and how near the links come to what they must not touch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace
from dynid_ros.trajectories.limits import check_times

BLOCK = 200
"""Poses looked at together."""
STEADY = 1e-3
"""A distance that changes less does not depend on the motion, m."""
MOST = 20000
"""Times looked at, at most, for distances."""


class Approach(NamedTuple):
    """How near two things come.

    Attributes:
        names: what comes near to what.
        room: least distance less the clearance that is asked for, m.
        time: when, s.
        course: (M,) that distance over time, m.

    """

    names: str
    room: float
    time: float
    course: NDArray

    @property
    def steady(self) -> bool:
        """Whether it is the same throughout, as between links with one joint between them."""
        return bool(np.ptp(self.course) < STEADY)


@dataclass(frozen=True, eq=False)
class MotionUse:
    """A motion beside its limits.

    Attributes:
        robot: the arm; its nominal parameters give the torque.
        limits: what the joints may do.
        workspace: where the links may be.
        trajectory: the motion.

    """

    robot: RobotModel
    limits: MotionLimits
    workspace: Workspace
    trajectory: Trajectory

    @cached_property
    def time(self) -> NDArray:
        """(M,) times that are looked at, s."""
        time = check_times(self.trajectory)
        return time[:: -(-len(time) // MOST)]

    @cached_property
    def motion(self) -> tuple[NDArray, NDArray, NDArray]:
        """Position, velocity and acceleration (M, n)."""
        return self.trajectory.at(self.time)

    @cached_property
    def torque(self) -> NDArray | None:
        """(M, n) nominal torque of the links; None where the robot's description has no masses."""
        return self.robot.inverse_dynamics(*self.motion) if np.any(self.robot.parameters) else None

    @cached_property
    def jerk(self) -> NDArray:
        """(n,) highest."""
        return np.abs(self.trajectory.jerk_peaks()[1]).max(axis=0)

    @cached_property
    def parts(self) -> dict[str, NDArray]:
        """(n,) parts of each limit that are used, by its name; NaN where nothing limits."""
        position, velocity, acceleration = self.motion
        middle, half = (self.limits.upper + self.limits.lower) / 2, (self.limits.upper - self.limits.lower) / 2
        found = {
            "position": np.abs(position - middle).max(axis=0) / half,
            "velocity": np.abs(velocity).max(axis=0) / self.limits.velocity,
            "acceleration": np.abs(acceleration).max(axis=0) / self.limits.acceleration,
            "jerk": _part(self.jerk, self.limits.jerk),
        }
        if self.torque is not None:
            found["torque"] = _part(np.abs(self.torque).max(axis=0), self.limits.torque)
        return found

    @cached_property
    def approaches(self) -> list[Approach]:
        """The least distance between each two things that are kept apart: those that change, the nearest first."""
        position = self.motion[0]
        starts = range(0, len(position), BLOCK)
        rooms = [self.workspace.distances(position[start : start + BLOCK]).room for start in starts]
        room = np.concatenate(rooms)
        # A link may be several bodies.
        columns: dict[str, list[int]] = {}
        for column, name in enumerate(self.workspace.names):
            columns.setdefault(name, []).append(column)
        found = []
        for name, own in columns.items():
            course = room[:, own].min(axis=1)
            k = int(np.argmin(course))
            found.append(Approach(name, float(course[k]), float(self.time[k]), course))
        return sorted(found, key=lambda approach: (approach.steady, approach.room))

    def lines(self) -> list[str]:
        """What comes nearest to what, and what is used most of each limit."""
        told = []
        if self.approaches:
            nearest = self.approaches[0]
            told.append(
                f"nearest: {nearest.names} at {nearest.time:.2f} s, {1000 * nearest.room:.0f} mm more than they must "
                "be apart"
            )
        used = []
        for kind, parts in self.parts.items():
            if np.isfinite(parts).any():
                joint = int(np.nanargmax(parts))
                used.append(f"{kind} {100 * parts[joint]:.0f} % ({self.limits.joint_names[joint]})")
        return [*told, f"used of the limits: {', '.join(used)}"]


def _part(used: NDArray, limit: NDArray) -> NDArray:
    return np.where(np.isfinite(limit), used / np.where(np.isfinite(limit), limit, 1.0), np.nan)
