"""Which links of a URDF move with which link of the chain, and where on it they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from urdf_parser_py.urdf import Joint

from dynid_ros.model.chain import Chain
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.urdf import displacement, joint_limits, pose

BASE = -1
"""Link number of what does not move."""
STEP = 0.25
"""Largest angle between two places of what hangs on a turning joint outside the chain, rad."""
MOST_PLACES = 200
"""A link that needs more of them, such as the hand of a second arm, is left out."""


@dataclass(frozen=True, eq=False)
class Placement:
    """A link of the URDF on a link of the chain.

    Attributes:
        link: link of the chain, from 0; BASE.
        name: link of the URDF.
        places: (S, 4, 4) poses in the frame of the chain's link: one, or several if joints outside the chain move it.
        turns: for each turning joint between them its distance to the link, m, and half the angle of its steps.

    """

    link: int
    name: str
    places: np.ndarray
    turns: tuple[tuple[float, float], ...] = ()

    def sagitta(self, reach: float) -> float:
        """How far a point within `reach` of the link's origin may be from the hull of its places, m."""
        return sum((distance + reach) * (1.0 - np.cos(half)) for distance, half in self.turns)


def placements(tree: LinkTree, chain: Chain) -> tuple[list[Placement], list[str]]:
    """Where each link is that moves with the chain or stands still with its base.

    What hangs on it by moving joints outside the chain (fingers) is at all places between their limits.

    Returns:
        The placements, and the names of the links that are left out: those with too many places, on joints without
        limits to their shift, or moving with joints before the base.

    """
    found: list[Placement] = []
    left_out: list[str] = []
    own = set(chain.joint_names)
    for link, name in ((BASE, chain.base), *enumerate(chain.link_names)):
        start = Placement(link, name, np.eye(4)[np.newaxis])
        found += _hanging(tree, start, own, left_out)
    found += _above(tree, chain, own, left_out)
    return found, left_out


def _hanging(tree: LinkTree, at: Placement, skipped: set[str], left_out: list[str]) -> Iterator[Placement]:
    """`at` and all below it, but not by way of joints `skipped`."""
    yield at
    for joint in tree.child_joints[at.name]:
        if joint.name in skipped:
            continue
        moved = _moved(at, joint)
        if moved is None:
            left_out += tree._below(joint.child)
        else:
            yield from _hanging(tree, moved, skipped, left_out)


def _above(tree: LinkTree, chain: Chain, skipped: set[str], left_out: list[str]) -> Iterator[Placement]:
    """What stands still above the base, up to a joint that moves."""
    link, place = chain.base, np.eye(4)
    while link in tree.parent_joint:
        joint = tree.parent_joint[link]
        if joint.type != "fixed":
            left_out.append(joint.parent)
            return
        place = place @ np.linalg.inv(pose(joint.origin, f"joint '{joint.name}'"))
        link = joint.parent
        yield from _hanging(tree, Placement(BASE, link, place[np.newaxis]), skipped | {joint.name}, left_out)


def _moved(at: Placement, joint: Joint) -> Placement | None:
    """The child of a joint outside the chain; None if its places are too many or unknown."""
    where = f"joint '{joint.name}'"
    origin = pose(joint.origin, where)
    distance = float(np.linalg.norm(origin[:3, 3]))
    if joint.type == "fixed":
        motions, travel, turn = np.eye(4)[np.newaxis], 0.0, None
    elif joint.type in ("revolute", "continuous", "prismatic"):
        lower, upper = joint_limits(joint, where)[:2]
        prismatic = joint.type == "prismatic"
        if not np.isfinite([lower, upper]).all():
            if prismatic:
                return None
            lower, upper = -np.pi, np.pi
        steps = 1 if prismatic else max(1, int(np.ceil((upper - lower) / STEP)))
        motions = np.array([displacement(joint, q, where) for q in np.linspace(lower, upper, steps + 1)])
        travel = max(abs(lower), abs(upper)) if prismatic else 0.0
        turn = None if prismatic else (0.0, (upper - lower) / steps / 2)
    else:
        return None
    if len(at.places) * len(motions) > MOST_PLACES:
        return None
    places = (at.places[:, np.newaxis] @ (origin @ motions)).reshape(-1, 4, 4)
    turns = tuple((far + distance + travel, half) for far, half in at.turns) + ((turn,) if turn else ())
    return Placement(at.link, joint.child, places, turns)
