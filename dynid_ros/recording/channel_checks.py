"""Channels that are missing, constant, cut off, or do not belong together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.finding import Finding
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import differentiate

MINIMUM_SAMPLES = 10
MOVED = 0.01
"""A joint moved if it covered this much, rad or m; or is as fast, per s."""
CLIPPED_RUN = 10
"""This many equal samples in a row at the extreme are a limit, if the value next to it comes a tenth as often and the
arm moved meanwhile: noise never repeats so, and a noise-free rest does not move."""
BEYOND = 0.01
"""A velocity is cut off if the positions change faster, by this part of the joint's usual speed."""
ABRUPT = 0.5
"""A position is cut off if it stops from one sample to the next from more than this part of its speed."""
COUNTS = 4.0
"""… and by more than so many counts of the encoder."""
WINDOW = 0.1
"""Length of the local fit that gives the velocity of the positions, s."""
FAST = 0.05
"""Mean speed from which a recorded velocity is compared with the positions, rad/s or m/s."""
GAIN, CORRELATION = (0.8, 1.25), 0.9
"""What a recorded velocity may have against that of the positions."""

MISSING: Final = "missing torque"
CONSTANT: Final = "constant channel"
CLIPPED: Final = "clipped channel"
VELOCITY: Final = "velocity"


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
    speeds = None
    if moved.any() and recording.n_samples >= MINIMUM_SAMPLES:
        speeds = differentiate(recording.time, recording.position, WINDOW)[0]
    for j, joint in enumerate(recording.joint_names):
        where = f"{recording.source}, joint '{joint}'"
        yield from _check_torque(recording, j, where, bool(moved.any()))
        yield from _check_position(recording, j, where)
        if speeds is not None and moved[j]:
            yield from _check_velocity(recording.velocity[:, j], speeds[:, j], where)


def _check_torque(recording: Recording, j: int, where: str, moved: bool) -> Iterator[Finding]:
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
    if np.ptp(torque[known]) == 0:
        if moved and np.sum(known) >= MINIMUM_SAMPLES:
            yield Finding(
                "warning",
                where,
                f"its torque is {torque[known][0]:g} in all samples, though the arm moved",
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
        if _stops_abruptly(recording.time, position, at_limit):
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
        if np.mean(toward * (speed[at_limit] - limit)) > BEYOND * size:
            yield _clipped(where, "velocity", limit, at_limit, fix)
    if size < FAST:
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
        if _longest_run(at_limit)[1] >= CLIPPED_RUN and np.sum(at_limit) >= 10 * np.sum(values == next_value):
            yield float(limit), toward, at_limit


def _longest_run(mask: NDArray) -> tuple[int, int]:
    """First index and length."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    lengths = edges[1::2] - edges[::2]
    longest = int(np.argmax(lengths)) if lengths.size else 0
    return (int(edges[2 * longest]), int(lengths[longest])) if lengths.size else (0, 0)


def _stops_abruptly(time: NDArray, position: NDArray, at_limit: NDArray) -> bool:
    """Whether the joint comes to its longest rest at a limit, or leaves it, with full speed."""
    start, length = _longest_run(at_limit)
    steps = np.abs(np.diff(position))
    count = np.min(steps, where=steps > 0, initial=np.inf)
    arrival = slice(max(0, start - CLIPPED_RUN), start + 1)
    departure = slice(start + length - 1, start + length + CLIPPED_RUN)
    for rows, near in ((arrival, -1), (departure, 0)):
        moved = np.abs(np.diff(position[rows]))
        speeds = moved / np.diff(time[rows])
        if speeds.size >= CLIPPED_RUN // 2:
            usual = np.median(speeds)
            # The step at the limit is cut anywhere, the one beside it is whole; a coarse encoder's are rounded.
            beside = near + int(np.argmax(moved[[near, near - 1 if near else 1]])) * (-1 if near else 1)
            if usual > MOVED and speeds[beside] > ABRUPT * usual and moved[beside] > COUNTS * count:
                return True
    return False
