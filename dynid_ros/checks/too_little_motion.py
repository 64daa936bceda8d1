"""Joints of the arm that move too little, and joints beyond the tip that move although the model fixes them."""

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


MOVING_HAND: Final = "moving hand"
MAX_HELD_DISTANCE = 0.02
"""Largest distance between the recorded and the held position of a joint that `--hold` fixes, rad or m."""


def check_hand(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Yield findings for joints that move although the model fixes them.

    A joint fixed by `--hold` gives an error if it is recorded elsewhere. Any other joint on the arm gives a warning if
    it travels: the model adds the mass beyond it to the link that carries it. Recordings that are fitted together are
    checked together, because a hand may be opened between two recordings.
    """
    if robot.urdf is None or not any(part.others for part in recordings):
        return
    sources = ", ".join(part.source for part in recordings)
    positions = {
        name: np.concatenate([part.others[name] for part in recordings if name in part.others])
        for name in {name for part in recordings for name in part.others}
    }
    for name, held_position in robot.held.items():
        position = positions.get(name, np.zeros(0))
        outside = position[np.abs(position - held_position) > MAX_HELD_DISTANCE]
        if outside.size:
            yield Finding(
                "error",
                f"{sources}, joint '{name}'",
                f"the model holds it at {held_position:.3g}, but the recording contains "
                f"{max(outside, key=abs):.3g} (rad or m)",
                f"use the recorded position, --hold {name}={np.median(outside):.3g}, or do not hold the joint",
                MOVING_HAND,
            )
    for name, max_travel, unit in _carried_joints(robot):
        travel = np.ptp(positions[name]) if name in positions else 0.0
        if travel > max_travel:
            yield Finding(
                "warning",
                f"{sources}, joint '{name}'",
                f"it moves by {travel:.2g} {unit}, but the model from '{robot.base}' to '{robot.tip}' does not include "
                "it: the mass beyond it is modelled as fixed to the arm",
                "keep it at rest while you record, or choose a tip beyond it",
                MOVING_HAND,
            )


def _carried_joints(robot: RobotModel) -> Iterator[tuple[str, float, str]]:
    """Yield name, largest travel at rest and unit of each movable joint on the arm that the model does not include."""
    # Start at the first links of the model: the arm does not carry joints on other branches of the base.
    unvisited = [link for link, parent in zip(robot.link_names, robot.chain.parents, strict=True) if parent < 0]
    while unvisited:
        for joint in robot.tree.child_joints[unvisited.pop()]:
            unvisited.append(joint.child)
            if joint.type != "fixed" and joint.name not in (*robot.chain.mover_names, *robot.held):
                prismatic = joint.type == "prismatic"
                yield joint.name, MAX_REST_TRAVEL[prismatic], "m" if prismatic else "rad"
