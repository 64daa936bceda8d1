"""Motion that is too little for inertias and friction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dynid_ros.recording.finding import Finding
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

LITTLE_MOTION: Final = "too little motion"
REST = (0.02, 0.005)
"""A joint that covers less rests: rad, m."""
RANGE = (0.08, 0.02)
"""A joint should cover as much: rad, m."""
DURATION = 3.0
"""Shortest motion that several harmonics fit into, s."""


def check_motion(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Errors if nothing moves; warnings for joints that hardly move and for little time, over all recordings."""
    source = ", ".join(part.source for part in recordings)
    ranges = np.max([np.ptp(part.position, axis=0) for part in recordings], axis=0)
    rest, enough = (np.where(robot.chain.prismatic, metres, radians) for radians, metres in (REST, RANGE))
    fix = "excite all joints over most of their range, at several frequencies"
    if np.all(ranges < rest):
        yield Finding(
            "error",
            source,
            "all joints are at rest: inertias and friction do not show",
            f"{fix}, or identify gravity only",
            LITTLE_MOTION,
        )
        return
    for j in np.flatnonzero(ranges < enough):
        state = "rests" if ranges[j] < rest[j] else "hardly moves"
        yield Finding(
            "warning",
            f"{source}, joint '{robot.joint_names[j]}'",
            f"it {state}: it covers {ranges[j]:.2g} {'m' if robot.chain.prismatic[j] else 'rad'}",
            fix,
            LITTLE_MOTION,
        )
    duration = sum(_moving_time(part, rest) for part in recordings)
    if duration < DURATION:
        yield Finding(
            "warning", source, f"it moves for {duration:.1f} s only", f"{fix}, for 20 s and more", LITTLE_MOTION
        )


def _moving_time(recording: Recording, rest: np.ndarray) -> float:
    """Time from the first to the last sample that is off the pose at either end, s."""
    first, last = (np.abs(recording.position - recording.position[end]) > rest for end in (0, -1))
    off_first, off_last = np.flatnonzero(first.any(axis=1)), np.flatnonzero(last.any(axis=1))
    if not off_first.size or not off_last.size:
        return 0.0
    return float(max(0.0, recording.time[off_last[-1]] - recording.time[off_first[0]]))
