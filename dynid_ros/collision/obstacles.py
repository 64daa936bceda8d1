"""Obstacles around an arm, poses of links of the URDF outside the chain, and pairs of links that may touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import CollisionError, ModelError
from dynid_ros.files import MEGABYTE, read_yaml
from dynid_ros.model.arrays import finite_vector
from dynid_ros.model.chain import Chain
from dynid_ros.model.link_tree import LinkTree, position
from dynid_ros.model.srdf import read_srdf
from dynid_ros.model.urdf import Joint, Origin, displacement, joint_limits, pose as transform

FIXED_LINK = -1
"""Link number of fixed objects."""
MAX_STEP_RAD = 0.25
"""Largest angle between two sampled poses of a link on a revolute joint outside the chain, rad."""
MAX_PLACES = 200
"""Largest number of sampled poses of a link; a link with more, such as the hand of a second arm, is left out."""

Pairs = frozenset[frozenset[str]]
"""Pairs of names of links."""
MAX_FILE_BYTES = MEGABYTE
OBSTACLE_KEYS = {"name", "size", "position", "rpy"}


@dataclass(frozen=True, eq=False)
class Placement:
    """A link of the URDF that a link of the chain carries.

    Attributes:
        link: link of the chain, from 0, or FIXED_LINK.
        name: name of the link of the URDF.
        places: (S, 4, 4) poses in the frame of the chain's link, several if joints outside the chain move the link.
        turns: for each revolute joint in between, its distance to the link, m, and half of its sampling step, rad.
    """

    link: int
    name: str
    places: np.ndarray
    turns: tuple[tuple[float, float], ...] = ()

    def sagitta(self, reach: float) -> float:
        """Return a bound, m, of the distance of points on the link from the hull of the sampled poses.

        Between two samples a point moves on an arc outside the chord. Its height is at most r (1 − cos(step / 2)).

        Args:
            reach: largest distance of the points from the origin of the link, m.
        """
        return sum((distance + reach) * (1.0 - np.cos(half)) for distance, half in self.turns)


def placements(tree: LinkTree, chain: Chain) -> tuple[list[Placement], list[str]]:
    """Return the poses of all links that move with the chain or are fixed to its base.

    Links on moving joints outside the chain (fingers) have several poses, sampled between the limits of the joints.

    Returns:
        The placements, and the names of omitted links: those with too many poses, on prismatic joints without limits,
        or moved by joints before the base.
    """
    placed: list[Placement] = []
    left_out: list[str] = []
    chain_joints = set(chain.mover_names)
    for link, name in ((FIXED_LINK, chain.base), *enumerate(chain.link_names)):
        start = Placement(link, name, np.eye(4)[np.newaxis])
        placed += _placed_below(tree, start, chain_joints, left_out, chain.held)
    placed += _placed_above(tree, chain, chain_joints, left_out)
    return placed, left_out


def _placed_below(
    tree: LinkTree, at: Placement, skipped: set[str], left_out: list[str], held: Mapping[str, float]
) -> Iterator[Placement]:
    """Yield a placement and those of all links below it, except below joints `skipped`."""
    yield at
    for joint in tree.child_joints[at.name]:
        if joint.name in skipped:
            continue
        moved = _moved(tree, at, joint, held)
        if moved is None:
            left_out += tree.below(joint.child)
        else:
            yield from _placed_below(tree, moved, skipped, left_out, held)


def _placed_above(tree: LinkTree, chain: Chain, skipped: set[str], left_out: list[str]) -> Iterator[Placement]:
    """Yield the placements of links that are fixed above the base, up to a moving joint."""
    link = chain.base
    place = np.eye(4)
    while link in tree.parent_joint:
        joint = tree.parent_joint[link]
        if joint.type != "fixed":
            left_out.append(joint.parent)
            return
        place = place @ np.linalg.inv(transform(joint.origin, f"joint '{joint.name}'"))
        link = joint.parent
        above = Placement(FIXED_LINK, link, place[np.newaxis])
        yield from _placed_below(tree, above, skipped | {joint.name}, left_out, chain.held)


def _moved(tree: LinkTree, at: Placement, joint: Joint, held: Mapping[str, float]) -> Placement | None:
    """Return the placement of the child of a joint outside the chain; None if its poses are too many or unknown."""
    where = f"joint '{joint.name}'"
    origin = transform(joint.origin, where)
    distance = float(np.linalg.norm(origin[:3, 3]))
    travel = 0.0
    turn = None
    if joint.type == "fixed":
        motions = np.eye(4)[np.newaxis]
    elif tree.driver(joint.name) in held:
        motions = displacement(joint, position(joint, held), where)[np.newaxis]
        distance += float(np.linalg.norm(motions[0, :3, 3]))
    elif joint.type in ("revolute", "continuous", "prismatic"):
        lower, upper = joint_limits(joint, where)[:2]
        is_prismatic = joint.type == "prismatic"
        if not np.isfinite([lower, upper]).all():
            if is_prismatic:
                return None
            lower = -np.pi
            upper = np.pi
        steps = 1 if is_prismatic else max(1, int(np.ceil((upper - lower) / MAX_STEP_RAD)))
        motions = np.array([displacement(joint, q, where) for q in np.linspace(lower, upper, steps + 1)])
        travel = max(abs(lower), abs(upper)) if is_prismatic else 0.0
        turn = None if is_prismatic else (0.0, (upper - lower) / steps / 2)
    else:
        return None
    if len(at.places) * len(motions) > MAX_PLACES:
        return None
    places = (at.places[:, np.newaxis] @ (origin @ motions)).reshape(-1, 4, 4)
    turns = tuple((far + distance + travel, half) for far, half in at.turns) + ((turn,) if turn else ())
    return Placement(at.link, joint.child, places, turns)


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A box-shaped obstacle.

    Attributes:
        name: name of the obstacle in errors.
        lower: (3,) lower corner in the frame of the box, m.
        upper: (3,) upper corner, m.
        pose: (4, 4) pose of this frame in the base frame; None: the base frame.
        centre: (3,) centre in the base frame, m.
        half: (3,) half of the sides, m.
        rotation: (3, 3) rotation of the frame of the box in the base frame.

    Raises:
        CollisionError: a corner or the pose is not finite or has another shape, or lower is not below upper.
    """

    name: str
    lower: ArrayLike
    upper: ArrayLike
    pose: ArrayLike | None = None
    centre: np.ndarray = field(init=False)
    half: np.ndarray = field(init=False)
    rotation: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        where = f"obstacle '{self.name}'"
        try:
            lower, upper = (
                finite_vector(corner, 3, f"{where}, {side} corner (m)")
                for side, corner in (("lower", self.lower), ("upper", self.upper))
            )
            place = np.eye(4) if self.pose is None else np.asarray(self.pose, dtype=float)
        except (ModelError, TypeError, ValueError) as error:
            raise CollisionError(f"{error}") from error
        if not np.all(lower < upper):
            raise CollisionError(f"{where}: lower corner {lower} is not below upper corner {upper} on each axis")
        rigid = place.shape == (4, 4) and np.allclose(place[:3, :3] @ place[:3, :3].T, np.eye(3), atol=1e-6)
        if not rigid or not np.isfinite(place).all():
            raise CollisionError(f"{where}: pose is not a (4, 4) transform; expected a rotation and a shift")
        object.__setattr__(self, "half", (upper - lower) / 2)
        object.__setattr__(self, "rotation", place[:3, :3])
        object.__setattr__(self, "centre", place[:3, :3] @ ((lower + upper) / 2) + place[:3, 3])


