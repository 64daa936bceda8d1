"""Wrenches and motion-capture poses out of a bag, on the clock of its joint states."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid_ros.recording.bag import Bag
from dynid_ros.recording.joint_samples import nanoseconds
from dynid_ros.recording.series import PoseSeries, WrenchSeries

WRENCH = "geometry_msgs/msg/WrenchStamped"
POSE = "geometry_msgs/msg/PoseStamped"
POSE_ARRAY = "geometry_msgs/msg/PoseArray"


@dataclass(frozen=True)
class Clock:
    """Time 0 of the recording, ns: by the header stamps (None: they are not used), and as the bag received it."""

    stamp_zero: int | None
    receive_zero: int

    def seconds(self, received: Sequence[int] | np.ndarray, stamped: Sequence[int] | np.ndarray) -> np.ndarray:
        """Time of messages (N,), s, from ns: by their stamps if both they and the joint states have some."""
        stamps = np.asarray(stamped, dtype=np.int64)
        if self.stamp_zero is not None and stamps.any():
            return (stamps - self.stamp_zero) * 1e-9
        return (np.asarray(received, dtype=np.int64) - self.receive_zero) * 1e-9


def read_wrenches(bag: Bag, clock: Clock) -> dict[str, WrenchSeries]:
    """Every WrenchStamped topic."""
    return {topic: _read_wrench_topic(bag, topic, clock) for topic in bag.topics_of(WRENCH)}


def read_poses(bag: Bag, clock: Clock) -> dict[str, PoseSeries]:
    """Every PoseStamped topic by its name, and the markers of a PoseArray topic as "<topic>[<index>]".

    Markers have no names in ROS: an index stays with a marker only as long as the tracker keeps their order.
    """
    poses = {}
    for topic in bag.topics_of(POSE):
        for series in _read_pose_topic(bag, topic, clock, lambda message: [message.pose]):
            poses[topic] = series
    for topic in bag.topics_of(POSE_ARRAY):
        for i, series in enumerate(_read_pose_topic(bag, topic, clock, lambda message: message.poses)):
            poses[f"{topic}[{i}]"] = series
    return poses


def _read_wrench_topic(bag: Bag, topic: str, clock: Clock) -> WrenchSeries:
    received, stamped, rows, frame_id = [], [], [], ""
    for time, message in bag.messages(topic):
        force, torque = message.wrench.force, message.wrench.torque
        received.append(time)
        stamped.append(nanoseconds(message.header.stamp))
        rows.append((force.x, force.y, force.z, torque.x, torque.y, torque.z))
        frame_id = message.header.frame_id
    values = np.array(rows, dtype=float).reshape(-1, 6)
    return WrenchSeries(clock.seconds(received, stamped), values[:, :3], values[:, 3:], frame_id)


def _read_pose_topic(bag: Bag, topic: str, clock: Clock, poses_of: Callable[[Any], list[Any]]) -> list[PoseSeries]:
    received, stamped, rows, frame_id = [], [], [], ""
    for time, message in bag.messages(topic):
        received.append(time)
        stamped.append(nanoseconds(message.header.stamp))
        rows.append([_seven(pose) for pose in poses_of(message)])
        frame_id = message.header.frame_id
    values = np.full((len(rows), max(map(len, rows), default=0), 7), np.nan)
    for i, row in enumerate(rows):
        if row:
            values[i, : len(row)] = row
    time_axis = clock.seconds(received, stamped)
    return [PoseSeries(time_axis, values[:, k, :3], values[:, k, 3:], frame_id) for k in range(values.shape[1])]


def _seven(pose: Any) -> tuple[float, ...]:
    p, q = pose.position, pose.orientation
    return p.x, p.y, p.z, q.x, q.y, q.z, q.w
