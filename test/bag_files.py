"""Write bags for tests with the rosbags library."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

TYPES = get_typestore(Stores.ROS2_JAZZY)
START = 1_700_000_000_000_000_000
"""Time of reception of the first message, ns since the epoch."""
MS = 1_000_000
STAMP = 5 * 10**9
"""Header stamp of the first sample in ns, far from the times of reception."""
NAMES = ["a", "b"]
Message = tuple[str, int, Any]


def make(msgtype: str, *fields: Any) -> Any:
    package, name = msgtype.split("/")
    return TYPES.types[f"{package}/msg/{name}"](*fields)


def header(stamp: int, frame_id: str = "") -> Any:
    return make("std_msgs/Header", make("builtin_interfaces/Time", *divmod(stamp, 10**9)), frame_id)


def joint_state(
    stamp: int, names: Sequence[str], position: Any, velocity: Any = (), effort: Any = (), frame_id: str = ""
) -> Any:
    values = (np.array(field, dtype=float) for field in (position, velocity, effort))
    return make("sensor_msgs/JointState", header(stamp, frame_id), list(names), *values)


def float_array(data: Any) -> Any:
    layout = make("std_msgs/MultiArrayLayout", [], 0)
    return make("std_msgs/Float64MultiArray", layout, np.asarray(data, dtype=float))


def wrench(stamp: int, force: Sequence[float], torque: Sequence[float], frame_id: str = "sensor") -> Any:
    vectors = (make("geometry_msgs/Vector3", *vector) for vector in (force, torque))
    return make("geometry_msgs/WrenchStamped", header(stamp, frame_id), make("geometry_msgs/Wrench", *vectors))


def pose(position: Sequence[float], quaternion: Sequence[float] = (0.0, 0.0, 0.0, 1.0)) -> Any:
    return make(
        "geometry_msgs/Pose", make("geometry_msgs/Point", *position), make("geometry_msgs/Quaternion", *quaternion)
    )


def write_bag(
    path: Path, messages: Iterable[Message], storage: StoragePlugin = StoragePlugin.MCAP, chunk: int | None = None
) -> Path:
    """Write a bag of (topic, time of reception in ns, message); a MCAP chunk is closed every `chunk` messages."""
    with Writer(path, version=9, storage_plugin=storage) as writer:
        connections: dict[str, Any] = {}
        for count, (topic, received, message) in enumerate(messages, start=1):
            msgtype = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, msgtype, typestore=TYPES)
            writer.write(connections[topic], received, TYPES.serialize_cdr(message, msgtype))
            if chunk and count % chunk == 0:
                writer.storage.close_chunk()  # type: ignore[union-attr]
    return path


def write_mcap(
    path: Path, messages: Iterable[Message], delays: dict[str, int], finish: bool = True, **options: Any
) -> None:
    """Write equal messages to each topic, received after its delay in ns, with the library of MCAP."""
    writer_module = pytest.importorskip("mcap.writer")
    with path.open("wb") as stream:
        writer = writer_module.Writer(stream, **options)
        writer.start(profile="ros2", library="test")
        definition, _ = TYPES.generate_msgdef("sensor_msgs/msg/JointState", ros_version=2)
        schema = writer.register_schema("sensor_msgs/msg/JointState", "ros2msg", definition.encode())
        channels = {topic: writer.register_channel(topic, "cdr", schema) for topic in delays}
        for _, received, message in messages:
            data = bytes(TYPES.serialize_cdr(message, message.__msgtype__))
            for topic, delay in delays.items():
                writer.add_message(channels[topic], log_time=received + delay, publish_time=received, data=data)
        if finish:
            writer.finish()


def states(n=20, names=NAMES, stamp=STAMP, topic="/joint_states", received=START):
    """Return n joint states, 10 ms apart; joint k has position i + 100 k at sample i, velocity +1000, effort +2000."""
    for i in range(n):
        position = i + 100.0 * np.array([ord(name[0]) - ord("a") for name in names])
        message = joint_state(stamp + i * 10 * MS if stamp else 0, names, position, position + 1000, position + 2000)
        yield topic, received + i * 10 * MS, message