def read_obstacles(path: str | Path) -> tuple[Obstacle, ...]:
    """Read obstacles from a YAML file: a list of boxes, each with `name`, `size`, `position` and optional `rpy`.

    `size` (3,) contains the lengths of the sides, m, and `position` (3,) is the centre in the base frame, m. `rpy` (3,)
    contains roll, pitch and yaw about the fixed axes of the base frame, rad, as in a URDF.

    Raises:
        CollisionError: the file cannot be read, or an entry is not valid. The message names the file and the entry.
    """
    try:
        entries = read_yaml(path, MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CollisionError(f"obstacles '{path}': cannot be read ({reason}); give a YAML file") from error
    if entries is None:
        return ()
    if not isinstance(entries, list):
        raise CollisionError(f"obstacles '{path}': expected a list of boxes with {', '.join(sorted(OBSTACLE_KEYS))}")
    found = tuple(_obstacle(entry, f"obstacles '{path}', entry {i}") for i, entry in enumerate(entries, start=1))
    repeated = sorted(name for name, count in Counter(obstacle.name for obstacle in found).items() if count > 1)
    if repeated:
        raise CollisionError(f"obstacles '{path}': several are named '{repeated[0]}'; give each a name of its own")
    return found


def _obstacle(entry: object, where: str) -> Obstacle:
    if not isinstance(entry, dict):
        raise CollisionError(f"{where}: expected a mapping with {', '.join(sorted(OBSTACLE_KEYS))}")
    for key in entry:
        if key not in OBSTACLE_KEYS:
            raise CollisionError(f"{where}: key '{key}' is not known; expected {', '.join(sorted(OBSTACLE_KEYS))}")
    for key in sorted(OBSTACLE_KEYS - {"rpy"}):
        if key not in entry:
            raise CollisionError(f"{where}: '{key}' is missing")
    where = f"{where} ('{entry['name']}')"
    try:
        size, position, rpy = (
            finite_vector(entry.get(key, (0.0, 0.0, 0.0)), 3, f"{where}: {key}") for key in ("size", "position", "rpy")
        )
    except (ModelError, TypeError, ValueError) as error:
        reason = error if isinstance(error, ModelError) else f"{where}: {error}; expected three numbers"
        raise CollisionError(f"{reason}") from error
    if not np.all(size > 0.0):
        raise CollisionError(f"{where}: size is {size}; expected three sides above zero")
    return Obstacle(str(entry["name"]), -size / 2, size / 2, transform(Origin(position, rpy), where))


def allowed_pairs(path: str | Path, tree: LinkTree) -> Pairs:
    """Return the pairs of links that an SRDF exempts from collision checks (`disable_collisions`), for any reason."""
    where = f"SRDF '{path}'"
    try:
        root = read_srdf(path, tree.name)
    except ModelError as error:
        raise CollisionError(str(error)) from error
    pairs = list(_pairs(root, where))
    unknown = sorted({link for pair in pairs for link in pair} - set(tree.links))
    if unknown:
        raise CollisionError(
            f"{where}: its link(s) {', '.join(unknown)} are not in the URDF of '{tree.name}'; give the SRDF of "
            "this robot"
        )
    return frozenset(pairs)


def pair_of_links(words: str, links: Collection[str]) -> frozenset[str]:
    """Return the two links in a text "link:link"; names may contain colons.

    Raises:
        CollisionError: the text does not name two links.
    """
    parts = words.strip().split(":")
    for k in range(1, len(parts)):
        first = ":".join(parts[:k])
        second = ":".join(parts[k:])
        if first in links and second in links and first != second:
            return frozenset((first, second))
    raise CollisionError(f"allowed_pairs: '{words}' is not link:link; the links of the robot are {', '.join(links)}")


def _pairs(root: ET.Element, where: str) -> Iterator[frozenset[str]]:
    for element in root.findall("disable_collisions"):
        links = [element.get("link1"), element.get("link2")]
        if None in links:
            raise CollisionError(f"{where}: a <disable_collisions> lacks link1 or link2; correct it")
        yield frozenset(str(link) for link in links)
