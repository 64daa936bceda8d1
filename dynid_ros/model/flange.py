"""Tip of the arm: the flange before the fingers of a gripper, and the payload there that the URDF lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix, is_possible, transformed
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.robot import STANDARD_GRAVITY, RobotModel
from dynid_ros.model.srdf import chain_ends
from dynid_ros.model.urdf import Joint
from dynid_ros.model.urdf_text import urdf_text

BALL_DENSITY = 2700.0
"""Density (aluminium) of the ball that replaces a body with unknown inertia, kg/m³."""
MAX_CENTER_DISTANCE_M = 2.0
"""Largest distance of the centre of mass from the tip."""
SAME_MASS_FRACTION = 0.2
"""Relative difference below which two masses count as the same body."""
NUMBERS = "MASS CX CY CZ, kg and m in the axes of the tip, or these and IXX IXY IXZ IYY IYZ IZZ about the centre, kg m²"


def ball(mass: float, center: NDArray) -> NDArray:
    """Return the parameters (10,) of a ball of aluminium with a mass, kg, and a centre (3,), m."""
    radius = (3 * mass / (4 * np.pi * BALL_DENSITY)) ** (1 / 3)
    return from_center_of_mass(mass, np.asarray(center), 0.4 * mass * radius**2 * np.eye(3))


def payload_parameters(values: Sequence[float]) -> NDArray:
    """Return the parameters (10,) about the tip from four or ten `NUMBERS`; with four, the inertia is that of a ball.

    Raises:
        ModelError: there are more or fewer numbers, or no body has these parameters.
    """
    numbers = np.asarray(values, dtype=float)
    if numbers.shape not in ((4,), (10,)) or not np.isfinite(numbers).all():
        raise ModelError(f"payload: got {list(values)}; expected {NUMBERS}")
    mass = numbers[0]
    center = numbers[1:4]
    if mass <= 0 or np.linalg.norm(center) > MAX_CENTER_DISTANCE_M:
        raise ModelError(
            f"payload: a mass of {mass:g} kg at ({', '.join(f'{c:g}' for c in center)}) m; expected one above 0 within "
            f"{MAX_CENTER_DISTANCE_M:g} m of the tip"
        )
    if numbers.size == 4:
        return ball(mass, center)
    inertia = inertia_matrix(np.concatenate([np.zeros(4), numbers[4:]]))
    parameters = from_center_of_mass(mass, center, inertia)
    if not is_possible(parameters):
        raise ModelError(f"payload: no body has the inertia {list(numbers[4:])} kg m²; expected {NUMBERS}")
    return parameters


def with_payload(robot: RobotModel, values: Sequence[float]) -> RobotModel:
    """Return the arm with a payload at its tip; without `values` return the arm itself.

    Raises:
        ModelError: see `payload_parameters`; or the arm has several tips, or the URDF already has a similar mass at or
            beyond the tip.
    """
    if not len(values):
        return robot
    body = payload_parameters(values)
    if "," in robot.tip:
        raise ModelError(f"payload: the model has several tips ({robot.tip}); expected one, which carries it")
    carried = {} if robot.urdf is None else _carried(robot)
    if any(abs(mass - body[0]) < SAME_MASS_FRACTION * body[0] for mass in (*carried.values(), sum(carried.values()))):
        links = ", ".join(f"'{link}' {mass:g} kg" for link, mass in carried.items())
        raise ModelError(
            f"payload: the URDF has about its mass at or beyond the tip '{robot.tip}' already ({links}); leave the "
            "payload out, or take it out of the URDF"
        )
    parameters = robot.parameters.copy()
    parameters[robot.tip_columns] += transformed(body, robot.tip_offset)
    return robot.with_parameters(parameters)


def _carried(robot: RobotModel) -> dict[str, float]:
    """Return the masses, kg, by name, of links at the tip and beyond it, without moving links of the arm."""
    masses = {
        link: robot.tree.links[link].inertial for link in robot.tree.below(robot.tip) if link not in robot.link_names
    }
    return {link: inertial.mass for link, inertial in masses.items() if inertial is not None and inertial.mass > 0}


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
