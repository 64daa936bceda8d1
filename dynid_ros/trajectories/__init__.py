"""Planned motions: minimum-jerk moves and Fourier series, their limits, bounds of the links, and stops."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.trajectories.execution import MotionInProgress, stop
    from dynid_ros.trajectories.fourier import FourierSeries
    from dynid_ros.trajectories.limits import MotionLimits, check_limits, check_start, check_torque
    from dynid_ros.trajectories.trajectory import Trajectory, minimum_jerk, move, shortest_duration
    from dynid_ros.trajectories.workspace import Workspace

__all__ = [
    "FourierSeries",
    "MotionInProgress",
    "MotionLimits",
    "Trajectory",
    "Workspace",
    "check_limits",
    "check_start",
    "check_torque",
    "minimum_jerk",
    "move",
    "shortest_duration",
    "stop",
]

offer(globals())
