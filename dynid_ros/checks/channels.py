"""Channels and force/torque sensors that are missing, constant, cut off, or do not belong together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.checks.finding import CLIPPED, CONSTANT, MISSING, VELOCITY, Finding
from dynid_ros.errors import RecordingError
from dynid_ros.recording.recording import MOVED, Recording, practically_zero
from dynid_ros.recording.series import WrenchSeries
from dynid_ros.signals import differentiate
from dynid_ros.signals.spectra import longest_run, true_runs

MINIMUM_SAMPLES = 10

CLIPPED_RUN = 10
"""This many equal samples in a row at the extreme are a limit, if the value next to it comes a tenth as often and the
arm moved meanwhile: noise never repeats so, and a noise-free rest does not move."""
MIN_EXCESS_SPEED_FRACTION = 0.01
"""A velocity is cut off if the positions change faster, by this part of the joint's typical speed."""
MIN_STOP_SPEED_FRACTION = 0.5
"""A position is cut off if it stops from one sample to the next from more than this part of its speed."""
MIN_STOP_COUNTS = 4.0
"""… and by more than so many counts of the encoder."""
CREEP_SPEED_FRACTION = 0.1
"""A joint that reaches its limit at less than this part of its typical speed comes to rest there."""
FIT_WINDOW_S = 0.1
"""Length of the local fit that gives the velocity of the positions, s."""
MIN_COMPARED_SPEED = 0.05
"""Mean speed from which a recorded velocity is compared with the positions, rad/s or m/s."""
GAIN, CORRELATION = (0.8, 1.25), 0.9
"""What a recorded velocity may have against that of the positions."""


def check_channels(recording: Recording) -> Iterator[Finding]:
    """Faults of single channels, joint by joint."""
    if np.all(np.isnan(recording.torque)):
        yield Finding(
            "error",
            recording.source,
            "no torque was recorded for any joint",
            "let the driver fill the effort of its joint states, or give torque_topic",
            MISSING,
        )
        return
    moved = np.ptp(recording.position, axis=0) > MOVED
    dead = practically_zero(recording.torque)
    if moved.any() and recording.n_samples >= MINIMUM_SAMPLES and np.all(dead | np.isnan(recording.torque).all(axis=0)):
        yield Finding(
            "error",
            recording.source,
            f"the torque of every joint is practically zero, at most {np.nanmax(np.abs(recording.torque)):.2g}, though "
            "the arm moved",
            "let the driver fill the effort of its joint states, or give torque_topic",
            MISSING,
        )
        return
    speeds = None
    if moved.any() and recording.n_samples >= MINIMUM_SAMPLES:
        speeds = differentiate(recording.time, recording.position, FIT_WINDOW_S)[0]
    for j, joint in enumerate(recording.joint_names):
        where = f"{recording.source}, joint '{joint}'"
        yield from _check_torque(recording, j, where, bool(moved.any()), bool(dead[j]))
        yield from _check_position(recording, j, where)
        if speeds is not None and moved[j]:
            yield from _check_velocity(recording.velocity[:, j], speeds[:, j], where)


def _check_torque(recording: Recording, j: int, where: str, moved: bool, dead: bool) -> Iterator[Finding]:
    torque = recording.torque[:, j]
    known = np.isfinite(torque)
    if not known.any():
        yield Finding(
            "error",
            where,
            "no torque was recorded for it",
            "let the driver fill its effort, or give torque_topic",
            MISSING,
        )
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
        if moved and np.sum(known) >= MINIMUM_SAMPLES:
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
            yield _clipped(
                where,
                "torque",
                limit,
                at_limit,
                "move slower or with less load, so that the sensor or the motor stays within its range",
            )


def _check_position(recording: Recording, j: int, where: str) -> Iterator[Finding]:
    position, velocity = recording.position[:, j], recording.velocity[:, j]
    if np.ptp(position) == 0:
        if np.nanmax(np.abs(velocity), initial=0.0) > MOVED:
            yield Finding(
                "error",
                where,
                f"its position is {position[0]:g} in all samples, though it has a velocity",
                "the encoder or its driver is stuck; mend it and record again",
                CONSTANT,
            )
        return
    for limit, _, at_limit in held_extremes(position):
        if _stops_abruptly(recording, j, at_limit):
            yield _clipped(
                where, "position", limit, at_limit, "the encoder leaves its range; turn its zero, or the motion, away"
            )


