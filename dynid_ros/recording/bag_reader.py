"""From the topics of a bag to a recording on one clock."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.errors import RecordingError
from dynid_ros.recording.bag import Bag, open_bag
from dynid_ros.recording.bag_series import Clock, read_poses, read_wrenches
from dynid_ros.recording.effort import EffortConvention
from dynid_ros.recording.joint_samples import (
    FLOAT64_MULTI_ARRAY,
    JOINT_STATE,
    JointSamples,
    read_float_array,
    read_joint_states,
)
from dynid_ros.recording.recording import require_increasing
from dynid_ros.signals import GapSpline

STAMPS_WAY_OUT = (
    "two publishers on one topic, or a bag that was played while this one was recorded: record again with one "
    "publisher, or read with receive_time=True if only the driver's stamps are wrong"
)
LONGEST_GAP = 5
"""Torques are not interpolated over gaps longer than this many of their own periods."""

Between = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def read_bag(
    path: Path,
    joint_names: Sequence[str] | None,
    convention: EffortConvention,
    *,
    torque_topic: str | None,
    joint_states_topic: str | None,
    link_states_topic: str | None,
    receive_time: bool,
) -> dict[str, Any]:
    """Fields of a `Recording`; see `Recording.read`."""
    with open_bag(path) as bag:
        torque_topic = _checked(bag, torque_topic, (JOINT_STATE, FLOAT64_MULTI_ARRAY))
        link_states_topic = _checked(bag, link_states_topic, (JOINT_STATE,))
        joint_states_topic = _checked(bag, joint_states_topic, (JOINT_STATE,)) or _joint_states_topic(
            bag, {torque_topic, link_states_topic}
        )
        states = read_joint_states(bag, joint_states_topic, joint_names)
        use_stamps = states.has_stamps and not receive_time
        clock = Clock(int(states.stamped[0]) if use_stamps else None, int(states.received[0]))
        time = clock.seconds(states.received, states.stamped)
        require_increasing(time, f"{path}: {states.topic}", STAMPS_WAY_OUT)
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
            "torque": convention.to_torque(effort),
            "link_position": links,
            "start_time": (states.stamped if use_stamps else states.received)[0] * 1e-9,
            "wrenches": read_wrenches(bag, clock),
            "poses": read_poses(bag, clock),
            "others": states.others,
            "truncated": bag.truncated,
            "source": str(path),
        }


def _checked(bag: Bag, topic: str | None, msgtypes: Sequence[str]) -> str | None:
    """Full name of a topic that the caller asked for."""
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
    candidates = [topic for topic in bag.topics_of(JOINT_STATE) if topic not in others]
    if "/joint_states" in candidates:
        return "/joint_states"
    if len(candidates) != 1:
        found = ", ".join(candidates or sorted(bag.topics)) or "no topics at all"
        raise RecordingError(
            f"{bag.path} has {len(candidates)} topics of type {JOINT_STATE}, none of them /joint_states ({found}); "
            + ("give joint_states_topic" if candidates else "record the joint states")
        )
    return candidates[0]


def _read_torques(bag: Bag, topic: str, joint_names: Sequence[str] | None, states: JointSamples) -> JointSamples:
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
    """Values (N, n) of the samples' only field at the times of the joint states, NaN where there is none near.

    Args:
        samples: of another topic.
        states: whose times are wanted.
        between: times (M,) and values (M, n) that are known, and times (N,), to values (N, n) there.
        use_stamps: whether time may be that of the stamps, see `_times`.
        source: of both, for messages.

    """
    (values,) = samples.values.values()
    wanted, given = _times(samples, states, use_stamps)
    if np.array_equal(given, wanted):
        return values
    at, known = (wanted - wanted[0]) * 1e-9, (given - wanted[0]) * 1e-9
    require_increasing(known, f"{source}: {samples.topic}", STAMPS_WAY_OUT)
    try:
        return between(known, values, at)
    except RecordingError as error:
        raise RecordingError(f"{source}: {samples.topic}: {error}") from error


def _linear(known: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Of torques, which may jump."""
    found = np.column_stack([np.interp(at, known, column, left=np.nan, right=np.nan) for column in values.T])
    if len(known) > 1:
        steps = np.diff(known)
        after = np.clip(np.searchsorted(known, at), 1, len(steps))
        found[(steps[after - 1] > LONGEST_GAP * np.median(steps)) & ~np.isin(at, known)] = np.nan
    return found


def _smooth(known: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Of positions."""
    return GapSpline(known, values)(at)


def _times(samples: JointSamples, states: JointSamples, use_stamps: bool) -> tuple[np.ndarray, np.ndarray]:
    """Times of joint states and of other samples, ns.

    Both are taken by their stamps if both have some, else both by the time of reception: never one by each.
    """
    by_stamp = use_stamps and samples.has_stamps
    return (states.stamped, samples.stamped) if by_stamp else (states.received, samples.received)
