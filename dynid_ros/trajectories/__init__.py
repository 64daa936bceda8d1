"""Planned motions: minimum-jerk moves and Fourier series, their limits, bounds of the links, and stops."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.trajectories.execution import MotionInProgress as MotionInProgress, stop as stop
    from dynid_ros.trajectories.fourier import FourierSeries as FourierSeries
    from dynid_ros.trajectories.limits import (
        MotionLimits as MotionLimits,
        check_limits as check_limits,
        check_start as check_start,
        check_torque as check_torque,
    )
    from dynid_ros.trajectories.trajectory import (
        Trajectory as Trajectory,
        minimum_jerk as minimum_jerk,
        move as move,
        shortest_duration as shortest_duration,
    )
    from dynid_ros.trajectories.workspace import Workspace as Workspace


offer(globals())
