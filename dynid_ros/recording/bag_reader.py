"""Reading of a bag into a recording on one clock: joint states and torques, wrenches, mocap poses."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.files.disk_arrays import RowBuffer
from dynid_ros.recording.bag import (
    COMMAND_TYPES,
    FLOAT64_MULTI_ARRAY,
    JOINT_STATE,
    Bag,
    Clock,
    nanoseconds,
    read_commands,
)
from dynid_ros.recording.effort import IMPEDANCE, EffortConvention
from dynid_ros.recording.series import ImuSeries, PoseSeries, WrenchSeries, require_increasing
from dynid_ros.signals import GapSpline

WRENCH_TYPE = "geometry_msgs/msg/WrenchStamped"
IMU_TYPE = "sensor_msgs/msg/Imu"
POSE_TYPE = "geometry_msgs/msg/PoseStamped"
POSE_ARRAY = "geometry_msgs/msg/PoseArray"
STAMPS_REMEDY = (
    "two publishers on one topic, or a bag that was played while this one was recorded: record again with one "
    "publisher, or read with --receive-time (receive_time=True) if only the driver's stamps are wrong"
)
MIN_DISTINCT_STAMPS = 0.1
"""Smallest fraction of distinct stamps; with fewer, the stamps do not come from a running clock."""
MAX_UNSTAMPED = 0.1
"""Largest fraction of messages without a stamp that are left out; with more, no stamp is used."""
MAX_GAP_PERIODS = 5
"""Longest gap over which torques are interpolated, in periods of the torques."""
Between = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Interpolation from known times (M,), s, and values (M, n) to other times (N,), s."""


