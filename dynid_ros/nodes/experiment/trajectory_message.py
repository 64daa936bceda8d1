"""`Trajectory` to `trajectory_msgs/JointTrajectory`."""

from collections.abc import Sequence

from rclpy.duration import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.trajectories import Trajectory
from dynid_ros.trajectories.stopping import SHORTEST

LEAD = SHORTEST
"""Time from arrival to the first point, s: the controller goes there smoothly from where it begins.

That is its own reference, or the measured pose, see `motion_controller`. The way a message takes shifts the motion;
over less time a controller could not make up for it without a jerk.
"""


def trajectory_message(
    trajectory: Trajectory, joint_names: Sequence[str], delay: float, lead: float = LEAD
) -> JointTrajectory:
    """Message with the samples of `trajectory`, in the order `joint_names`, that are due `lead` after arrival or later.

    Args:
        trajectory: ends at rest.
        joint_names: as the controller has them.
        delay: time from the arrival of the message to the first sample, s; negative: it is past.
        lead: s; 0: the controller begins at the first sample, whatever else it does.

    """
    ordered = trajectory.select(joint_names)
    due = ordered.time + delay
    due[-1] = max(due[-1], lead)
    kept = due >= lead - 1e-9
    message = JointTrajectory(joint_names=list(joint_names))
    rows = (due, ordered.position, ordered.velocity, ordered.acceleration)
    for time, position, velocity, acceleration in zip(*(row[kept].tolist() for row in rows), strict=True):
        point = JointTrajectoryPoint(positions=position, velocities=velocity, accelerations=acceleration)
        point.time_from_start = Duration(seconds=time).to_msg()
        message.points.append(point)
    return message
