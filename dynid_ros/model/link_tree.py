"""Tree of the links of a URDF, and the chains in it: the arm's joints, and the links that each moving link carries."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.model.chain import Chain, JointLimits
from dynid_ros.model.inertia import transformed
from dynid_ros.model.urdf import (
    MAX_MAGNITUDE,
    Joint,
    Link,
    Mimic,
    axis_rotation,
    displacement,
    inertial_parameters,
    joint_limits,
    parse_urdf,
    pose,
)

MOVING = ("revolute", "continuous", "prismatic")
ALL_TIPS = "all"
"""Word for every leaf, in place of tips."""
REACH_RAD = np.pi
REACH_M = 0.5
"""Reach to either side of a joint without limits."""


@dataclass(frozen=True, eq=False)
class CarriedLink:
    """A link and its place on the link of the chain that carries it.

    Attributes:
        placement: (4, 4) pose in the frame of the carrier.
        own: (10,) parameters about its own frame.
        joints: positions of the moving joints in between, rad or m, by name; empty for a fixed link.
    """

    name: str
    placement: np.ndarray
    own: np.ndarray
    joints: Mapping[str, float]

    @property
    def parameters(self) -> np.ndarray:
        """Parameters (10,) about the frame of the carrier."""
        return transformed(self.own, self.placement)


class LinkTree:
    """Links and joints of a URDF, checked to be a tree.

    Args:
        source: name of the URDF in errors.
        meant_angles: whether rounded right angles become right angles, see `parse_urdf`.

    Attributes:
        source: name of the URDF in errors.
        parent_joint: joint above each link but the roots.
        child_joints: joints below each link.
        roots: links without a joint above.

    Raises:
        ModelError: the text is no URDF, names repeat, joints connect links that do not exist, or loops are closed.
    """

    def __init__(self, text: str, source: str, *, meant_angles: bool = False):
        urdf = parse_urdf(text, source, meant_angles=meant_angles)
        self.text = text
        self.name = urdf.name
        self.source = source
        self.links: dict[str, Link] = {link.name: link for link in urdf.links}
        self.joints: dict[str, Joint] = {joint.name: joint for joint in urdf.joints}
        self.parent_joint: dict[str, Joint] = {}
        self.child_joints: dict[str, list[Joint]] = defaultdict(list)
        if not self.links:
            raise self._error("it has no links")
        self._check_unique("links", (link.name for link in urdf.links))
        self._check_unique("joints", (joint.name for joint in urdf.joints))
        for joint in urdf.joints:
            self._add(joint)
        self.roots = [name for name in self.links if name not in self.parent_joint]
        looped = set(self.links).difference(*(self.below(root) for root in self.roots))
        if looped:
            raise self._error(f"links {_quoted(sorted(looped))} form a closed loop; only open chains can be modelled")

    def chain(
        self, tip: str | Sequence[str] | None, base: str | None, held: Mapping[str, float] | None = None
    ) -> Chain:
        """Return the chain from link `base` to one tip or to several.

        Args:
            tip: last link, or several in a sequence or with commas between, or "all" for every leaf. None: the only
                leaf.
            base: first link; None: the root.
            held: positions, rad or m, of joints that do not move; joints that mimic them do not move, either.

        Raises:
            ModelError: the chain cannot be determined, has joints other than revolute, continuous, prismatic and fixed
                ones, or joints that mimic a joint that does not move by itself.
        """
        base = self._root() if base is None else self._known(base, "base")
        held = self._held(held or {})
        tips = self._tips(tip, base)
        joints: list[Joint] = []
        placements = []
        link_offsets = []
        parents = []
        # For each link the moving link (or the base, -1) that carries it, and its pose in the frame of that link.
        reached: dict[str, tuple[int, np.ndarray]] = {base: (-1, np.eye(4))}
        for joint in (joint for end in tips for joint in self._path(base, end)):
            if joint.child in reached:
                continue
            carrier, placement = reached[joint.parent]
            placement = placement @ pose(joint.origin, self._where(joint))
            if joint.type == "fixed" or self.driver(joint.name) in held:
                if joint.type != "fixed":
                    placement = placement @ displacement(joint, position(joint, held), self._where(joint))
                reached[joint.child] = carrier, placement
                continue
            self._check_moving(joint)
            rotation = axis_rotation(joint, self._where(joint))
            reached[joint.child] = len(joints), np.eye(4)
            joints.append(joint)
            parents.append(carrier)
            placements.append(placement @ rotation)
            link_offsets.append(rotation.T)
        still = [end for end in tips if reached[end][0] < 0]
        if still and (not joints or tip != ALL_TIPS):
            raise self._error(
                f"no moving joint between base link '{base}' and tip link '{still[0]}'; choose other links"
            )
        tips = [end for end in tips if end not in still]
        if tip == ALL_TIPS:  # one tip on each link that ends a branch
            ends = {reached[end][0]: end for end in reversed(tips) if reached[end][0] not in parents}
            tips = [end for end in tips if end in ends.values()]
        independent = [joint for joint in joints if joint.mimic is None]
        names = tuple(joint.name for joint in independent)
        mimics = [joint.mimic or Mimic(joint.name) for joint in joints]
        for joint, mimic in zip(joints, mimics, strict=True):
            self._check_mimic(joint, mimic, names)
        return Chain(
            name=self.name,
            base=base,
            tip=",".join(tips),
            joint_names=names,
            link_names=tuple(joint.child for joint in joints),
            prismatic=np.array([joint.type == "prismatic" for joint in independent]),
            placements=np.array(placements),
            link_offsets=np.array(link_offsets),
            tip_links=tuple(reached[end][0] for end in tips),
            tip_offsets=np.array([reached[end][1] for end in tips]),
            limits=JointLimits(*np.transpose([joint_limits(joint, self._where(joint)) for joint in independent])),
            parents=np.array(parents),
            mover_names=tuple(joint.name for joint in joints),
            drivers=np.array([names.index(mimic.joint) for mimic in mimics]),
            ratios=np.array([mimic.multiplier for mimic in mimics]),
            offsets=np.array([mimic.offset for mimic in mimics]),
            slides=np.array([joint.type == "prismatic" for joint in joints]),
            held=held,
        )

    def parameters(self, chain: Chain, posture: Mapping[str, float]) -> np.ndarray:
        """Return the parameters (10 m,) of a chain's links about their frames, with all that they carry."""
        posture = {**posture, **chain.held}
        carried = (self.carried(link, chain.link_names, posture) for link in chain.link_names)
        return np.concatenate([np.sum([part.parameters for part in parts], axis=0) for parts in carried])

    def carried(self, link: str, chain: Collection[str], posture: Mapping[str, float]) -> Iterator[CarriedLink]:
        """Yield a link and the links that it carries: those below it, up to floating joints and other links of a chain.

        Args:
            link: name of the link.
            chain: names of the links of the chain.
            posture: positions of joints, rad or m; missing joints are at zero or follow the joint that they mimic.
        """
        waiting: list[tuple[str, np.ndarray, dict[str, float]]] = [(link, np.eye(4), {})]
        while waiting:
            name, placement, moved = waiting.pop()
            own = inertial_parameters(self.links[name].inertial, f"{self.source}, link '{name}'")
            yield CarriedLink(name, placement, own, moved)
            for joint in self.child_joints[name]:
                if joint.child in chain or joint.type == "floating":
                    continue
                there = placement @ pose(joint.origin, self._where(joint))
                moves = moved
                if joint.type != "fixed":
                    moves = moved | {joint.name: position(joint, posture)}
                    there = there @ displacement(joint, moves[joint.name], self._where(joint))
                waiting.append((joint.child, there, moves))

    def fixed_to(self, link: str) -> dict[str, np.ndarray]:
        """Return the poses (4, 4), in the frame of a link, of the link and of all links that are fixed to it."""
        return {part.name: part.placement for part in self.carried(link, (), {}) if not part.joints}

    def driver(self, joint: str) -> str:
        """Return the joint that a joint follows, or the joint itself."""
        mimic = self.joints[joint].mimic
        return joint if mimic is None or mimic.joint not in self.joints else mimic.joint

    def reach(self, joint: str) -> tuple[float, float]:
        """Return the lowest and highest position of a joint, `REACH_RAD` or `REACH_M` to either side without limits."""
        lower, upper, *_ = joint_limits(self.joints[joint], self._where(self.joints[joint]))
        reach = REACH_M if self.joints[joint].type == "prismatic" else REACH_RAD
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
        leaves = self.leaves(base)
        if tip is None:
            if len(leaves) > 1:
                raise self._error(
                    f"several links end a chain: {_quoted(leaves)}; choose one as tip, or several with commas between, "
                    f"or '{ALL_TIPS}' (--tip, tip_link)"
                )
            return leaves
        if isinstance(tip, str):
            if tip == ALL_TIPS and tip not in self.links:
                return leaves
            tip = [tip] if tip in self.links else [name.strip() for name in tip.split(",")]
        if not tip:
            raise self._error("the list of tip links is empty; name some")
        return [self._known(name, "tip") for name in dict.fromkeys(tip)]

    def _held(self, held: Mapping[str, float]) -> dict[str, float]:
        """Return the positions of held joints, after checking them."""
        for name, at in held.items():
            joint = self.joints.get(name)
            if joint is None or joint.type not in MOVING:
                moving = _quoted(joint.name for joint in self.joints.values() if joint.type in MOVING)
                what = "is not in the URDF" if joint is None else f"is {joint.type}"
                raise self._error(f"joint '{name}', which is to be held, {what}; those that move are {moving}")
            if joint.mimic is not None:
                raise self._error(
                    f"joint '{name}', which is to be held, mimics joint '{joint.mimic.joint}'; hold that one"
                )
            if not abs(at) <= MAX_MAGNITUDE:
                raise self._error(f"joint '{name}' is to be held at {at}; expected a finite position, rad or m")
        return dict(held)

    def leaves(self, base: str) -> list[str]:
        """Return the links below a link, or the link itself, that end a chain."""
        return [name for name in self.below(base) if not self.child_joints[name]]

    def below(self, link: str) -> Iterator[str]:
        """Yield a link and all links below it."""
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
                below = [name for name in self.below(base) if name != base]
                raise self._error(f"tip link '{tip}' is not below base link '{base}'; below it are {_quoted(below)}")
            path.append(self.parent_joint[link])
            link = path[-1].parent
        return path[::-1]

    def _check_moving(self, joint: Joint) -> None:
        way_out = "choose base and tip so that it is not between them"
        if joint.type not in MOVING:
            raise self._error(f"joint '{joint.name}' is {joint.type}; expected {', '.join(MOVING)} or fixed: {way_out}")

    def _check_mimic(self, joint: Joint, mimic: Mimic, moving: Collection[str]) -> None:
        """Refuse a joint that mimics none of the independent moving joints."""
        if mimic.joint not in moving:
            other = self.joints.get(mimic.joint)
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
        if not max(abs(mimic.multiplier), abs(mimic.offset)) <= MAX_MAGNITUDE:
            raise self._error(
                f"joint '{joint.name}' mimics joint '{mimic.joint}' with multiplier {mimic.multiplier} and offset "
                f"{mimic.offset}; expected finite numbers"
            )

    def _where(self, joint: Joint) -> str:
        return f"{self.source}, joint '{joint.name}'"

    def _error(self, message: str) -> ModelError:
        return ModelError(f"{self.source}: {message}")


def position(joint: Joint, posture: Mapping[str, float]) -> float:
    """Return the position of a joint, rad or m: that of the posture, else that of the joint it mimics, else zero."""
    if joint.name in posture or joint.mimic is None:
        return posture.get(joint.name, 0.0)
    return joint.mimic.multiplier * posture.get(joint.mimic.joint, 0.0) + joint.mimic.offset


def held_positions(words: Iterable[str]) -> dict[str, float]:
    """Return the positions of held joints, rad or m, from words `joint=position`, several with commas between.

    Raises:
        ModelError: a word has another form, or names a joint twice.
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
