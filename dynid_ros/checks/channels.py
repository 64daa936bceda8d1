"""Channels of joints and wrench sensors that are missing, constant, cut off, or do not belong together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.checks.finding import (
    CLIPPED,
    CONSTANT,
    LAG,
    MISSING,
    REPEATED_ROWS,
    CheckSettings,
    Finding,
    recording_check,
)
from dynid_ros.errors import RecordingError
from dynid_ros.files.disk_arrays import column_ranges, read_column
from dynid_ros.recording.recording import MOVED, Recording, practically_zero
from dynid_ros.recording.series import WrenchSeries
from dynid_ros.signals import differentiate
from dynid_ros.signals.spectra import longest_run, true_runs

VELOCITY: Final = "velocity"
MIN_SAMPLES = 10
MIN_EQUAL_SAMPLES = 10
"""Number of equal samples in a row at an extreme that shows a limit, if the value next to it is a tenth as frequent and
the arm moved meanwhile: noise never repeats so, and a noise-free rest does not move."""
MIN_EXCESS_SPEED_FRACTION = 0.01
"""Smallest excess of the positions' speed over a limit of the velocity, as a fraction of the joint's typical speed."""
MIN_STOP_SPEED_FRACTION = 0.5
"""Smallest speed from which a position stops abruptly, as a fraction of its speed before."""
MIN_STOP_COUNTS = 4.0
"""Smallest last step of a position that stops abruptly, in counts of the encoder."""
CREEP_SPEED_FRACTION = 0.1
"""Largest speed of a joint that comes to rest at its limit, as a fraction of its typical speed."""
DERIVATIVE_WINDOW_S = 0.1
"""Length of the local fit that gives the velocity of the positions."""
MIN_COMPARED_SPEED = 0.05
"""Smallest RMS speed for which a recorded velocity is compared with the positions, rad/s or m/s."""
MIN_VELOCITY_GAIN = 0.8
"""Smallest gain of a recorded velocity over that of the positions."""
MAX_VELOCITY_GAIN = 1.25
MIN_VELOCITY_CORRELATION = 0.9
FILL_EFFORT = "let the driver fill the effort of its joint states, or give torque_topic"


@recording_check(rank=20)
def check_channels(recording: Recording, _settings: CheckSettings) -> Iterator[Finding]:
    """Yield the faults of single channels, joint by joint."""
    missing = np.isnan(column_ranges(recording.torque)[0])
    if missing.all():
        yield Finding("error", recording.source, "no torque was recorded for any joint", FILL_EFFORT, MISSING)
        return
    moved = np.subtract(*column_ranges(recording.position)[::-1]) > MOVED
    dead = practically_zero(recording.torque)
    long_enough = bool(moved.any()) and recording.n_samples >= MIN_SAMPLES
    if long_enough and np.all(dead | missing):
        largest = np.nanmax(np.abs(column_ranges(recording.torque)))
        message = f"the torque of every joint is practically zero, at most {largest:.2g}, though the arm moved"
        yield Finding("error", recording.source, message, FILL_EFFORT, MISSING)
        return
    speeds = None
    if long_enough and np.isfinite(column_ranges(recording.velocity)[0]).any():
        (speeds,) = differentiate(recording.time, recording.position, DERIVATIVE_WINDOW_S, orders=(1,))
    for j, joint in enumerate(recording.joint_names):
        where = f"{recording.source}, joint '{joint}'"
        yield from _check_torque(recording, j, where, bool(moved.any()), bool(dead[j]))
        yield from _check_position(recording, j, where)
        if speeds is not None and moved[j]:
            yield from _check_velocity(read_column(recording.velocity, j), read_column(speeds, j), where)


def _check_torque(recording: Recording, j: int, where: str, moved: bool, dead: bool) -> Iterator[Finding]:
    """Yield the faults of the torque of joint j, given whether the arm moved and the torque is practically zero."""
    torque = read_column(recording.torque, j)
    known = np.isfinite(torque)
    if not known.any():
        fix = "let the driver fill its effort, or give torque_topic"
        yield Finding("error", where, "no torque was recorded for it", fix, MISSING)
        return
    if not known.all():
        first = int(np.argmin(known))
        yield Finding(
            "warning",
            where,
            f"its torque is NaN in {np.sum(~known)} of {len(known)} samples, first at sample {first}, "
            f"t = {recording.time[first]:.3f} s",
            "those samples cannot be used; look why the driver leaves them out",
            MISSING,
        )
    if dead or np.ptp(torque[known]) == 0:
        if moved and np.sum(known) >= MIN_SAMPLES:
            largest = np.max(np.abs(torque[known]))
            value = f"practically zero, at most {largest:.2g}," if dead and largest else f"{torque[known][0]:g}"
            yield Finding(
                "warning",
                where,
                f"its torque is {value} in all samples, though the arm moved",
                "the sensor is not connected or the driver does not fill it",
                CONSTANT,
            )
        return
    for limit, _, at_limit in held_extremes(torque):
        if limit != 0 and np.ptp(recording.position[at_limit], axis=0).max() > MOVED:
            fix = "move slower or with less load, so that the sensor or the motor stays within its range"
            yield _clipped(where, "torque", limit, at_limit, fix)


def _check_position(recording: Recording, j: int, where: str) -> Iterator[Finding]:
    """Yield the faults of the position of joint j."""
    position = read_column(recording.position, j)
    if np.ptp(position) == 0:
        if np.nanmax(np.abs(read_column(recording.velocity, j)), initial=0.0) > MOVED:
            message = f"its position is {position[0]:g} in all samples, though it has a velocity"
            fix = "the encoder or its driver is stuck; mend it and record again"
            yield Finding("error", where, message, fix, CONSTANT)
        return
    for limit, _, at_limit in held_extremes(position):
        if _stops_abruptly(recording, j, at_limit):
            fix = "the encoder leaves its range; turn its zero, or the motion, away"
            yield _clipped(where, "position", limit, at_limit, fix)


def _check_velocity(velocity: NDArray, speed: NDArray, where: str) -> Iterator[Finding]:
    """Yield the faults of a recorded velocity (N,) against the velocity of the positions (N,)."""
    known = np.isfinite(velocity)
    if np.sum(known) < MIN_SAMPLES:
        return
    velocity = velocity[known]
    speed = speed[known]
    fix = "the driver does not fill it as it should; differentiate the position instead"
    if np.ptp(velocity) == 0:
        yield Finding("warning", where, f"it moved, but its velocity is {velocity[0]:g} in all samples", fix, CONSTANT)
        return
    size = np.sqrt(np.mean(speed**2))
    for limit, sign, at_limit in held_extremes(velocity):
        if np.mean(sign * (speed[at_limit] - limit)) > MIN_EXCESS_SPEED_FRACTION * size:
            yield _clipped(where, "velocity", limit, at_limit, fix)
    if size < MIN_COMPARED_SPEED:
        return
    gain = np.mean(velocity * speed) / size**2
    correlation = gain * size / np.sqrt(np.mean(velocity**2))
    if not (MIN_VELOCITY_GAIN < gain < MAX_VELOCITY_GAIN and correlation > MIN_VELOCITY_CORRELATION):
        yield Finding(
            "warning",
            where,
            f"its velocity is not that of its position: {gain:.2g} times it, with a correlation of {correlation:.2f}",
            "look at units, sign and order of the velocities, or differentiate the position instead",
            VELOCITY,
        )


def _clipped(where: str, channel: str, limit: float, at_limit: NDArray, fix: str) -> Finding:
    message = f"its {channel} is cut off at {limit:g}: {np.sum(at_limit)} samples have exactly this value"
    return Finding("warning", where, message, fix, CLIPPED)


def held_extremes(values: NDArray) -> Iterator[tuple[float, float, NDArray]]:
    """Yield the extremes (N,) that a channel keeps for long, unlike the value next to them.

    Yields:
        Extreme, 1.0 for the upper and -1.0 for the lower one, and the mask (N,) of the samples there.
    """
    for limit, sign in ((np.nanmax(values), 1.0), (np.nanmin(values), -1.0)):
        at_limit = values == limit
        inside = values[np.isfinite(values) & ~at_limit]
        next_value = sign * np.max(sign * inside)
        if longest_run(at_limit)[1] >= MIN_EQUAL_SAMPLES and np.sum(at_limit) >= 10 * np.sum(values == next_value):
            yield float(limit), sign, at_limit


def _stops_abruptly(recording: Recording, j: int, at_limit: NDArray) -> bool:
    """Return whether joint j reaches or leaves its longest rest at a limit with full speed, and no other joint does."""
    start, length = longest_run(at_limit)
    end = start + length
    time = recording.time
    position = read_column(recording.position, j)
    steps = np.abs(np.diff(position))
    count = np.min(steps, where=steps > 0, initial=np.inf)
    typical_speed = np.sqrt(np.mean((steps / np.diff(time)) ** 2))
    arrival = slice(max(0, start - MIN_EQUAL_SAMPLES), start + 1)
    departure = slice(end - 1, end + MIN_EQUAL_SAMPLES)
    first_rest = slice(start, start + MIN_EQUAL_SAMPLES)
    last_rest = slice(max(start, end - MIN_EQUAL_SAMPLES), end)
    for rows, rest, near in ((arrival, first_rest, -1), (departure, last_rest, 0)):
        moved = np.abs(np.diff(position[rows]))
        speeds = moved / np.diff(time[rows])
        if speeds.size >= MIN_EQUAL_SAMPLES // 2:
            typical = np.median(speeds)
            # The step at the limit is cut anywhere, the next one is whole; those of a coarse encoder are rounded.
            neighbour = near + int(np.argmax(moved[[near, near - 1 if near else 1]])) * (-1 if near else 1)
            full = speeds[neighbour] > max(MIN_STOP_SPEED_FRACTION * typical, CREEP_SPEED_FRACTION * typical_speed)
            if typical > MOVED and full and moved[neighbour] > MIN_STOP_COUNTS * count:
                return not _rests_with_others(recording.position, j, rows, rest)
    return False


def _rests_with_others(position: NDArray, j: int, moving: slice, rest: slice) -> bool:
    """Return whether other joints than j move in some rows and all rest in others: a move of all joints ends there."""
    travel_moving, travel_at_rest = (np.delete(np.ptp(position[rows], axis=0), j) for rows in (moving, rest))
    return bool(np.max(travel_moving, initial=0.0) > max(MOVED / 10, 10 * np.max(travel_at_rest, initial=0.0)))


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
