"""Tip of the arm: groups of an SRDF, the flange before the fingers of a gripper, and the payload of no URDF."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.files import MEGABYTE, read_bytes
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix, is_possible, transformed
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.robot import STANDARD_GRAVITY, RobotModel
from dynid_ros.model.urdf import Joint, xml_root
from dynid_ros.model.urdf_text import urdf_text

MAX_FILE_BYTES = 50 * MEGABYTE


def read_srdf(path: str | Path, robot_name: str) -> ET.Element:
    """Return the root element of the SRDF of a robot.

    Raises:
        ModelError: the file cannot be read, is no SRDF, or belongs to another robot.
    """
    where = f"SRDF '{path}'"
    try:
        root = xml_root(read_bytes(Path(path), MAX_FILE_BYTES).decode("utf-8-sig"), where)
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{where}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if root.tag != "robot" or root.find("link") is not None:
        raise ModelError(
            f"{where}: it is no SRDF, which has <robot> with <group> and <disable_collisions>; give that of MoveIt"
        )
    if root.get("name") != robot_name:
        raise ModelError(
            f"{where}: it is of robot '{root.get('name')}', the URDF of '{robot_name}'; give the SRDF of this robot, "
            "or correct the name in it"
        )
    return root


def chain_ends(
    tree: LinkTree,
    base: str | None = None,
    tip: str | None = None,
    *,
    srdf: str | Path | None = None,
    group: str | None = None,
) -> tuple[str | None, str | None]:
    """Return base and tip link, or those of a group of an SRDF.

    Args:
        tree: links of the robot.
        base: link that the chain starts from; None or empty without one.
        tip: link that the chain ends at; None or empty without one.
        srdf: file with the group; None or empty without one.
        group: name of the group; None or empty: return `base` and `tip`.

    Raises:
        ModelError: there is a group without an SRDF or together with a base or tip link, the SRDF lacks the group, or
            its joints form no chain.
    """
    if not group:
        return base, tip
    if not srdf:
        raise ModelError(f"group '{group}' needs the SRDF that describes it; give its file, too")
    if base or tip:
        raise ModelError(
            f"group '{group}' names base and tip link, but base '{base or ''}' and tip '{tip or ''}' are set, too; "
            "leave out one or the other"
        )
    return _Groups(read_srdf(srdf, tree.name), f"SRDF '{srdf}'", tree).ends(group)


class _Groups:
    """Groups of an SRDF in the tree of links of its robot."""

    def __init__(self, root: ET.Element, source: str, tree: LinkTree) -> None:
        self._source = source
        self._groups = {element.get("name", ""): element for element in root.findall("group")}
        self._virtual = {element.get("name") for element in root.findall("virtual_joint")}
        self._tree = tree

    def ends(self, group: str) -> tuple[str, str]:
        """Return base and tip link of a group.

        Raises:
            ModelError: there is no such group, or its joints form no chain.
        """
        elements = list(self._elements(group, ()))
        chains = [self._chain(element, group) for element in elements if element.tag == "chain"]
        if len(chains) == len(elements) == 1:
            return chains[0]
        between = [self._above(tip)[len(self._above(base)) :] for base, tip in chains]
        joints = {joint.name: joint for path in between for joint in path}
        for element in elements:
            joint = self._member(element, group)
            if joint is not None:
                joints[joint.name] = joint
        return self._ends_of_joints(joints, group)

    def _elements(self, group: str, outer: tuple[str, ...]) -> Iterator[ET.Element]:
        """Yield the chains, joints and links of a group and of the groups in it."""
        if group in outer:
            raise self._error(f"group '{group}' contains itself; correct it")
        if group not in self._groups:
            raise self._error(f"it has no group '{group}'; its groups are {', '.join(self._groups) or 'none'}")
        for element in self._groups[group]:
            if element.tag == "group":
                yield from self._elements(element.get("name", ""), (*outer, group))
            elif element.tag in ("chain", "joint", "link"):
                yield element

    def _chain(self, element: ET.Element, group: str) -> tuple[str, str]:
        """Return base and tip link of a <chain>."""
        base = self._link(element.get("base_link", ""), group)
        tip = self._link(element.get("tip_link", ""), group)
        link = tip
        while link != base:
            if link not in self._tree.parent_joint:
                raise self._error(
                    f"group '{group}' has a chain from '{base}' to '{tip}', which is not below '{base}' in the URDF; "
                    "correct it"
                )
            link = self._tree.parent_joint[link].parent
        return base, tip

    def _member(self, element: ET.Element, group: str) -> Joint | None:
        """Return the joint of a <joint>, or the joint that moves a <link>; None if the URDF has no such joint."""
        name = element.get("name", "")
        if element.tag == "link":
            return self._tree.parent_joint.get(self._link(name, group))
        if element.tag == "chain" or name in self._virtual:
            return None
        if name not in self._tree.joints:
            raise self._error(f"group '{group}' has joint '{name}', which is not in the URDF; correct it")
        return self._tree.joints[name]

    def _ends_of_joints(self, joints: dict[str, Joint], group: str) -> tuple[str, str]:
        """Return the parent link of the first joint that moves, and the last link of the group behind the last one."""
        moving = [joint for joint in joints.values() if joint.type != "fixed"]
        if not moving:
            raise self._error(f"group '{group}' has no joint that moves; choose another of {', '.join(self._groups)}")
        last = max(moving, key=lambda joint: len(self._above(joint.child)))
        above = self._above(last.child)
        other = [joint.name for joint in moving if joint not in above]
        if other:
            raise self._error(
                f"group '{group}' is no chain: {', '.join(other)} are not between its first joint and '{last.name}'; "
                "choose a group that forms a chain, or name base and tip links"
            )
        first = min(moving, key=above.index)
        between = above[above.index(first) :]
        missing = [joint.name for joint in between if joint.type != "fixed" and joint not in moving]
        if missing:
            raise self._error(
                f"group '{group}' is no chain: it lacks {', '.join(missing)} between its joints; choose a group that "
                "forms a chain, or name base and tip links"
            )
        return first.parent, self._last_frame(last.child, joints)

    def _last_frame(self, link: str, joints: dict[str, Joint]) -> str:
        """Return the last of the group's links that are fixed to `link`, or `link` if several are fixed to one link."""
        frame = link
        while True:
            fixed = [joint for joint in self._tree.child_joints[frame] if joint.name in joints]
            if not fixed:
                return frame
            if len(fixed) > 1:
                return link
            frame = fixed[0].child

    def _above(self, link: str) -> list[Joint]:
        """Return the joints from the root to a link."""
        joints: list[Joint] = []
        while link in self._tree.parent_joint:
            joints.append(self._tree.parent_joint[link])
            link = joints[-1].parent
        return joints[::-1]

    def _link(self, name: str, group: str) -> str:
        if name not in self._tree.links:
            raise self._error(f"group '{group}' has link '{name}', which is not in the URDF; correct it")
        return name

    def _error(self, message: str) -> ModelError:
        return ModelError(f"{self._source}: {message}")


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
    leaves = [name for name in tree.below(base) if not tree.child_joints[name]]
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
