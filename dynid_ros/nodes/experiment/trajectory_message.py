"""`Trajectory` to `trajectory_msgs/JointTrajectory`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.trajectories import Trajectory
from dynid_ros.trajectories.execution import SHORTEST

LEAD = SHORTEST
"""Time from arrival to the first point, s: the controller goes there smoothly from where it begins.

That is its own reference, or the measured pose, see `motion_controller`. The way a message takes shifts the motion;
over less time a controller could not make up for it without a jerk.
"""
SAME = 1e-6
"""s within which two points are one."""


def trajectory_message(
    trajectory: Trajectory, joint_names: Sequence[str], delay: float, lead: float = LEAD
) -> JointTrajectory:
    """Message with what of `trajectory` is due `lead` after arrival, and its samples after that.

    Args:
        trajectory: ends at rest.
        joint_names: as the controller has them.
        delay: time from the arrival of the message to the first sample, s; negative: it is past.
        lead: s; 0: the controller goes on with the motion where that is to be, whatever its own beginning is.

    """
    ordered = trajectory.select(joint_names)
    first = min(max(lead - delay, 0.0), ordered.duration)
    own: NDArray = np.concatenate([[first], ordered.time[ordered.time > first + SAME]])
    message = JointTrajectory(joint_names=list(joint_names))
    rows = (np.maximum(own + delay, lead), *ordered.at(own))
    for time, position, velocity, acceleration in zip(*(row.tolist() for row in rows), strict=True):
        point = JointTrajectoryPoint(positions=position, velocities=velocity, accelerations=acceleration)
        point.time_from_start = Duration(seconds=time).to_msg()
        message.points.append(point)
    return message
