"""Markers and rigid bodies on time stamps of their own, brought onto those of one camera."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import MocapError

LONGEST_GAP = 1.5
"""Intervals between two samples, in usual ones, that are bridged by a straight line."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Points of one marker (one point) or body (several): time (N,) in s, points (N, Q, 3) in m, NaN where not seen."""

    time: NDArray
    points: NDArray


def on_one_clock(streams: Mapping[str, Stream]) -> tuple[NDArray, dict[str, NDArray]]:
    """Times (M,) of the fastest stream, and the points (M, Q, 3) of each then.

    Streams of one camera have the same stamps, and pass unchanged. Otherwise points lie on the straight line between
    the two samples around, and are NaN in gaps.

    Raises:
        MocapError: no stream, or one without two samples.

    """
    if not streams:
        raise MocapError("no markers or bodies to take link angles from; expected topics of PoseStamped or PoseArray")
    ordered = {name: _ordered(name, stream) for name, stream in streams.items()}
    time = max((stream.time for stream in ordered.values()), key=len)
    return time, {name: _at(stream, time) for name, stream in ordered.items()}


def _ordered(name: str, stream: Stream) -> Stream:
    time, first = np.unique(stream.time, return_index=True)
    if len(time) < 2:
        raise MocapError(f"'{name}' has {len(time)} samples; expected the whole motion")
    return Stream(time, stream.points[first])


def _at(stream: Stream, time: NDArray) -> NDArray:
    if len(stream.time) == len(time) and np.array_equal(stream.time, time):
        return stream.points
    after = np.clip(np.searchsorted(stream.time, time), 1, len(stream.time) - 1)
    before = after - 1
    interval = stream.time[after] - stream.time[before]
    share = (time - stream.time[before]) / interval
    bridged = (interval <= LONGEST_GAP * np.median(np.diff(stream.time))) & (share >= 0) & (share <= 1)
    weight = share[:, None, None]
    points = np.where(weight > 0, stream.points[after] * weight, 0.0)
    points = points + np.where(weight < 1, stream.points[before] * (1 - weight), 0.0)
    return np.where(bridged[:, None, None], points, np.nan)
