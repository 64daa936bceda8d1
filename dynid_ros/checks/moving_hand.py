"""Check for joints beyond the tip or on side branches, such as a gripper's, that move although the model fixes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dynid_ros.checks.finding import Finding
from dynid_ros.checks.too_little_motion import MAX_REST_TRAVEL
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

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
