"""Joints that the arm carries, beside those of its model, and that move while it is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.urdf import parse_urdf
from dynid_ros.recording.finding import Finding
from dynid_ros.recording.motion_checks import REST
from dynid_ros.recording.recording import Recording

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

MOVING_HAND: Final = "moving hand"


def check_hand(recordings: Sequence[Recording], robot: RobotModel) -> Iterator[Finding]:
    """Warnings for joints beyond the tip, or beside the chain, that do not stay where they are.

    The model takes what they carry for a part of the link that they hang on; recordings that are fitted together are
    looked at together, as a hand that is open in one and closed in the other is no such part either.
    """
    if robot.urdf is None or not any(part.others for part in recordings):
        return
    for name, rest, unit in _carried(robot):
        seen = [part.others[name] for part in recordings if name in part.others]
        travel = np.ptp(np.concatenate(seen)) if seen else 0.0
        if travel > rest:
            yield Finding(
                "warning",
                f"{', '.join(part.source for part in recordings)}, joint '{name}'",
                f"the arm carries it, it is not of the model from '{robot.base}' to '{robot.tip}', and it moves by "
                f"{travel:.2g} {unit}: masses that move with it are taken to stay",
                "hold it while you record, or choose a tip beyond it",
                MOVING_HAND,
            )


def _carried(robot: RobotModel) -> Iterator[tuple[str, float, str]]:
    """Joints that the first moving link carries beside those of the model: name, what counts as rest, and unit."""
    tree = LinkTree(parse_urdf(robot.urdf or "", robot.name), robot.name)
    waiting = [robot.link_names[0]]
    while waiting:
        for joint in tree.child_joints[waiting.pop()]:
            waiting.append(joint.child)
            if joint.type != "fixed" and joint.name not in robot.joint_names:
                slides = joint.type == "prismatic"
                yield joint.name, REST[slides], "m" if slides else "rad"
