"""Joint states and joint torques out of a bag, as arrays in one joint order."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.recording.bag import Bag

JOINT_STATE = "sensor_msgs/msg/JointState"
FLOAT64_MULTI_ARRAY = "std_msgs/msg/Float64MultiArray"


@dataclass(frozen=True)
class JointSamples:
    """Messages of one topic: values (N, n) by field, NaN where a message left the field empty.

    `received` (N,) and `stamped` (N,) are ns since the epoch: the bag's time of reception, and the header stamp, zero
    where the type or the publisher has none. `others` are positions (K,), finite, of joints that are not wanted.
    """

    topic: str
    joint_names: tuple[str, ...]
    received: np.ndarray
    stamped: np.ndarray
    values: dict[str, np.ndarray]
    others: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def has_stamps(self) -> bool:
        """Whether the publisher filled the stamps."""
        return bool(self.stamped.any())


def nanoseconds(stamp: Any) -> int:
    """Time of a header stamp, ns."""
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def read_joint_states(
    bag: Bag, topic: str, joint_names: Sequence[str] | None, fields: Sequence[str] = ("position", "velocity", "effort")
) -> JointSamples:
    """Fields of the JointState messages that name all of `joint_names`, or the joints of the first message.

    Several publishers may share the topic, each with joints of its own: messages that lack a wanted joint are passed
    over.

    Raises:
        RecordingError: no messages; none with all joints; messages with different joints, and no `joint_names` to
            choose; a joint named twice; a field with another number of values than there are names.

    """
    wanted = joint_names
    columns_of: dict[tuple[str, ...], list[int]] = {}
    others_of: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    received, stamped = array("q"), array("q")
    buffers = {field: array("d") for field in fields}
    others: defaultdict[str, array] = defaultdict(lambda: array("d"))
    for count, (time, message) in enumerate(bag.messages(topic)):
        names = tuple(message.name)
        if names not in columns_of:
            wanted = wanted or names
            columns_of[names] = _columns(names, wanted, f"{bag.path}: message {count} of {topic}")
            others_of[names] = [(index, name) for index, name in enumerate(names) if name not in wanted]
            if joint_names is None and set(names) != set(wanted):
                raise RecordingError(
                    f"{bag.path}: messages of {topic} name different joints ({', '.join(wanted)}; then "
                    f"{', '.join(names)}); give joint_names to choose"
                )
        columns = columns_of[names]
        if len(message.position) == len(names):
            for index, name in others_of[names]:
                if math.isfinite(message.position[index]):
                    others[name].append(message.position[index])
        if columns:
            received.append(time)
            stamped.append(nanoseconds(message.header.stamp))
            for field, buffer in buffers.items():
                values = getattr(message, field)
                if len(values) not in (0, len(names)):
                    raise RecordingError(
                        f"{bag.path}: message {count} of {topic} has {len(values)} values of {field} for {len(names)} "
                        "names; the driver must fill all or none"
                    )
                picked = values[columns] if len(values) else np.full(len(columns), np.nan)
                buffer.frombytes(np.asarray(picked, dtype=float).tobytes())
    if not received or wanted is None:
        raise RecordingError(f"{bag.path}: {_why_nothing(topic, wanted, columns_of)}")
    return JointSamples(
        topic=topic,
        joint_names=tuple(wanted),
        received=np.array(received),
        stamped=np.array(stamped),
        values={field: np.array(buffer).reshape(-1, len(wanted)) for field, buffer in buffers.items()},
        others={name: np.array(positions) for name, positions in others.items()},
    )


def read_float_array(bag: Bag, topic: str, joint_names: Sequence[str]) -> JointSamples:
    """Efforts from Float64MultiArray messages whose data are in the order of `joint_names`.

    Raises:
        RecordingError: no messages, or one with another number of values.

    """
    received, buffer = array("q"), array("d")
    for count, (time, message) in enumerate(bag.messages(topic)):
        if len(message.data) != len(joint_names):
            raise RecordingError(
                f"{bag.path}: message {count} of {topic} has {len(message.data)} values for {len(joint_names)} joints "
                f"({', '.join(joint_names)})"
            )
        received.append(time)
        buffer.frombytes(np.asarray(message.data, dtype=float).tobytes())
    if not received:
        raise RecordingError(f"{bag.path}: topic {topic} has no messages; record it while its publisher runs")
    stamped = np.zeros(len(received), dtype=np.int64)
    return JointSamples(
        topic,
        tuple(joint_names),
        np.array(received),
        stamped,
        {"effort": np.array(buffer).reshape(-1, len(joint_names))},
    )


def _columns(names: tuple[str, ...], wanted: Sequence[str], where: str) -> list[int]:
    """Index of each wanted joint; empty if one is not there."""
    counts = Counter(names)
    twice = [name for name in wanted if counts[name] > 1]
    if twice:
        raise RecordingError(f"{where} names joint(s) {', '.join(twice)} more than once")
    place = {name: i for i, name in enumerate(names)}
    return [place[name] for name in wanted] if set(wanted) <= set(names) else []


def _why_nothing(topic: str, wanted: Sequence[str] | None, groups: Collection[tuple[str, ...]]) -> str:
    """Reason that no message of a topic with messages naming `groups` could be taken."""
    seen = sorted({name for group in groups for name in group})
    missing = [name for name in wanted or () if name not in seen]
    if not groups:
        return f"topic {topic} has no messages; record it while its publisher runs"
    if not seen:
        return f"the messages of {topic} name no joints; the driver must fill the names"
    if missing:
        return f"no message of {topic} names joint(s) {', '.join(missing)}; it has {', '.join(seen)}"
    return (
        f"no message of {topic} names all of {', '.join(wanted or ())} at once: they come in separate messages; "
        "let one publisher send the joints of an arm"
    )
