"""The flange: end of an arm without a named tip, before the fingers of its gripper."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.payload import with_payload
from dynid_ros.model.robot import STANDARD_GRAVITY, RobotModel
from dynid_ros.model.srdf import chain_ends
from dynid_ros.model.urdf import Joint
from dynid_ros.model.urdf_text import urdf_text

MAX_FINGER_STROKE_M = 0.1
"""Stroke up to which an arm's last prismatic joint is a finger: fingers of parallel grippers have 25 to 70 mm, the
quill of a SCARA arm 150 mm and more."""
FINGER_NAMES = re.compile(r"finger|gripper|knuckle|thumb|jaw|claw", re.IGNORECASE)
FLANGE_NAMES = (re.compile(r"(^|[^a-z])tool0$"), re.compile(r"(^|[^a-z])flange$"))
"""Names of the flange in REP 199 and in drivers, by preference."""


def arm_from_urdf(
    path_or_xml: str | Path,
    tip: str | None = None,
    base: str | None = None,
    gravity: ArrayLike = STANDARD_GRAVITY,
    *,
    held: Mapping[str, float] | None = None,
    payload: Sequence[float] = (),
    srdf: str | Path | None = None,
    group: str | None = None,
) -> tuple[RobotModel, str]:
    """Return the model of a URDF up to `tip`, else up to the only leaf or the flange, and a remark about the choice.

    Args:
        path_or_xml: path of a URDF file, or its text.
        tip: last link or links, see `RobotModel.from_urdf`.
        base: first link; None: the root.
        gravity: (3,) in the base frame, m/s².
        held: positions, rad or m, of joints that do not move.
        payload: numbers of a payload that the URDF lacks, see `with_payload`.
        srdf: file of a group, see `chain_ends`.
        group: name of a group of `srdf` in place of base and tip.

    Raises:
        ModelError: see `RobotModel.from_urdf`, `with_payload` and `chain_ends`; or the end of the arm cannot be
            determined.
    """
    tree = LinkTree(*urdf_text(path_or_xml))
    base, tip = chain_ends(tree, base, tip, srdf=srdf, group=group)
    chosen = tip
    remark = ""
    if not tip:
        chosen, fingers = flange(tree, base or None)
        if chosen is not None:
            remark = f"the arm ends at link '{chosen}', its flange; name another tip if the arm ends elsewhere"
        if fingers:
            remark += f"; joints beyond it belong to a hand: {', '.join(fingers)}"
    robot = RobotModel.from_tree(tree, chosen, base, gravity, held=held)
    return with_payload(robot, payload), remark


def flange(tree: LinkTree, base: str | None = None) -> tuple[str | None, tuple[str, ...]]:
    """Return the link at the end of an arm, and the names of the joints of the hand beyond it.

    The arm continues from `base` (None: the root) while moving joints follow one another. After a fork the rest is a
    hand, if no branch has as many independent joints as the arm. Joints at the end that mimic others, slide a few
    centimetres or have a finger's name are fingers, too. Of the links that are fixed to the last one, the flange is
    `tool0` or `flange`, else the last frame without mass in front of the hand.

    Returns:
        The link (None: the only leaf of the tree, or undetermined) and the names of joints.
    """
    if base is None and len(tree.roots) > 1:
        return None, ()
    link = base or tree.roots[0]
    if link not in tree.links:
        return None, ()
    joints: list[Joint] = []
    branches = _next_moving_joints(tree, link)
    while len(branches) == 1:
        joints.append(branches[0])
        branches = _next_moving_joints(tree, branches[0].child)
    longest = max((_count_independent_joints(tree, branch) for branch in branches), default=0)
    if longest and longest >= sum(joint.mimic is None for joint in joints):
        return None, ()  # two arms, or an arm and a head
    if not joints:
        return None, ()
    has_hand = bool(branches)
    names_count = FINGER_NAMES.search(joints[0].name) is None  # unless the whole robot is called a finger
    while len(joints) > 1 and _is_finger(joints[-1], has_hand=has_hand, names_count=names_count):
        joints.pop()
        has_hand = True
    last = joints[-1].child
    below = [tree.parent_joint[link] for link in tree.below(last) if link != last]
    beyond = tuple(joint.name for joint in below if joint.type != "fixed")
    return _frame(tree, last, link), beyond


def _frame(tree: LinkTree, last: str, base: str) -> str | None:
    """Return the flange among the links that are fixed to the last one; None if it is the only leaf below the base."""
    leaves = [name for name in tree.below(base) if not tree.child_joints[name]]
    fixed = list(tree.fixed_to(last))
    if len(leaves) == 1 and leaves[0] in fixed:
        return None
    for pattern in FLANGE_NAMES:
        for name in fixed:
            if pattern.search(name):
                return name
    link = last
    while len(frames := [name for name in _fixed_children(tree, link) if not _mass(tree, name)]) == 1:
        link = frames[0]
    return link


def _fixed_children(tree: LinkTree, link: str) -> list[str]:
    return [joint.child for joint in tree.child_joints[link] if joint.type == "fixed"]


def _mass(tree: LinkTree, link: str) -> float:
    inertial = tree.links[link].inertial
    return 0.0 if inertial is None else inertial.mass


def _is_finger(joint: Joint, *, has_hand: bool, names_count: bool) -> bool:
    """Return whether the last joint belongs to a hand; a short stroke counts only without a hand beyond the joint."""
    limit = joint.limit
    stroke = limit.upper - limit.lower if joint.type == "prismatic" and limit is not None else 0.0
    has_finger_name = names_count and FINGER_NAMES.search(joint.name) is not None
    has_short_stroke = not has_hand and 0.0 < stroke <= MAX_FINGER_STROKE_M
    return joint.mimic is not None or has_finger_name or has_short_stroke


def _next_moving_joints(tree: LinkTree, link: str) -> list[Joint]:
    """Return the next moving joints below a link, past fixed ones."""
    moving: list[Joint] = []
    waiting = [link]
    while waiting:
        for joint in tree.child_joints[waiting.pop()]:
            if joint.type == "fixed":
                waiting.append(joint.child)
            else:
                moving.append(joint)
    return moving


def _count_independent_joints(tree: LinkTree, first: Joint) -> int:
    """Return the largest number of independent joints in a row from a joint on."""
    most = 0
    waiting = [(first, 0)]
    while waiting:
        joint, count = waiting.pop()
        count += joint.mimic is None and joint.type != "fixed"
        most = max(most, count)
        waiting += [(following, count) for following in tree.child_joints[joint.child]]
    return most
