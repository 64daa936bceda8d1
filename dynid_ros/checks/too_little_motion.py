"""Motion that is too little for inertias and friction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import Finding
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

LITTLE_MOTION: Final = "too little motion"
MAX_REST_TRAVEL = (0.02, 0.005)
"""Largest travel of a joint at rest: rad, m."""
MIN_TRAVEL = (0.08, 0.02)
"""Smallest travel that a joint should cover: rad, m."""
MIN_DURATION_S = 3.0
"""Shortest motion that several harmonics fit into."""
MOTION_REMEDY = "excite all joints over most of their range, at several frequencies"


def check_motion(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Yield an error if nothing moves, and warnings for joints that hardly move and for little time.

    All recordings are judged together.
    """
    source = ", ".join(part.source for part in recordings)
    travel = np.max([np.ptp(part.position, axis=0) for part in recordings], axis=0)
    rest = _per_joint(robot, MAX_REST_TRAVEL)
    if np.all(travel < rest):
        yield Finding(
            "error",
            source,
            "all joints are at rest: inertias and friction do not show",
            f"{MOTION_REMEDY}, or identify gravity only",
            LITTLE_MOTION,
        )
        return
    for j in np.flatnonzero(travel < _per_joint(robot, MIN_TRAVEL)):
        state = "rests" if travel[j] < rest[j] else "hardly moves"
        unit = "m" if robot.chain.prismatic[j] else "rad"
        yield Finding(
            "warning",
            f"{source}, joint '{robot.joint_names[j]}'",
            f"it {state}: it covers {travel[j]:.2g} {unit}",
            MOTION_REMEDY,
            LITTLE_MOTION,
        )
    duration = sum(_moving_time(part, rest) for part in recordings)
    if duration < MIN_DURATION_S:
        message = f"it moves for {duration:.1f} s only"
        yield Finding("warning", source, message, f"{MOTION_REMEDY}, for 20 s and more", LITTLE_MOTION)


def _per_joint(robot: RobotModel, limits: tuple[float, float]) -> NDArray:
    """Return the limit of each joint (n,), from those of revolute (rad) and prismatic (m) joints."""
    return np.where(robot.chain.prismatic, limits[1], limits[0])


def _moving_time(recording: Recording, rest: NDArray) -> float:
    """Return the time from the first to the last sample that is away from the pose at either end, s."""
    first, last = (np.abs(recording.position - recording.position[end]) > rest for end in (0, -1))
    off_first = np.flatnonzero(first.any(axis=1))
    off_last = np.flatnonzero(last.any(axis=1))
    if not off_first.size or not off_last.size:
        return 0.0
    return float(max(0.0, recording.time[off_last[-1]] - recording.time[off_first[0]]))
