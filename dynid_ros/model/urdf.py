"""Chains from URDF: which links belong to the arm, where its joints are and what hangs on each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
from urdf_parser_py.urdf import Joint, Link, Robot

from dynid_ros.errors import ModelError
from dynid_ros.model.chain import Chain, JointLimits
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.urdf_elements import axis_rotation, inertial_parameters, joint_limits, pose

MOVING = ("revolute", "continuous", "prismatic")


class LinkTree:
    """Links and joints of a URDF, checked to be a tree.

    Args:
        robot: the parsed URDF.
        source: what to call it in an error.

    Raises:
        ModelError: names that repeat, joints between links that do not exist, closed loops.

    """

    def __init__(self, robot: Robot, source: str):
        self.name: str = robot.name
        self.source = source
        self.links: dict[str, Link] = {link.name: link for link in robot.links}
        self.parent_joint: dict[str, Joint] = {}
        self.child_joints: dict[str, list[Joint]] = defaultdict(list)
        if not self.links:
            raise self._error("it has no links")
        self._check_unique("links", (link.name for link in robot.links))
        self._check_unique("joints", (joint.name for joint in robot.joints))
        for joint in robot.joints:
            self._add(joint)
        self.roots = [name for name in self.links if name not in self.parent_joint]
        looped = set(self.links).difference(*(self._below(root) for root in self.roots))
        if looped:
            raise self._error(f"links {_quoted(sorted(looped))} form a closed loop; only open chains can be modelled")

    def chain(self, tip: str | None, base: str | None) -> tuple[Chain, np.ndarray]:
        """Chain from link `base` (None: the root) to link `tip` (None: the only leaf).

        Returns:
            The chain, and its parameters (n, 10) about the link frames. What hangs on a link by fixed joints belongs to
            that link; what hangs on it by moving joints is left out.

        Raises:
            ModelError: the chain cannot be told, or is not one of revolute, continuous, prismatic and fixed joints.

        """
        base = self._root() if base is None else self._known(base, "base")
        tip = self._leaf(base) if tip is None else self._known(tip, "tip")
        joints, placements, link_offsets = [], [], []
        placement = np.eye(4)
        for joint in self._path(base, tip):
            placement = placement @ pose(joint.origin, self._where(joint))
            if joint.type == "fixed":
                continue
            self._check_moving(joint)
            rotation = axis_rotation(joint, self._where(joint))
            joints.append(joint)
            placements.append(placement @ rotation)
            link_offsets.append(rotation.T)
            placement = np.eye(4)
        if not joints:
            raise self._error(f"no moving joint between base link '{base}' and tip link '{tip}'; choose other links")
        chain = Chain(
            name=self.name,
            base=base,
            tip=tip,
            joint_names=tuple(joint.name for joint in joints),
            link_names=tuple(joint.child for joint in joints),
            prismatic=np.array([joint.type == "prismatic" for joint in joints]),
            placements=np.array(placements),
            link_offsets=np.array(link_offsets),
            tip_offset=placement,
            limits=JointLimits(*np.transpose([joint_limits(joint, self._where(joint)) for joint in joints])),
        )
        return chain, np.array([self._parameters(joint.child) for joint in joints])

    def fixed_to(self, link: str) -> dict[str, np.ndarray]:
        """Poses (4, 4), in the frame of `link`, of the link itself and of all that hangs on it by fixed joints."""
        poses = {link: np.eye(4)}
        waiting = [link]
        while waiting:
            parent = waiting.pop()
            for joint in self.child_joints[parent]:
                if joint.type == "fixed":
                    poses[joint.child] = poses[parent] @ pose(joint.origin, self._where(joint))
                    waiting.append(joint.child)
        return poses

    def _check_unique(self, what: str, names: Iterable[str]) -> None:
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise self._error(f"several {what} are named {_quoted(repeated)}; give each a name of its own")

    def _add(self, joint: Joint) -> None:
        for role in ("parent", "child"):
            link = getattr(joint, role)
            if link not in self.links:
                raise self._error(f"joint '{joint.name}' has {role} link '{link}', which is not in the URDF; add it")
        if joint.child in self.parent_joint:
            raise self._error(
                f"link '{joint.child}' is the child of joints '{self.parent_joint[joint.child].name}' and "
                f"'{joint.name}', a closed loop; only open chains can be modelled"
            )
        self.parent_joint[joint.child] = joint
        self.child_joints[joint.parent].append(joint)

    def _root(self) -> str:
        if len(self.roots) > 1:
            raise self._error(f"several links have no parent: {_quoted(self.roots)}; choose one as base")
        return self.roots[0]

    def _leaf(self, base: str) -> str:
        leaves = [name for name in self._below(base) if not self.child_joints[name]]
        if len(leaves) > 1:
            raise self._error(f"several links end a chain: {_quoted(leaves)}; choose one as tip")
        return leaves[0]

    def _below(self, link: str) -> Iterator[str]:
        waiting = [link]
        while waiting:
            link = waiting.pop()
            yield link
            waiting += [joint.child for joint in reversed(self.child_joints[link])]

    def _known(self, name: str, role: str) -> str:
        if name not in self.links:
            raise self._error(f"{role} link '{name}' is not in the URDF; its links are {_quoted(self.links)}")
        return name

    def _path(self, base: str, tip: str) -> list[Joint]:
        path: list[Joint] = []
        link = tip
        while link != base:
            if link not in self.parent_joint:
                below = [name for name in self._below(base) if name != base]
                raise self._error(f"tip link '{tip}' is not below base link '{base}'; below it are {_quoted(below)}")
            path.append(self.parent_joint[link])
            link = path[-1].parent
        return path[::-1]

    def _check_moving(self, joint: Joint) -> None:
        way_out = "choose base and tip so that it is not between them"
        if joint.type not in MOVING:
            raise self._error(f"joint '{joint.name}' is {joint.type}; expected {', '.join(MOVING)} or fixed: {way_out}")
        if joint.mimic is not None:
            raise self._error(
                f"joint '{joint.name}' mimics joint '{joint.mimic.joint}'; coupled joints cannot be modelled: {way_out}"
            )

    def _parameters(self, link: str) -> np.ndarray:
        """Parameters (10,) of a link and of all that hangs on it by fixed joints, about the frame of the link."""
        parameters = np.zeros(PARAMETERS_PER_LINK)
        for name, placement in self.fixed_to(link).items():
            own = inertial_parameters(self.links[name].inertial, f"{self.source}, link '{name}'")
            parameters += transformed(own, placement)
        return parameters

    def _where(self, joint: Joint) -> str:
        return f"{self.source}, joint '{joint.name}'"

    def _error(self, message: str) -> ModelError:
        return ModelError(f"{self.source}: {message}")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
