"""Flange of an arm: the last link before the fingers of a gripper."""

from __future__ import annotations

import re

from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.urdf import Joint

MAX_FINGER_STROKE_M = 0.1
"""Stroke up to which an arm's last prismatic joint is a finger: fingers of parallel grippers have 25 to 70 mm, the
quill of a SCARA arm 150 mm and more."""
FINGER_NAMES = re.compile(r"finger|gripper|knuckle|thumb|jaw|claw", re.IGNORECASE)
FLANGE_NAMES = (re.compile(r"(^|[^a-z])tool0$"), re.compile(r"(^|[^a-z])flange$"))
"""Names of the flange in REP 199 and in drivers, by preference."""


def flange(tree: LinkTree, base: str | None = None) -> tuple[str | None, tuple[str, ...]]:
    """Return the link at the end of an arm, and the names of the joints of the hand beyond it.

    The arm continues from `base` (None: the root) while moving joints follow one another. Balancers whose joints mimic
    them are passed. After a fork the rest is a hand, if no branch has as many independent joints as the arm. Joints at
    the end that mimic others, slide a few centimetres or have a finger's name are fingers, too. Of the links that are
    fixed to the last one, the flange is `tool0` or `flange`, else the last frame without mass in front of the hand.

    Returns:
        The link (None: the only leaf of the tree, or undetermined) and the names of joints.
    """
    if base is None and len(tree.roots) > 1:
        return None, ()
    link = base or tree.roots[0]
    if link not in tree.links:
        return None, ()
    joints: list[Joint] = []
    branches = _branches(tree, link)
    while len(branches) == 1:
        joints.append(branches[0])
        branches = _branches(tree, branches[0].child)
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
    leaves = tree.leaves(base)
    fixed = list(tree.fixed_to(last))
    if len(leaves) == 1 and leaves[0] in fixed:
        return None
    for pattern in FLANGE_NAMES:
        for name in fixed:
            if pattern.search(name):
                return name
    frames = [last]
    while len(frames) == 1:
        link = frames[0]
        fixed = [joint.child for joint in tree.child_joints[link] if joint.type == "fixed"]
        frames = [name for name in fixed if not _mass(tree, name)]
    return link


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


def _branches(tree: LinkTree, link: str) -> list[Joint]:
    """Return the next moving joints below a link without balancers and parallel rods.

    All joints of these mimic joints of the arm, and the arm continues beside them with two or more independent joints.
    """
    joints = _next_moving_joints(tree, link)
    counts = [_count_independent_joints(tree, joint) for joint in joints]
    return [joint for joint, count in zip(joints, counts, strict=True) if count > 0 or max(counts) < 2]


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
