"""Chains from URDF: which links belong to the arm, where its joints are and what hangs on each."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.model.chain import Chain, JointLimits
from dynid_ros.model.inertia import transformed
from dynid_ros.model.urdf import (
    Joint,
    Link,
    Urdf,
    axis_rotation,
    displacement,
    inertial_parameters,
    joint_limits,
    pose,
)

MOVING = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True, eq=False)
class CarriedLink:
    """A link that another one carries, or that one itself.

    Attributes:
        name: of the link.
        placement: (4, 4) its pose in the frame of the link that carries it.
        own: (10,) its parameters about its own frame.
        joints: positions of the joints in between that move, rad or m, by name; none: it is fixed.
    """

    name: str
    placement: np.ndarray
    own: np.ndarray
    joints: Mapping[str, float]

    @property
    def parameters(self) -> np.ndarray:
        """(10,) about the frame of the link that carries it."""
        return transformed(self.own, self.placement)


class LinkTree:
    """Links and joints of a URDF, checked to be a tree.

    Args:
        urdf: its links and joints.
        source: what to call it in an error.

    Raises:
        ModelError: names that repeat, joints between links that do not exist, closed loops.
    """

    def __init__(self, urdf: Urdf, source: str):
        self.name = urdf.name
        self.source = source
        self.links: dict[str, Link] = {link.name: link for link in urdf.links}
        self.parent_joint: dict[str, Joint] = {}
        self.child_joints: dict[str, list[Joint]] = defaultdict(list)
        self._joints: dict[str, Joint] = {joint.name: joint for joint in urdf.joints}
        if not self.links:
            raise self._error("it has no links")
        self._check_unique("links", (link.name for link in urdf.links))
        self._check_unique("joints", (joint.name for joint in urdf.joints))
        for joint in urdf.joints:
            self._add(joint)
        self.roots = [name for name in self.links if name not in self.parent_joint]
        looped = set(self.links).difference(*(self._below(root) for root in self.roots))
        if looped:
            raise self._error(f"links {_quoted(sorted(looped))} form a closed loop; only open chains can be modelled")

    def chain(self, tip: str | None, base: str | None) -> Chain:
        """Chain from link `base` (None: the root) to link `tip` (None: the only leaf).

        Raises:
            ModelError: the chain cannot be determined, or is not one of revolute, continuous, prismatic and fixed
                joints.
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
        return Chain(
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

    def parameters(self, chain: Chain, posture: Mapping[str, float]) -> np.ndarray:
        """Parameters (10 n,) of a chain's links about their frames, with all that they carry; see `carried`."""
        carried = (self.carried(link, chain.link_names, posture) for link in chain.link_names)
        return np.concatenate([np.sum([part.parameters for part in parts], axis=0) for parts in carried])

    def carried(self, link: str, chain: Collection[str], posture: Mapping[str, float]) -> Iterator[CarriedLink]:
        """The link itself, and what hangs on it by any joints but the floating ones, up to the other links of a chain.

        Args:
            link: that carries.
            chain: links that carry for themselves.
            posture: positions of joints, rad or m; those that are missing are at zero, or follow the one they mimic.
        """
        waiting: list[tuple[str, np.ndarray, dict[str, float]]] = [(link, np.eye(4), {})]
        while waiting:
            name, placement, moved = waiting.pop()
            own = inertial_parameters(self.links[name].inertial, f"{self.source}, link '{name}'")
            yield CarriedLink(name, placement, own, moved)
            for joint in self.child_joints[name]:
                if joint.child in chain or joint.type == "floating":
                    continue
                there, moves = placement @ pose(joint.origin, self._where(joint)), moved
                if joint.type != "fixed":
                    moves = moved | {joint.name: position(joint, posture)}
                    there = there @ displacement(joint, moves[joint.name], self._where(joint))
                waiting.append((joint.child, there, moves))

    def fixed_to(self, link: str) -> dict[str, np.ndarray]:
        """Poses (4, 4), in the frame of `link`, of the link itself and of all that hangs on it by fixed joints."""
        return {part.name: part.placement for part in self.carried(link, (), {}) if not part.joints}

    def driver(self, joint: str) -> str:
        """The joint that this one follows, or itself."""
        mimic = self._joints[joint].mimic
        return joint if mimic is None or mimic.joint not in self._joints else mimic.joint

    def reach(self, joint: str) -> tuple[float, float]:
        """Least and largest position of a joint, half a turn or half a metre to either side where it has no limits."""
        lower, upper, *_ = joint_limits(self._joints[joint], f"{self.source}, joint '{joint}'")
        reach = 0.5 if self._joints[joint].type == "prismatic" else np.pi
        return (lower, upper) if np.isfinite([lower, upper]).all() else (-reach, reach)

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

    def _where(self, joint: Joint) -> str:
        return f"{self.source}, joint '{joint.name}'"

    def _error(self, message: str) -> ModelError:
        return ModelError(f"{self.source}: {message}")


def position(joint: Joint, posture: Mapping[str, float]) -> float:
    """Where a joint is, rad or m: as the posture has it, as the joint that it mimics has it, else zero."""
    if joint.name in posture or joint.mimic is None:
        return posture.get(joint.name, 0.0)
    return joint.mimic.multiplier * posture.get(joint.mimic.joint, 0.0) + joint.mimic.offset


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