@dataclass(frozen=True)
class JointSamples:
    """Messages of one topic.

    Attributes:
        topic: name of the topic.
        joint_names: names of the n joints.
        received: (N,) times of reception, ns since the epoch.
        stamped: (N,) header stamps, ns since the epoch; 0 without a stamp.
        values: (N, n) values by field; NaN where a message left the field empty.
        others: (K,) finite positions of joints that are not requested, by name.
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


def read_joint_states(
    bag: Bag, topic: str, joint_names: Sequence[str] | None, fields: Sequence[str] = ("position", "velocity", "effort")
) -> JointSamples:
    """Read the JointState messages that name all of `joint_names`, or the joints of the first message.

    Several publishers with different joints may share the topic: messages that lack a requested joint are skipped.

    Raises:
        RecordingError: there is no message, or no message names all joints; messages name different joints, and
            `joint_names` is None; a joint is named twice; a field has another number of values than there are names.
    """
    wanted = joint_names
    # Columns by the names of a message, which are the same in most messages.
    columns_of: dict[tuple[str, ...], list[int]] = {}
    others_of: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    received = array("q")
    stamped = array("q")
    buffers: dict[str, RowBuffer] = {}
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
            buffers = buffers or {field: RowBuffer(len(columns)) for field in fields}
            for field, buffer in buffers.items():
                buffer.append(_values(message, field, columns, f"{bag.path}: message {count} of {topic}"))
    if not received or wanted is None:
        raise RecordingError(f"{bag.path}: {_why_nothing(topic, wanted, columns_of)}")
    return JointSamples(
        topic=topic,
        joint_names=tuple(wanted),
        received=np.array(received),
        stamped=np.array(stamped),
        values={field: buffer.array() for field, buffer in buffers.items()},
        others={name: np.array(positions) for name, positions in others.items()},
    )


def _values(message: Any, field: str, columns: list[int], where: str) -> np.ndarray:
    """Return the values (n,) of a field in these columns; NaN if the message leaves the field empty."""
    values = np.asarray(getattr(message, field))
    if not len(values):
        return np.full(len(columns), np.nan)
    if len(values) != len(message.name):
        raise RecordingError(
            f"{where} has {len(values)} values of {field} for {len(message.name)} names; the driver must fill all or "
            "none"
        )
    return values[columns]


def read_float_array(bag: Bag, topic: str, joint_names: Sequence[str]) -> JointSamples:
    """Read efforts from Float64MultiArray messages, whose data are in the order of `joint_names`."""
    received = array("q")
    buffer = RowBuffer(len(joint_names))
    for count, (time, message) in enumerate(bag.messages(topic)):
        if len(message.data) != len(joint_names):
            raise RecordingError(
                f"{bag.path}: message {count} of {topic} has {len(message.data)} values for {len(joint_names)} joints "
                f"({', '.join(joint_names)})"
            )
        received.append(time)
        buffer.append(np.asarray(message.data))
    if not received:
        raise RecordingError(f"{bag.path}: topic {topic} has no messages; record it while its publisher runs")
    stamped = np.zeros(len(received), dtype=np.int64)
    return JointSamples(topic, tuple(joint_names), np.array(received), stamped, {"effort": buffer.array()})


def _columns(names: tuple[str, ...], wanted: Sequence[str], where: str) -> list[int]:
    """Return the index of each requested joint; empty if one is missing."""
    counts = Counter(names)
    twice = [name for name in wanted if counts[name] > 1]
    if twice:
        raise RecordingError(f"{where} names joint(s) {', '.join(twice)} more than once")
    place = {name: i for i, name in enumerate(names)}
    return [place[name] for name in wanted] if set(wanted) <= set(names) else []


def _why_nothing(topic: str, wanted: Sequence[str] | None, groups: Collection[tuple[str, ...]]) -> str:
    """Explain why no message of a topic can be used, given the groups of joints that its messages name."""
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


def read_wrenches(bag: Bag, clock: Clock) -> dict[str, WrenchSeries]:
    """Return the series of all WrenchStamped topics by topic."""
    return {topic: _read_wrench_topic(bag, topic, clock) for topic in bag.topics_of(WRENCH_TYPE)}


def read_imus(bag: Bag, clock: Clock) -> dict[str, ImuSeries]:
    """Return the series of all Imu topics by topic."""
    return {topic: _read_imu_topic(bag, topic, clock) for topic in bag.topics_of(IMU_TYPE)}


def read_poses(bag: Bag, clock: Clock) -> dict[str, PoseSeries]:
    """Return the series of PoseStamped topics by topic, and of the markers of PoseArray topics as "<topic>[<index>]".

    Markers have no names in ROS: an index belongs to one marker as long as the tracker keeps the order.
    """
    poses = {}
    for topic in bag.topics_of(POSE_TYPE):
        for series in _read_pose_topic(bag, topic, clock, lambda message: [message.pose]):
            poses[topic] = series
    for topic in bag.topics_of(POSE_ARRAY):
        for i, series in enumerate(_read_pose_topic(bag, topic, clock, lambda message: message.poses)):
            poses[f"{topic}[{i}]"] = series
    return poses


def _read_wrench_topic(bag: Bag, topic: str, clock: Clock) -> WrenchSeries:
    def values(message: Any) -> tuple[float, ...]:
        return *_vector(message.wrench.force), *_vector(message.wrench.torque)

    time, rows, frame_id = _read_rows(bag, topic, clock, values)
    wrenches = np.array(rows, dtype=float).reshape(-1, 6)
    return WrenchSeries(time, wrenches[:, :3], wrenches[:, 3:], frame_id)


def _read_imu_topic(bag: Bag, topic: str, clock: Clock) -> ImuSeries:
    time, rows, frame_id = _read_rows(bag, topic, clock, lambda message: _vector(message.linear_acceleration))
    return ImuSeries(time, np.array(rows, dtype=float).reshape(-1, 3), frame_id)


def _read_pose_topic(bag: Bag, topic: str, clock: Clock, poses_of: Callable[[Any], list[Any]]) -> list[PoseSeries]:
    """Return a series for each pose in the messages of a topic; NaN where a message has fewer poses."""

    def values(message: Any) -> list[tuple[float, ...]]:
        return [(*_vector(pose.position), *_vector(pose.orientation), pose.orientation.w) for pose in poses_of(message)]

    time, rows, frame_id = _read_rows(bag, topic, clock, values)
    poses = np.full((len(rows), max(map(len, rows), default=0), 7), np.nan)
    for i, row in enumerate(rows):
        if row:
            poses[i, : len(row)] = row
    return [PoseSeries(time, poses[:, k, :3], poses[:, k, 3:], frame_id) for k in range(poses.shape[1])]


def _read_rows(bag: Bag, topic: str, clock: Clock, values: Callable[[Any], Any]) -> tuple[np.ndarray, list[Any], str]:
    """Return times (N,), s, the values of each message, and the frame of the last message of a topic."""
    received: list[int] = []
    stamped: list[int] = []
    rows: list[Any] = []
    frame_id = ""
    for time, message in bag.messages(topic):
        received.append(time)
        stamped.append(nanoseconds(message.header.stamp))
        rows.append(values(message))
        frame_id = message.header.frame_id
    return clock.seconds(received, stamped), rows, frame_id


def _vector(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


@contextmanager
def open_bag(path: Path) -> Iterator[Bag]:
    """Open a rosbag2 folder, with or without its metadata.yaml, or a single .mcap or .db3 file.

    With rosbags, a MCAP file without an end is read up to its last complete chunk; rosbag2_py refuses it.
    """
    reader: type[Bag]
    if find_spec("rosbags"):
        from dynid_ros.recording.rosbags_bag import RosbagsBag as reader  # noqa: N813, PLC0415 - one of two
    elif find_spec("rosbag2_py"):
        from dynid_ros.recording.rosbag2_bag import Rosbag2Bag as reader  # noqa: N813, PLC0415
    else:
        raise RecordingError(
            f"cannot read {path}: bags need rosbags (pip install 'rosbags>=0.11.6,<0.12'), or rosbag2_py of a sourced "
            "ROS 2; .csv and .npz need neither"
        )
    with closing(reader(path)) as bag:
        yield bag


def read_bag(
    path: Path,
    joint_names: Sequence[str] | None,
    convention: EffortConvention,
    *,
    torque_topic: str | None,
    joint_states_topic: str | None,
    link_states_topic: str | None,
    command_topic: str | None,
    receive_time: bool,
) -> dict[str, Any]:
    """Read the fields of a `Recording`; see `Recording.read`."""
    with open_bag(path) as bag:
        torque_topic = _checked(bag, torque_topic, (JOINT_STATE, FLOAT64_MULTI_ARRAY))
        link_states_topic = _checked(bag, link_states_topic, (JOINT_STATE,))
        command_topic = _checked(bag, command_topic, COMMAND_TYPES)
        joint_states_topic = _checked(bag, joint_states_topic, (JOINT_STATE,)) or _joint_states_topic(
            bag, {torque_topic, link_states_topic, command_topic}
        )
        states = read_joint_states(bag, joint_states_topic, joint_names)
        states, clock_remark = (states, "") if receive_time else _with_usable_stamps(states)
        use_stamps = states.has_stamps and not receive_time
        clock = Clock(int(states.stamped[0]) if use_stamps else None, int(states.received[0]))
        time = clock.seconds(states.received, states.stamped)
        require_increasing(time, f"{path}: {states.topic}", STAMPS_REMEDY)
        effort = states.values["effort"]
        if torque_topic:
            torques = _read_torques(bag, torque_topic, joint_names, states)
            effort = _at_states(torques, states, _linear, use_stamps=use_stamps, source=str(path))
        links = None
        if link_states_topic:
            read = read_joint_states(bag, link_states_topic, states.joint_names, fields=("position",))
            links = _at_states(read, states, _smooth, use_stamps=use_stamps, source=str(path))
        return {
            "joint_names": states.joint_names,
            "time": time,
            "position": states.values["position"],
            "velocity": states.values["velocity"],
            "torque": effort if convention.kind == IMPEDANCE else convention.to_torque(effort),
            "link_position": links,
            "command": read_commands(bag, command_topic, states.joint_names, clock) if command_topic else None,
            "start_time": (states.stamped if use_stamps else states.received)[0] * 1e-9,
            "wrenches": read_wrenches(bag, clock),
            "poses": read_poses(bag, clock),
            "imus": read_imus(bag, clock),
            "others": states.others,
            "truncated": bag.truncated,
            "source": str(path),
            "clock_remark": clock_remark,
        }


def _with_usable_stamps(states: JointSamples) -> tuple[JointSamples, str]:
    """Return the messages with usable stamps, and a remark about the others.

    A few messages without a stamp are left out: a driver sends them before it has read the robot. If many lack a stamp,
    or nearly all stamps are equal, all stamps are set to 0, so that the time of reception is used.
    """
    count = len(states.stamped)
    unstamped = states.stamped == 0
    missing = int(np.count_nonzero(unstamped))
    if count < 2 or missing == count:
        return states, ""
    received = "the times at which the bag received the messages are used"
    if len(np.unique(states.stamped)) <= max(1, MIN_DISTINCT_STAMPS * count):
        return replace(states, stamped=np.zeros(count, np.int64)), (
            f"nearly all of its {count} time stamps are the same: {received}"
        )
    if missing > max(1, MAX_UNSTAMPED * count):
        return replace(states, stamped=np.zeros(count, np.int64)), (
            f"{missing} of {count} messages have no time stamp: {received}"
        )
    if not missing:
        return states, ""
    kept = replace(
        states,
        received=states.received[~unstamped],
        stamped=states.stamped[~unstamped],
        values={name: values[~unstamped] for name, values in states.values.items()},
    )
    return kept, f"{missing} of {count} messages have no time stamp and are left out"


def _checked(bag: Bag, topic: str | None, msgtypes: Sequence[str]) -> str | None:
    """Return the full name of a requested topic, after checking its type."""
    if not topic:
        return None
    name = topic if topic.startswith("/") else f"/{topic}"
    if name not in bag.topics:
        raise RecordingError(f"{bag.path} has no topic {name}; it has {', '.join(sorted(bag.topics)) or 'none'}")
    if bag.topics[name] not in msgtypes:
        raise RecordingError(
            f"{bag.path}: topic {name} has messages of type {bag.topics[name]}; expected {' or '.join(msgtypes)}"
        )
    return name


def _joint_states_topic(bag: Bag, others: Collection[str | None]) -> str:
    """Return /joint_states, or the only JointState topic besides those that are used otherwise."""
    candidates = [topic for topic in bag.topics_of(JOINT_STATE) if topic not in others]
    if "/joint_states" in candidates:
        return "/joint_states"
    if len(candidates) != 1:
        listed = ", ".join(candidates or sorted(bag.topics)) or "no topics at all"
        raise RecordingError(
            f"{bag.path} has {len(candidates)} topics of type {JOINT_STATE}, none of them /joint_states ({listed}); "
            + ("give joint_states_topic" if candidates else "record the joint states")
        )
    return candidates[0]


def _read_torques(bag: Bag, topic: str, joint_names: Sequence[str] | None, states: JointSamples) -> JointSamples:
    """Return the efforts of a separate topic, by name or in the order of `joint_names`."""
    if bag.topics[topic] == JOINT_STATE:
        return read_joint_states(bag, topic, states.joint_names, fields=("effort",))
    if joint_names is None:
        raise RecordingError(
            f"{bag.path}: the values on {topic} ({FLOAT64_MULTI_ARRAY}) have no names; give joint_names in their order"
        )
    return read_float_array(bag, topic, joint_names)


def _at_states(
    samples: JointSamples, states: JointSamples, between: Between, *, use_stamps: bool, source: str
) -> np.ndarray:
    """Return the only field of samples, interpolated to the times of the joint states (N, n); NaN in long gaps.

    Args:
        samples: samples of another topic.
        states: joint states.
        between: interpolation.
        use_stamps: whether stamps may be used, see `_times`.
        source: name of the bag, for messages.
    """
    (values,) = samples.values.values()
    state_times, sample_times = _times(samples, states, use_stamps)
    if np.array_equal(sample_times, state_times):
        return values
    wanted = (state_times - state_times[0]) * 1e-9
    known = (sample_times - state_times[0]) * 1e-9
    require_increasing(known, f"{source}: {samples.topic}", STAMPS_REMEDY)
    try:
        return between(known, values, wanted)
    except RecordingError as error:
        raise RecordingError(f"{source}: {samples.topic}: {error}") from error


def _linear(known: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Interpolate torques linearly, because they may jump; NaN beyond the ends and in long gaps."""
    result = np.column_stack([np.interp(wanted, known, column, left=np.nan, right=np.nan) for column in values.T])
    if len(known) > 1:
        steps = np.diff(known)
        after = np.clip(np.searchsorted(known, wanted), 1, len(steps))
        result[(steps[after - 1] > MAX_GAP_PERIODS * np.median(steps)) & ~np.isin(wanted, known)] = np.nan
    return result


def _smooth(known: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Interpolate positions by cubic splines; NaN beyond the ends and in long gaps."""
    return GapSpline(known, values)(wanted)


def _times(samples: JointSamples, states: JointSamples, use_stamps: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of joint states and of other samples, ns.

    Stamps are used if both have stamps; otherwise the times of reception are used for both.
    """
    by_stamp = use_stamps and samples.has_stamps
    return (states.stamped, samples.stamped) if by_stamp else (states.received, samples.received)