def _check_velocity(velocity: NDArray, speed: NDArray, where: str) -> Iterator[Finding]:
    known = np.isfinite(velocity)
    if np.sum(known) < MINIMUM_SAMPLES:
        return
    velocity, speed = velocity[known], speed[known]
    fix = "the driver does not fill it as it should; differentiate the position instead"
    if np.ptp(velocity) == 0:
        yield Finding("warning", where, f"it moved, but its velocity is {velocity[0]:g} in all samples", fix, CONSTANT)
        return
    size = np.sqrt(np.mean(speed**2))
    for limit, toward, at_limit in held_extremes(velocity):
        if np.mean(toward * (speed[at_limit] - limit)) > MIN_EXCESS_SPEED_FRACTION * size:
            yield _clipped(where, "velocity", limit, at_limit, fix)
    if size < MIN_COMPARED_SPEED:
        return
    gain = np.mean(velocity * speed) / size**2
    correlation = gain * size / np.sqrt(np.mean(velocity**2))
    if not (GAIN[0] < gain < GAIN[1] and correlation > CORRELATION):
        yield Finding(
            "warning",
            where,
            f"its velocity is not that of its position: {gain:.2g} times it, with a correlation of {correlation:.2f}",
            "look at units, sign and order of the velocities, or differentiate the position instead",
            VELOCITY,
        )


def _clipped(where: str, channel: str, limit: float, at_limit: NDArray, fix: str) -> Finding:
    return Finding(
        "warning",
        where,
        f"its {channel} is cut off at {limit:g}: {np.sum(at_limit)} samples have exactly this value",
        fix,
        CLIPPED,
    )


def held_extremes(values: NDArray) -> Iterator[tuple[float, float, NDArray]]:
    """Extremes that a channel keeps for long, unlike the value next to it; 1.0 for the upper one; the samples there."""
    for limit, toward in ((np.nanmax(values), 1.0), (np.nanmin(values), -1.0)):
        at_limit = values == limit
        inside = values[np.isfinite(values) & ~at_limit]
        next_value = toward * np.max(toward * inside)
        if longest_run(at_limit)[1] >= CLIPPED_RUN and np.sum(at_limit) >= 10 * np.sum(values == next_value):
            yield float(limit), toward, at_limit


def _stops_abruptly(recording: Recording, j: int, at_limit: NDArray) -> bool:
    """Whether joint j comes to its longest rest at a limit, or leaves it, with full speed, and no other joint does."""
    start, length = longest_run(at_limit)
    time, position = recording.time, recording.position[:, j]
    steps = np.abs(np.diff(position))
    count = np.min(steps, where=steps > 0, initial=np.inf)
    typical_speed = np.sqrt(np.mean((steps / np.diff(time)) ** 2))
    end = start + length
    arrival, departure = slice(max(0, start - CLIPPED_RUN), start + 1), slice(end - 1, end + CLIPPED_RUN)
    first, last = slice(start, start + CLIPPED_RUN), slice(max(start, end - CLIPPED_RUN), end)
    for rows, held, near in ((arrival, first, -1), (departure, last, 0)):
        moved = np.abs(np.diff(position[rows]))
        speeds = moved / np.diff(time[rows])
        if speeds.size >= CLIPPED_RUN // 2:
            typical = np.median(speeds)
            # The step at the limit is cut anywhere, the next one is whole; a coarse encoder's are rounded.
            neighbour = near + int(np.argmax(moved[[near, near - 1 if near else 1]])) * (-1 if near else 1)
            full = speeds[neighbour] > max(MIN_STOP_SPEED_FRACTION * typical, CREEP_SPEED_FRACTION * typical_speed)
            if typical > MOVED and full and moved[neighbour] > MIN_STOP_COUNTS * count:
                return not _rests_with_others(recording.position, j, rows, held)
    return False


def _rests_with_others(position: NDArray, j: int, moving: slice, held: slice) -> bool:
    """Whether other joints than j move in some rows and all rest in others: a move of all ends, or begins, there."""
    before, after = (np.delete(np.ptp(position[rows], axis=0), j) for rows in (moving, held))
    return bool(np.max(before, initial=0.0) > max(MOVED / 10, 10 * np.max(after, initial=0.0)))


WRENCH_AXES = ("force x", "force y", "force z", "torque x", "torque y", "torque z")
MIN_READINGS = 10
"""Readings that make a series."""
MAX_FROZEN_S = 0.3
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
    if np.sum(good) < MIN_READINGS:
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
    for first, last in true_runs(np.all(values[1:] == values[:-1], axis=1)):
        rows = (recording.time >= time[first]) & (recording.time <= time[last])
        if (
            time[last] - time[first] >= MAX_FROZEN_S
            and rows.any()
            and np.ptp(recording.position[rows], axis=0).max() > MOVED
        ):
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
