"""Topics, messages and commands of a rosbag2 folder or file for any library that reads it, and clock of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.recording.series import CommandSeries

JOINT_STATE = "sensor_msgs/msg/JointState"
FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"

JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
CONTROLLER_STATE = "control_msgs/msg/JointTrajectoryControllerState"
COMMAND_TYPES = (JOINT_STATE, JOINT_TRAJECTORY, FLOAT64_MULTI_ARRAY, CONTROLLER_STATE)


COMMAND_ARRAYS = ("positions", "velocities", "efforts")


def nanoseconds(stamp: Any) -> int:
    """Return a header stamp or a duration in ns."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


@dataclass(frozen=True)
class Clock:
    """Clock of a recording.

    Attributes:
        stamp_zero: header stamp at time 0, ns; None: stamps are not used.
        receive_zero: time of reception at time 0, ns.
    """

    stamp_zero: int | None
    receive_zero: int

    def seconds(self, received: Sequence[int] | np.ndarray, stamped: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the times of messages (N,), s, by their stamps in ns if both they and the joint states have stamps."""
        stamps = np.asarray(stamped, dtype=np.int64)
        if self.stamp_zero is not None and stamps.any():
            return (stamps - self.stamp_zero) * 1e-9
        return (np.asarray(received, dtype=np.int64) - self.receive_zero) * 1e-9


class Bag:
    """Topics and messages of an open bag, see `bag_reader.open_bag`.

    Attributes:
        path: folder or file.
        topics: message type by topic.
        truncated: whether the recorder was killed, so that the bag ends early.
    """

    truncated = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[str, str] = {}

    def topics_of(self, *msgtypes: str) -> list[str]:
        """Return the sorted names of the topics that have one of these types."""
        return sorted(topic for topic, msgtype in self.topics.items() if msgtype in msgtypes)

    def messages(self, topic: str) -> Iterator[tuple[int, Any]]:
        """Yield the time of reception (ns since the epoch) and the content of each message, in the recorded order.

        A terminal shows a progress bar after one second.

        Raises:
            RecordingError: a message or a chunk of the file is damaged.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the files."""


def read_commands(bag: Bag, topic: str, joint_names: Sequence[str], clock: Clock) -> CommandSeries:
    """Read the commands of a topic whose type is one of `COMMAND_TYPES`, with joints in the order of `joint_names`.

    A point of a trajectory is a command at its own time, unless a later message comes before it.
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
