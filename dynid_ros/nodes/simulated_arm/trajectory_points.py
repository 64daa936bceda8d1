"""From `trajectory_msgs/JointTrajectory` to points for the simulated arm."""

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.errors import TrajectoryError
from dynid_ros.simulation import TrajectoryPoints


def trajectory_points(message: JointTrajectory) -> TrajectoryPoints:
    """Points of the message; a derivative that no point has is None.

    Raises:
        TrajectoryError: a point lacks values that it or other points have; names the point.

    """
    return TrajectoryPoints(
        message.joint_names,
        [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points],
        _field(message, "positions"),
        _field(message, "velocities") if _has(message, "velocities") else None,
        _field(message, "accelerations") if _has(message, "accelerations") else None,
        _field(message, "effort") if _has(message, "effort") else None,
    )


def _has(message: JointTrajectory, field: str) -> bool:
    return any(len(getattr(point, field)) for point in message.points)


def _field(message: JointTrajectory, field: str) -> np.ndarray:
    n = len(message.joint_names)
    for number, point in enumerate(message.points, start=1):
        size = len(getattr(point, field))
        if size != n:
            raise TrajectoryError(f"point {number} of the trajectory has {size} {field}; expected {n}, one per joint")
    return np.array([getattr(point, field) for point in message.points], dtype=float).reshape(len(message.points), n)
