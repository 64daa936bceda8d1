"""Bags by rosbag2_py and rclpy, which a sourced ROS 2 has, where rosbags is not installed."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import rosbag2_py
from rclpy.serialization import deserialize_message
from tqdm import tqdm

from dynid_ros.errors import RecordingError
from dynid_ros.recording.bag import Bag


class Rosbag2Bag(Bag):
    """A bag that rosbag2_py reads; of a recorder that was killed it reads what the storage plugin can."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.topics = {topic.name: topic.type for topic in self._opened().get_all_topics_and_types()}

    def messages(self, topic: str) -> Iterator[tuple[int, Any]]:
        """See `Bag.messages`; the package of the topic's type must be installed."""
        try:
            package, kind, name = self.topics[topic].split("/")
            message_type = getattr(import_module(f"{package}.{kind}"), name)
        except (AttributeError, ModuleNotFoundError, ValueError) as error:
            raise RecordingError(
                f"{self.path}: topic {topic} has messages of type {self.topics[topic]}, which is not installed "
                f"({error}); install its package, or rosbags, which reads types from the bag"
            ) from error
        reader = self._opened()
        reader.set_filter(rosbag2_py.StorageFilter(topics=[topic]))
        count = 0
        try:
            with tqdm(desc=topic, delay=1.0, disable=None, leave=False) as progress:
                while reader.has_next():
                    _, raw, received = reader.read_next()
                    yield received, deserialize_message(raw, message_type)
                    count += 1
                    progress.update()
        except RuntimeError as error:  # of rosbag2's C++, and rclpy's RCLError
            raise RecordingError(
                f"{self.path} is damaged after message {count} of {topic} ({error}); take another copy, or record again"
            ) from error

    def _opened(self) -> rosbag2_py.SequentialReader:
        reader = rosbag2_py.SequentialReader()
        try:
            reader.open_uri(str(self.path))
        except RuntimeError as error:
            raise RecordingError(
                f"cannot read {self.path} ({error}); expected a rosbag2 folder: take another copy, mend it by `ros2 "
                "bag reindex`, or install rosbags, which reads bags that were cut off"
            ) from error
        return reader
