"""Check that the joints move far and long enough to identify inertias and friction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import Finding
from dynid_ros.files.disk_arrays import column_ranges
from dynid_ros.recording.recording import Recording
from dynid_ros.recording.uniform_motion import first_far_row

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

LITTLE_MOTION: Final = "too little motion"
"""Kind of these findings, as in docs/checks.md."""
MAX_REST_TRAVEL = (0.02, 0.005)
"""Travel below which a joint counts as at rest: revolute (rad), prismatic (m)."""
MIN_TRAVEL = (0.08, 0.02)
"""Travel that a joint should at least cover: revolute (rad), prismatic (m)."""
MIN_DURATION_S = 3.0
"""Duration below which a motion hardly contains several harmonics; the remedy recommends more, 20 s."""
MOTION_REMEDY = "excite all joints over most of their range, at several frequencies"


def check_motion(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Yield an error if no joint moves; otherwise a warning per joint that hardly moves, and one for a short motion.

    All recordings are judged together: the travel of a joint is its largest in any recording, and durations are added.
    """
    source = ", ".join(part.source for part in recordings)
    travel = np.max([np.subtract(*column_ranges(part.position)[::-1]) for part in recordings], axis=0)
    rest = _per_joint(robot, MAX_REST_TRAVEL)
    if np.all(travel < rest):
        yield Finding(
            "error",
            source,
            "all joints are at rest: inertias and friction cannot be identified",
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
    """Return the limit (n,) of each joint; `limits` has one for revolute (rad) and one for prismatic joints (m)."""
    return np.where(robot.chain.prismatic, limits[1], limits[0])


def _moving_time(recording: Recording, rest: NDArray) -> float:
    """Return the time from the departure from the first pose to the arrival at the last pose, s.

    A sample has left a pose if any joint is further from it than `rest` (n,), rad or m.
    """
    departure = first_far_row(recording.position, rest)
    arrival = first_far_row(recording.position[::-1], rest)
    if departure is None or arrival is None:
        return 0.0
    return float(max(0.0, recording.time[-1 - arrival] - recording.time[departure]))
