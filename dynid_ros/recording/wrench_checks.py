"""Faults of a force/torque sensor's readings: missing, stuck, saturated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.recording.channel_checks import CLIPPED, CONSTANT, MISSING, MOVED, held_extremes
from dynid_ros.recording.finding import Finding
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.series import WrenchSeries

WRENCH_AXES = ("force x", "force y", "force z", "torque x", "torque y", "torque z")
LEAST = 10
"""Readings that make a series."""
FROZEN = 0.3
"""Longest time for which all six readings may stay the same while the arm moves, s: no sensor is so slow."""


def check_wrench(
    series: WrenchSeries, recording: Recording, where: str, sensor_range: ArrayLike | None = None
) -> Iterator[Finding]:
    """Faults of the readings, each with a way out.

    Args:
        series: of the sensor.
        recording: of the joints that it was recorded with.
        where: the file and the topic.
        sensor_range: (6,) largest reading on either side, N and N m; None: not known.

    """
    values = np.hstack([series.force, series.torque])
    good = np.isfinite(values).all(axis=1) & np.isfinite(series.time)
    if np.sum(good) < LEAST:
        yield Finding(
            "error",
            where,
            f"{np.sum(good)} finite readings of {len(good)} are too few",
            "record the sensor's topic",
            MISSING,
        )
        return
    if not good.all():
        yield Finding(
            "warning",
            where,
            f"{np.sum(~good)} of {len(good)} readings are not finite, first at t = {series.time[~good][0]:.3f} s",
            "those cannot be used; look why the driver leaves them out",
            MISSING,
        )
    values, time = values[good], series.time[good]
    steps = np.diff(time)
    if (steps <= 0).any():
        first = int(np.argmax(steps <= 0))
        yield Finding(
            "error",
            where,
            f"time does not increase at t = {time[first]:.3f} s ({np.sum(steps <= 0)} such readings)",
            "remove the repeated or misplaced readings",
            "repeated rows",
        )
        return
    if not np.ptp(recording.time[[0, -1]]) or time[-1] <= recording.time[0] or time[0] >= recording.time[-1]:
        yield Finding(
            "error",
            where,
            f"its readings, from {time[0]:.3f} to {time[-1]:.3f} s, are not of the time of the joint states, from "
            f"{recording.time[0]:.3f} to {recording.time[-1]:.3f} s",
            "give both the stamps of one clock, or read the bag with its receive time",
            "time lag",
        )
        return
    yield from _frozen(values, time, recording, where)
    yield from _saturated(values, sensor_range, where)


def require_sound(
    series: WrenchSeries, recording: Recording, where: str, sensor_range: ArrayLike | None = None
) -> None:
    """Refuse readings with a fault that would spoil a fit.

    Raises:
        RecordingError: the first error of `check_wrench`.

    """
    for finding in check_wrench(series, recording, where, sensor_range):
        if finding.severity == "error":
            raise RecordingError(str(finding))


def _frozen(values: NDArray, time: NDArray, recording: Recording, where: str) -> Iterator[Finding]:
    if (dead := np.ptp(values, axis=0) == 0).all():
        yield Finding(
            "error", where, "all its readings are the same", "the sensor or its driver is stuck; mend it", CONSTANT
        )
        return
    for axis in np.flatnonzero(dead):
        yield Finding(
            "error",
            where,
            f"{WRENCH_AXES[axis]} is {values[0, axis]:g} in all readings",
            "the sensor or its driver leaves this axis out; mend it",
            CONSTANT,
        )
    same = np.concatenate([[False], np.all(values[1:] == values[:-1], axis=1), [False]])
    edges = np.flatnonzero(np.diff(same.astype(int))).reshape(-1, 2)
    for first, last in edges:
        rows = (recording.time >= time[first]) & (recording.time <= time[last])
        if time[last] - time[first] >= FROZEN and rows.any() and np.ptp(recording.position[rows], axis=0).max() > MOVED:
            yield Finding(
                "error",
                where,
                f"its readings stay the same from {time[first]:.3f} to {time[last]:.3f} s while the arm moves",
                "the sensor or its driver is stuck; mend it, or leave that time out",
                CONSTANT,
            )
            return


def _saturated(values: NDArray, sensor_range: ArrayLike | None, where: str) -> Iterator[Finding]:
    largest = np.full(len(WRENCH_AXES), np.inf) if sensor_range is None else np.asarray(sensor_range, dtype=float)
    for axis, name in enumerate(WRENCH_AXES):
        beyond = np.abs(values[:, axis]) >= largest[axis]
        limits = [(largest[axis], beyond)] if beyond.any() else []
        if np.ptp(values[:, axis]):
            limits += [(limit, at) for limit, _, at in held_extremes(values[:, axis]) if limit != 0]
        for limit, at_limit in limits[:1]:
            yield Finding(
                "error",
                where,
                f"{name} is saturated: {np.sum(at_limit)} readings are at {limit:g}",
                "move slower, or take a sensor of a larger range; a bias from a tight mount takes part of it",
                CLIPPED,
            )
