"""SRDF of MoveIt: base and tip link of a group of joints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from dynid_ros.errors import ModelError
from dynid_ros.files import MEGABYTE, read_bytes
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.urdf import Joint, xml_root

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
