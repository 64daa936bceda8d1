"""Faults of a recording that a fit would not show: looked for before anything is fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid_ros.recording.effort_check import check_effort
from dynid_ros.recording.finding import Finding
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

MINIMUM_SAMPLES = 10
"""Fewer tell nothing about velocity or noise."""
FEW_SAMPLES = 100
"""Fewer average noise badly: their mean is no better than a tenth of one sample's noise."""
REGULAR_STEPS = 0.98
"""A clock is regular if this share of its steps lies within a quarter of the median step; then a step of 1.5 medians
is a lost sample. Without a regular clock only a long step is one: 10 medians and 20 ms, a tenth of a 5 Hz period."""
MOVED = 0.01
"""A joint moved if it covered this much, rad or m."""
CLIPPED_RUN = 10
"""This many equal samples in a row at the extreme are a limit, if the value next to it comes a tenth as often and the
arm moved meanwhile: noise never repeats so, and a noise-free rest does not move."""


def check(recording: Recording | Sequence[Recording], robot: RobotModel | None = None) -> list[Finding]:
    """Faults found: lost samples, dead or clipped channels, missing torque; empty for sound recordings.

    With a robot, whose joints are selected by name, positions are also compared with its limits, and the effort with
    the gravity torque of its URDF. Recordings that are fitted together should be checked together: one pose tells
    nothing about the effort, several recordings of one pose each do (see `check_effort`).

    Raises:
        RecordingError: a joint of the robot is not in a recording.

    """
    recordings = [recording] if isinstance(recording, Recording) else list(recording)
    if robot is not None:
        recordings = [part.select(robot.joint_names) for part in recordings]
    findings = []
    for part in recordings:
        findings += [*_check_length(part), *_check_steps(part), *_check_joints(part)]
        if robot is not None:
            findings += _check_limits(part, robot)
    if robot is not None:
        findings += check_effort(recordings, robot)
    return findings


def _check_length(recording: Recording) -> Iterator[Finding]:
    if recording.n_samples < FEW_SAMPLES:
        yield Finding(
            "error" if recording.n_samples < MINIMUM_SAMPLES else "warning",
            recording.source,
            f"only {recording.n_samples} samples",
            "record longer",
        )
    if recording.truncated:
        yield Finding(
            "warning",
            recording.source,
            f"the file is cut off: {recording.duration:.1f} s could be read",
            "its recorder was killed; record again if the end of the motion matters",
        )


def _check_steps(recording: Recording) -> Iterator[Finding]:
    steps = np.diff(recording.time)
    if steps.size < MINIMUM_SAMPLES:
        return
    step = float(np.median(steps))
    regular = np.mean(np.abs(steps - step) < step / 4) >= REGULAR_STEPS
    gaps = np.flatnonzero(steps > (1.5 * step if regular else max(10 * step, 0.02)))
    if gaps.size:
        longest = gaps[np.argmax(steps[gaps])]
        lost = np.sum(np.round(steps[gaps] / step) - 1)
        yield Finding(
            "warning",
            recording.source,
            f"{gaps.size} gaps, about {lost:.0f} samples lost; the longest is {steps[longest] * 1e3:.0f} ms at "
            f"t = {recording.time[longest]:.3f} s, where the step is {step * 1e3:.3g} ms",
            "record with a deep queue and reliable QoS, on a machine with time to spare",
        )


def _check_joints(recording: Recording) -> Iterator[Finding]:
    moved = np.ptp(recording.position, axis=0) > MOVED
    if np.all(np.isnan(recording.torque)):
        yield Finding(
            "error",
            recording.source,
            "no torque was recorded for any joint",
            "let the driver fill the effort of its joint states, or give torque_topic",
        )
        return
    for j, joint in enumerate(recording.joint_names):
        where = f"{recording.source}, joint '{joint}'"
        yield from _check_torque(recording, j, where, bool(moved.any()))
        velocity = recording.velocity[:, j]
        if moved[j] and np.ptp(velocity) == 0:
            yield Finding(
                "warning",
                where,
                f"it moved, but its velocity is {velocity[0]:g} in all samples",
                "the driver does not fill it; differentiate the position instead",
            )
        if np.ptp(recording.position[:, j]) == 0 and np.nanmax(np.abs(velocity), initial=0.0) > MOVED:
            yield Finding(
                "error",
                where,
                f"its position is {recording.position[0, j]:g} in all samples, though it has a velocity",
                "the encoder or its driver is stuck; mend it and record again",
            )


def _check_torque(recording: Recording, j: int, where: str, moved: bool) -> Iterator[Finding]:
    torque = recording.torque[:, j]
    known = np.isfinite(torque)
    if not known.any():
        yield Finding(
            "error", where, "no torque was recorded for it", "let the driver fill its effort, or give torque_topic"
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
        )
    if np.ptp(torque[known]) == 0:
        if moved and np.sum(known) >= MINIMUM_SAMPLES:
            yield Finding(
                "warning",
                where,
                f"its torque is {torque[known][0]:g} in all samples, though the arm moved",
                "the sensor is not connected or the driver does not fill it",
            )
        return
    for limit, toward in ((np.nanmax(torque), 1.0), (np.nanmin(torque), -1.0)):
        at_limit = torque == limit
        inside = torque[known & ~at_limit]
        next_value = toward * np.max(toward * inside)
        positions = recording.position[at_limit]
        if (
            limit != 0
            and _longest_run(at_limit) >= CLIPPED_RUN
            and np.sum(at_limit) >= 10 * np.sum(torque == next_value)
            and np.ptp(positions, axis=0).max() > MOVED
        ):
            yield Finding(
                "warning",
                where,
                f"its torque is cut off at {limit:g}: {np.sum(at_limit)} samples have exactly this value",
                "move slower or with less load, so that the sensor or the motor stays within its range",
            )


def _longest_run(mask: np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _check_limits(recording: Recording, robot: RobotModel) -> Iterator[Finding]:
    low, high = recording.position.min(axis=0), recording.position.max(axis=0)
    outside = (low < robot.limits.lower - 0.1) | (high > robot.limits.upper + 0.1)
    for j in np.flatnonzero(outside):
        yield Finding(
            "warning",
            f"{recording.source}, joint '{recording.joint_names[j]}'",
            f"it goes from {low[j]:.4g} to {high[j]:.4g}, but its limits are {robot.limits.lower[j]:.4g} to "
            f"{robot.limits.upper[j]:.4g}",
            "positions must be in rad (m) and count from the zero of the URDF",
        )
