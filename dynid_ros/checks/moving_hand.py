"""Joints beyond the tip, or on branches, that move although the model holds them."""

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
"""Largest distance of a held joint from where the model holds it, rad or m."""


def check_hand(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Yield findings for joints that the model takes as fixed, but that move.

    The model includes their masses in the link that carries them. Recordings that are fitted together are examined
    together, because a hand may be opened between two recordings.
    """
    if robot.urdf is None or not any(part.others for part in recordings):
        return
    sources = ", ".join(part.source for part in recordings)
    positions = {
        name: np.concatenate([part.others[name] for part in recordings if name in part.others])
        for name in {name for part in recordings for name in part.others}
    }
    for name, held in robot.held.items():
        position = positions.get(name, np.zeros(0))
        away = position[np.abs(position - held) > MAX_HELD_DISTANCE]
        if away.size:
            yield Finding(
                "error",
                f"{sources}, joint '{name}'",
                f"the model holds it at {held:.3g}, the recording has it at up to {max(away, key=abs):.3g} (rad or m)",
                f"hold it where it was, --hold {name}={np.median(away):.3g}, or leave it among the joints that move",
                MOVING_HAND,
            )
    for name, rest, unit in _carried_joints(robot):
        travel = np.ptp(positions[name]) if name in positions else 0.0
        if travel > rest:
            yield Finding(
                "warning",
                f"{sources}, joint '{name}'",
                f"the arm carries it, it is not of the model from '{robot.base}' to '{robot.tip}', and it moves by "
                f"{travel:.2g} {unit}: masses that move with it are taken to stay",
                "hold it while you record, or choose a tip beyond it",
                MOVING_HAND,
            )


def _carried_joints(robot: RobotModel) -> Iterator[tuple[str, float, str]]:
    """Yield the additional joints that the arm carries: name, largest travel at rest, and unit."""
    waiting = [link for link, parent in zip(robot.link_names, robot.chain.parents, strict=True) if parent < 0]
    while waiting:
        for joint in robot.tree.child_joints[waiting.pop()]:
            waiting.append(joint.child)
            if joint.type != "fixed" and joint.name not in (*robot.chain.mover_names, *robot.held):
                prismatic = joint.type == "prismatic"
                yield joint.name, MAX_REST_TRAVEL[prismatic], "m" if prismatic else "rad"
