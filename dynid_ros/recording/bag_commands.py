"""Commanded positions of joints, with velocities and feed-forward torques, from a topic of a bag."""

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


COMMAND_ARRAYS = ("positions", "velocities", "efforts")


def read_commands(bag: Bag, topic: str, joint_names: Sequence[str], clock: Clock) -> CommandSeries:
    """Read the commands of a topic whose type is one of `COMMAND_TYPES`, with joints in the order of `joint_names`.

    A point of a trajectory is a command at its own time, unless a later message comes before it.

    Raises:
        RecordingError: no message has a position for any of these joints, or one has another number of values.
    """
    received: list[int] = []
    stamped: list[int] = []
    rows: list[list[list[float]]] = []
    for count, (time, message) in enumerate(bag.messages(topic)):
        stamp = nanoseconds(message.header.stamp) if hasattr(message, "header") else 0
        while received and received[-1] >= time:
            del received[-1], stamped[-1], rows[-1]
        for after, names, fields in _commands(message, bag.topics[topic], joint_names):
            for field, values in zip(COMMAND_ARRAYS, fields, strict=True):
                if len(values) != len(names) and (len(values) or field == COMMAND_ARRAYS[0]):
                    raise RecordingError(
                        f"{bag.path}: message {count} of {topic} has {len(values)} {field} for {len(names)} "
                        f"joints ({', '.join(names)})"
                    )
            if not set(names) & set(joint_names):
                continue
            received.append(time + after)
            stamped.append(stamp + after if stamp else 0)
            by_name = [dict(zip(names, values, strict=False)) for values in fields]
            rows.append([[values.get(joint, np.nan) for joint in joint_names] for values in by_name])
    if not rows:
        raise RecordingError(f"{bag.path}: no message of {topic} has a position for {', '.join(joint_names)}")
    seconds = clock.seconds(received, stamped if all(stamped) else [0] * len(stamped))
    kept = np.append(seconds[:-1] < np.minimum.accumulate(seconds[::-1])[::-1][1:], True)
    position, *further = np.moveaxis(np.array(rows, dtype=float)[kept], 1, 0)
    velocity, effort = (values if np.isfinite(values).any() else None for values in further)
    return CommandSeries(seconds[kept], position, velocity, effort)


def _commands(message: Any, msgtype: str, joint_names: Sequence[str]) -> Iterator[tuple[int, Sequence[str], list[Any]]]:
    """Yield the time after that of the message, ns, the joints, and their values for each of `COMMAND_ARRAYS`."""
    if msgtype == JOINT_STATE:
        yield 0, message.name, [message.position, message.velocity, message.effort]
    elif msgtype == FLOAT64_MULTI_ARRAY:
        yield 0, joint_names, [message.data, (), ()]
    elif msgtype == CONTROLLER_STATE:  # before ROS 2 Iron the reference was called desired
        reference = message.reference if hasattr(message, "reference") else message.desired
        # The output is what the drive receives: a controller without a velocity interface commands none.
        output = getattr(message, "output", reference)
        sent = output if len(output.positions) else reference
        yield 0, message.joint_names, [reference.positions, sent.velocities, sent.effort]
    else:
        for point in message.points:
            after = nanoseconds(point.time_from_start)
            yield after, message.joint_names, [point.positions, point.velocities, point.effort]
