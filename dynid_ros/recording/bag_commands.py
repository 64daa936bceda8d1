"""Commanded positions of joints, from a topic of a bag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.recording.bag import FLOAT64_MULTI_ARRAY, JOINT_STATE, Bag, Clock, nanoseconds
from dynid_ros.recording.series import CommandSeries

JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
CONTROLLER_STATE = "control_msgs/msg/JointTrajectoryControllerState"
COMMAND_TYPES = (JOINT_STATE, JOINT_TRAJECTORY, FLOAT64_MULTI_ARRAY, CONTROLLER_STATE)


def read_commands(bag: Bag, topic: str, joint_names: Sequence[str], clock: Clock) -> CommandSeries:
    """Read the commands of a topic whose type is one of `COMMAND_TYPES`, with joints in the order of `joint_names`.

    A point of a trajectory is a command at its own time, unless a later message comes before it.

    Raises:
        RecordingError: no message has a position for any of these joints, or one has another number of values.
    """
    received: list[int] = []
    stamped: list[int] = []
    rows: list[list[float]] = []
    for count, (time, message) in enumerate(bag.messages(topic)):
        stamp = nanoseconds(message.header.stamp) if hasattr(message, "header") else 0
        while received and received[-1] >= time:
            del received[-1], stamped[-1], rows[-1]
        for after, names, values in _commands(message, bag.topics[topic], joint_names):
            if len(names) != len(values):
                raise RecordingError(
                    f"{bag.path}: message {count} of {topic} has {len(values)} positions for {len(names)} joints "
                    f"({', '.join(names)})"
                )
            positions = dict(zip(names, values, strict=True))
            if not set(positions) & set(joint_names):
                continue
            received.append(time + after)
            stamped.append(stamp + after if stamp else 0)
            rows.append([positions.get(joint, np.nan) for joint in joint_names])
    if not rows:
        raise RecordingError(f"{bag.path}: no message of {topic} has a position for {', '.join(joint_names)}")
    seconds = clock.seconds(received, stamped if all(stamped) else [0] * len(stamped))
    kept = np.append(seconds[:-1] < np.minimum.accumulate(seconds[::-1])[::-1][1:], True)
    return CommandSeries(seconds[kept], np.array(rows)[kept])


def _commands(message: Any, msgtype: str, joint_names: Sequence[str]) -> Iterator[tuple[int, Sequence[str], Any]]:
    """Yield the time after that of the message, ns, the joints and their positions."""
    if msgtype == JOINT_STATE:
        yield 0, message.name, message.position
    elif msgtype == FLOAT64_MULTI_ARRAY:
        yield 0, joint_names, message.data
    elif msgtype == CONTROLLER_STATE:  # before ROS 2 Iron the reference was called desired
        reference = message.reference if hasattr(message, "reference") else message.desired
        yield 0, message.joint_names, reference.positions
    else:
        for point in message.points:
            yield nanoseconds(point.time_from_start), message.joint_names, point.positions
