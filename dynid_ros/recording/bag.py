"""Topics and messages of a rosbag2 folder or file for any library that reads it, and the clock of a recording."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

JOINT_STATE = "sensor_msgs/msg/JointState"
FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"


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
