"""What a rosbag2 folder or file holds, whichever library reads it, and the clock of a recording."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

JOINT_STATE = "sensor_msgs/msg/JointState"
FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"


def nanoseconds(stamp: Any) -> int:
    """Time of a header stamp, or a duration, ns."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


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


class Bag:
    """Topics and messages of an open bag; made by `bag_reader.open_bag`.

    Attributes:
        path: the folder or file.
        topics: message type by topic.
        truncated: the recorder was killed; what it had written is here.
    """

    truncated = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[str, str] = {}

    def topics_of(self, *msgtypes: str) -> list[str]:
        """Names of the topics that have one of these types, sorted."""
        return sorted(topic for topic, msgtype in self.topics.items() if msgtype in msgtypes)

    def messages(self, topic: str) -> Iterator[tuple[int, Any]]:
        """Time of reception (ns since the epoch) and content of each message, in the order recorded.

        A terminal shows a progress bar when this takes longer than a second.

        Raises:
            RecordingError: a message or a chunk of the file is damaged.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the files."""
