"""The flange: where an arm ends whose tip nobody named, before the fingers of its gripper."""

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

LONGEST_STROKE = 0.1
"""m. An arm's last joint that slides no further is a finger: those of parallel grippers have 25 to 70 mm,
the quill of a SCARA arm 150 mm and more."""
FINGER = re.compile(r"finger|gripper|knuckle|thumb|jaw|claw", re.IGNORECASE)
FLANGES = (re.compile(r"(^|[^a-z])tool0$"), re.compile(r"(^|[^a-z])flange$"))
"""Names that REP 199 and drivers give it, the first that is there."""


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
    """Model of a URDF up to `tip`; without one up to the only leaf or to the flange, and a sentence that says so.

    Joints that are `held`, by their positions, rad or m, do not move; see `RobotModel.from_urdf` for this and for tips.
    What the arm carries beside what is in the URDF is `payload`, see `with_payload`. In place of base and tip, `group`
    names a group of the file `srdf`, see `chain_ends`.

    Raises:
        ModelError: as `RobotModel.from_urdf`, `with_payload` and `chain_ends`; or where the arm ends cannot be
            determined.
    """
    tree = LinkTree(*urdf_text(path_or_xml))
    base, tip = chain_ends(tree, base, tip, srdf=srdf, group=group)
    chosen, remark = tip, ""
    if not tip:
        chosen, fingers = flange(tree, base or None)
        if chosen is not None:
            remark = f"the arm ends at link '{chosen}', its flange; choose another tip where that is not so"
        if fingers:
            remark += f"; joints beyond it are taken to be a hand's: {', '.join(fingers)}"
    robot = RobotModel.from_tree(tree, chosen, base, gravity, held=held)
    return with_payload(robot, payload), remark


def flange(tree: LinkTree, base: str | None = None) -> tuple[str | None, tuple[str, ...]]:
    """Link that an arm ends at, and the joints of the hand beyond it.

    The arm goes on from `base` (None: the root) for as long as the joints that move lie one behind the other. Where the
    way forks, what follows is a hand if none of its fingers has as many joints of its own as the arm. Joints at the end
    that mimic others, slide a few centimetres or are called a finger's are fingers too. Of the links that are fixed to
    the last one, the flange is `tool0` or `flange`, else the last frame without mass in front of the hand.

    Returns:
        The link, None: the tree's only leaf, or not determined; and names of joints.
    """
    if base is None and len(tree.roots) > 1:
        return None, ()
    link = base or tree.roots[0]
    if link not in tree.links:
        return None, ()
    joints, ways = [], _ways(tree, link)
    while len(ways) == 1:
        joints.append(ways[0])
        ways = _ways(tree, ways[0].child)
    longest = max((_own_joints(tree, way) for way in ways), default=0)
    if longest and longest >= sum(joint.mimic is None for joint in joints):
        return None, ()  # two arms, or an arm and a head
    if not joints:
        return None, ()
    hand, named = bool(ways), FINGER.search(joints[0].name) is None  # a robot may be called a finger
    while len(joints) > 1 and _is_finger(joints[-1], hand=hand, named=named):
        joints.pop()
        hand = True
    last = joints[-1].child
    beyond = tuple(joint.name for joint in _below(tree, last) if joint.type != "fixed")
    return _frame(tree, last, link), beyond


def _frame(tree: LinkTree, last: str, base: str) -> str | None:
    """The flange among the links that are fixed to the last one; None: the only leaf below the base is."""
    below = [base, *(joint.child for joint in _below(tree, base))]
    leaves = [name for name in below if not tree.child_joints[name]]
    fixed = list(tree.fixed_to(last))
    if len(leaves) == 1 and leaves[0] in fixed:
        return None
    for pattern in FLANGES:
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


def _is_finger(joint: Joint, *, hand: bool, named: bool) -> bool:
    """Whether a joint at the end is not the arm's; beyond it there may be a `hand`, and names may say so."""
    limit = joint.limit
    stroke = limit.upper - limit.lower if joint.type == "prismatic" and limit is not None else 0.0
    slides = 0.0 < stroke <= LONGEST_STROKE
    return joint.mimic is not None or (named and FINGER.search(joint.name) is not None) or (slides and not hand)


def _below(tree: LinkTree, link: str) -> list[Joint]:
    found, waiting = [], [link]
    while waiting:
        joints = tree.child_joints[waiting.pop()]
        found += joints
        waiting += [joint.child for joint in joints]
    return found


def _ways(tree: LinkTree, link: str) -> list[Joint]:
    """The next joints that move below a link, past the fixed ones."""
    ways, waiting = [], [link]
    while waiting:
        for joint in tree.child_joints[waiting.pop()]:
            if joint.type == "fixed":
                waiting.append(joint.child)
            else:
                ways.append(joint)
    return ways


def _own_joints(tree: LinkTree, way: Joint) -> int:
    """Most joints that move by themselves, one behind the other, from one on."""
    most, waiting = 0, [(way, 0)]
    while waiting:
        joint, count = waiting.pop()
        count += joint.mimic is None and joint.type != "fixed"
        most = max(most, count)
        waiting += [(beyond, count) for beyond in tree.child_joints[joint.child]]
    return most
