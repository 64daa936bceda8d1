"""Chains from URDF, serial or branched: which links belong to the arm, where its joints are, what hangs on each."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.model.chain import Chain, JointLimits
from dynid_ros.model.inertia import transformed
from dynid_ros.model.urdf import (
    LARGEST,
    Joint,
    Link,
    Mimic,
    Urdf,
    axis_rotation,
    displacement,
    inertial_parameters,
    joint_limits,
    pose,
)

MOVING = ("revolute", "continuous", "prismatic")
ALL = "all"
"""Instead of tips: every leaf."""


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

    def chain(
        self, tip: str | Sequence[str] | None, base: str | None, held: Mapping[str, float] | None = None
    ) -> Chain:
        """Chain from link `base` to one tip or to several.

        Args:
            tip: last link, or several: as a sequence, or with commas between, or "all": every leaf. None: the only one.
            base: first link; None: the root.
            held: positions, rad or m, of joints that do not move; what mimics them does not, either.

        Raises:
            ModelError: the chain cannot be determined, is not one of revolute, continuous, prismatic and fixed joints,
                or holds joints that mimic what does not move by itself.
        """
        base = self._root() if base is None else self._known(base, "base")
        held = self._held(held or {})
        tips = self._tips(tip, base)
        joints: list[Joint] = []
        placements, link_offsets, parents = [], [], []
        # For each link the last one that moves, or the base, and its pose there.
        reached: dict[str, tuple[int, np.ndarray]] = {base: (-1, np.eye(4))}
        for joint in (joint for end in tips for joint in self._path(base, end)):
            if joint.child in reached:
                continue
            carrier, placement = reached[joint.parent]
            placement = placement @ pose(joint.origin, self._where(joint))
            if joint.type == "fixed" or self.driver(joint.name) in held:
                at = displacement(joint, position(joint, held), self._where(joint)) if joint.type != "fixed" else None
                reached[joint.child] = carrier, placement if at is None else placement @ at
                continue
            self._check_moving(joint)
            rotation = axis_rotation(joint, self._where(joint))
            reached[joint.child] = len(joints), np.eye(4)
            joints.append(joint)
            parents.append(carrier)
            placements.append(placement @ rotation)
            link_offsets.append(rotation.T)
        still = [end for end in tips if reached[end][0] < 0]
        if still and (not joints or tip != ALL):
            raise self._error(
                f"no moving joint between base link '{base}' and tip link '{still[0]}'; choose other links"
            )
        tips = [end for end in tips if end not in still]
        if tip == ALL:  # one tip on each link that ends a branch
            ends = {reached[end][0]: end for end in reversed(tips) if reached[end][0] not in parents}
            tips = [end for end in tips if end in ends.values()]
        own = [joint for joint in joints if joint.mimic is None]
        names = tuple(joint.name for joint in own)
        mimics = [joint.mimic or Mimic(joint.name) for joint in joints]
        for joint, mimic in zip(joints, mimics, strict=True):
            self._check_mimic(joint, mimic, names)
        return Chain(
            name=self.name,
            base=base,
            tip=",".join(tips),
            joint_names=names,
            link_names=tuple(joint.child for joint in joints),
            prismatic=np.array([joint.type == "prismatic" for joint in own]),
            placements=np.array(placements),
            link_offsets=np.array(link_offsets),
            tip_links=tuple(reached[end][0] for end in tips),
            tip_offsets=np.array([reached[end][1] for end in tips]),
            limits=JointLimits(*np.transpose([joint_limits(joint, self._where(joint)) for joint in own])),
            parents=np.array(parents),
            mover_names=tuple(joint.name for joint in joints),
            drivers=np.array([names.index(mimic.joint) for mimic in mimics]),
            ratios=np.array([mimic.multiplier for mimic in mimics]),
            offsets=np.array([mimic.offset for mimic in mimics]),
            slides=np.array([joint.type == "prismatic" for joint in joints]),
            held=held,
        )

    def parameters(self, chain: Chain, posture: Mapping[str, float]) -> np.ndarray:
        """Parameters (10 m,) of a chain's links about their frames, with all that they carry; see `carried`."""
        posture = {**posture, **chain.held}
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

    def _tips(self, tip: str | Sequence[str] | None, base: str) -> list[str]:
        leaves = [name for name in self._below(base) if not self.child_joints[name]]
        if tip is None:
            if len(leaves) > 1:
                raise self._error(
                    f"several links end a chain: {_quoted(leaves)}; choose one as tip, or several with commas between, "
                    f"or '{ALL}'"
                )
            return leaves
        if isinstance(tip, str):
            if tip == ALL and tip not in self.links:
                return leaves
            tip = [tip] if tip in self.links else [name.strip() for name in tip.split(",")]
        if not tip:
            raise self._error("the list of tip links is empty; name some")
        return [self._known(name, "tip") for name in dict.fromkeys(tip)]

    def _held(self, held: Mapping[str, float]) -> dict[str, float]:
        """Checked positions of held joints."""
        for name, at in held.items():
            joint = self._joints.get(name)
            if joint is None or joint.type not in MOVING:
                moving = _quoted(joint.name for joint in self._joints.values() if joint.type in MOVING)
                what = "is not in the URDF" if joint is None else f"is {joint.type}"
                raise self._error(f"joint '{name}', which is to be held, {what}; those that move are {moving}")
            if joint.mimic is not None:
                raise self._error(
                    f"joint '{name}', which is to be held, mimics joint '{joint.mimic.joint}'; hold that one"
                )
            if not abs(at) <= LARGEST:
                raise self._error(f"joint '{name}' is to be held at {at}; expected a finite position, rad or m")
        return dict(held)

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

    def _check_mimic(self, joint: Joint, mimic: Mimic, moving: Collection[str]) -> None:
        """Refuse a joint that mimics none of the independent ones that move."""
        if mimic.joint not in moving:
            other = self._joints.get(mimic.joint)
            if other is None:
                fault = "which is not in the URDF; correct the name"
            elif other.mimic is not None:
                fault = f"which itself mimics joint '{other.mimic.joint}'; let both mimic a joint that moves by itself"
            elif other.type not in MOVING:
                fault = f"which is {other.type}; let it mimic one that moves"
            else:
                fault = (
                    f"which is not between base and tip; add link '{other.child}' to the tips, or hold joint "
                    f"'{other.name}' at a position"
                )
            raise self._error(f"joint '{joint.name}' mimics joint '{mimic.joint}', {fault}")
        if not max(abs(mimic.multiplier), abs(mimic.offset)) <= LARGEST:
            raise self._error(
                f"joint '{joint.name}' mimics joint '{mimic.joint}' with multiplier {mimic.multiplier} and offset "
                f"{mimic.offset}; expected finite numbers"
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


def held_positions(words: Iterable[str]) -> dict[str, float]:
    """Positions of held joints, rad or m, of `joint=position`, several with commas between.

    Raises:
        ModelError: a word is none such, or names a joint again.
    """
    held: dict[str, float] = {}
    for word in (part.strip() for text in words for part in text.split(",") if part.strip()):
        name, _, value = (part.strip() for part in word.rpartition("="))
        try:
            at = float(value)
        except ValueError:
            name = ""
        if not name:
            raise ModelError(f"held joints: '{word}' is not joint=position (rad or m), as in torso_joint=0.2")
        if name in held:
            raise ModelError(f"held joints: joint '{name}' is given twice; give it once")
        held[name] = at
    return held


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
