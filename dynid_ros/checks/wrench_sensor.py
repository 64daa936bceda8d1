"""Faults of force/torque sensors: missing, constant and saturated readings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.checks.channels import held_extremes
from dynid_ros.checks.finding import CLIPPED, CONSTANT, LAG, MISSING, REPEATED_ROWS, Finding
from dynid_ros.errors import RecordingError
from dynid_ros.recording.recording import MOVED, Recording
from dynid_ros.recording.series import WrenchSeries
from dynid_ros.signals.spectra import true_runs

WRENCH_AXES: Final = ("force x", "force y", "force z", "torque x", "torque y", "torque z")
MIN_READINGS = 10
MAX_FROZEN_S = 0.3
"""Longest time for which all six readings may stay the same while the arm moves: no sensor is so slow."""


def check_wrench(
    series: WrenchSeries, recording: Recording, where: str, sensor_range: ArrayLike | None = None
) -> Iterator[Finding]:
    """Yield the faults of the readings.

    Args:
        series: readings of the sensor.
        recording: recording of the joints to which the readings belong.
        where: the file and the topic.
        sensor_range: (6,) largest reading on either side, N and N m; None: unknown.
    """
    values = np.hstack([series.force, series.torque])
    good = np.isfinite(values).all(axis=1) & np.isfinite(series.time)
    if np.sum(good) < MIN_READINGS:
        message = f"{np.sum(good)} finite readings of {len(good)} are too few"
        yield Finding("error", where, message, "record the sensor's topic", MISSING)
        return
    if not good.all():
        yield Finding(
            "warning",
            where,
            f"{np.sum(~good)} of {len(good)} readings are not finite, first at t = {series.time[~good][0]:.3f} s",
            "those cannot be used; look why the driver leaves them out",
            MISSING,
        )
    values = values[good]
    time = series.time[good]
    steps = np.diff(time)
    if (steps <= 0).any():
        first = int(np.argmax(steps <= 0))
        yield Finding(
            "error",
            where,
            f"time does not increase at t = {time[first]:.3f} s ({np.sum(steps <= 0)} such readings)",
            "remove the repeated or misplaced readings",
            REPEATED_ROWS,
        )
        return
    start, end = recording.time[[0, -1]]
    if start == end or time[-1] <= start or time[0] >= end:
        yield Finding(
            "error",
            where,
            f"its readings, from {time[0]:.3f} to {time[-1]:.3f} s, are not of the time of the joint states, from "
            f"{start:.3f} to {end:.3f} s",
            "give both the stamps of one clock, or read the bag with its receive time",
            LAG,
        )
        return
    yield from _check_frozen(values, time, recording, where)
    yield from _check_saturation(values, sensor_range, where)


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


def _check_frozen(values: NDArray, time: NDArray, recording: Recording, where: str) -> Iterator[Finding]:
    """Yield an error if readings (N, 6) never change, or not while the arm moves."""
    constant = np.ptp(values, axis=0) == 0
    if constant.all():
        fix = "the sensor or its driver is stuck; mend it"
        yield Finding("error", where, "all its readings are the same", fix, CONSTANT)
        return
    for axis in np.flatnonzero(constant):
        message = f"{WRENCH_AXES[axis]} is {values[0, axis]:g} in all readings"
        yield Finding("error", where, message, "the sensor or its driver leaves this axis out; mend it", CONSTANT)
    for first, last in true_runs(np.all(values[1:] == values[:-1], axis=1)):
        rows = (recording.time >= time[first]) & (recording.time <= time[last])
        long = time[last] - time[first] >= MAX_FROZEN_S
        if long and rows.any() and np.ptp(recording.position[rows], axis=0).max() > MOVED:
            yield Finding(
                "error",
                where,
                f"its readings stay the same from {time[first]:.3f} to {time[last]:.3f} s while the arm moves",
                "the sensor or its driver is stuck; mend it, or leave that time out",
                CONSTANT,
            )
            return


def _check_saturation(values: NDArray, sensor_range: ArrayLike | None, where: str) -> Iterator[Finding]:
    """Yield an error for each axis of the readings (N, 6) that exceeds its range, or stays at a limit."""
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
