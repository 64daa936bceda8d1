"""The links of an arm as capsules, and where these are while it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.collision.capsule_fit import MAX_CAPSULES, Capsules, cover
from dynid_ros.collision.obstacles import FIXED_LINK, Pairs, allowed_pairs, pair_of_links, placements
from dynid_ros.collision.shapes import ShapeReader
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import joint_samples
from dynid_ros.model.chain import Chain, joint_frames


@dataclass(frozen=True, eq=False)
class Bodies:
    """Capsules on the links of a chain: points within `radius` of a segment.

    Attributes:
        link: (C,) link of the chain that carries each capsule, from 0; -1 for the base.
        start: (C, 3) start of the segment in the frame of that link (or the base frame), m.
        end: (C, 3) end of the segment, m.
        radius: (C,) radius, m.
        hulls: (C,) points (V, 4) in the same frame whose hull the capsule covers: x, y, z, and a thickness around it.
        names: (C,) name of the link of the URDF that each capsule covers, or that a line starts from.
        without_shape: links of the chain without a known shape; they are lines without thickness.
        left_out: links of the URDF on the arm or its base that are not covered, because their place is undetermined.
        allowed: pairs of links of the URDF that may touch.
    """

    link: np.ndarray
    start: np.ndarray
    end: np.ndarray
    radius: np.ndarray
    hulls: tuple[np.ndarray, ...]
    names: tuple[str, ...]
    without_shape: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    allowed: Pairs = frozenset()

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        mesh_directories: Sequence[str | Path] = (),
        skip_unreadable: bool = False,
        most: int = MAX_CAPSULES,
        srdf: str | Path | None = None,
        *,
        allowed: Sequence[str] = (),
    ) -> Bodies:
        """Return capsules that cover the collision elements, else the visual ones, of all links of the chain and base.

        Links on joints outside the chain, such as fingers, are covered at all positions between their limits. A link
        without shape is a line from its origin to that of the next link; so are all links of a DH table.

        Args:
            robot: the arm.
            mesh_directories: folders of meshes: the folder of the URDF for relative paths; for `package://p/` a folder
                that holds p, or one in p. ROS_PACKAGE_PATH and AMENT_PREFIX_PATH are searched, too.
            skip_unreadable: whether a link with an unreadable shape counts as a link without shape.
            most: largest number of capsules per link of the URDF; fewer are used if more would not be much tighter.
            srdf: file with pairs of links that may touch, see `allowed_pairs`; None: no file.
            allowed: more pairs of links that may touch, each written as link:link.

        Raises:
            CollisionError: shapes are not valid, meshes are not found or not readable, or the SRDF is not readable or
                belongs to another robot. The message names all such links and files.
        """
        if robot.urdf is None:
            return cls.lines(robot)
        chain = robot.chain
        tree = robot.tree
        may_touch = frozenset(pair_of_links(words, tree.links) for words in allowed)
        if srdf is not None:
            may_touch |= allowed_pairs(srdf, tree)
        placed, left_out = placements(tree, chain)
        reader = ShapeReader(robot.urdf, [Path(directory) for directory in mesh_directories])
        parts: list[tuple[int, str, Capsules]] = []
        unread: list[int] = []
        errors: list[str] = []
        for placement in placed:
            try:
                shape = reader.shape(placement)
            except CollisionError as error:
                errors.append(str(error))
                unread.append(placement.link)
                continue
            if shape is not None:
                parts.append((shape.link, shape.name, cover(shape.faces, shape.margins, most)))
        if errors and not skip_unreadable:
            others = "".join(f"; {error.partition(' (')[0]}" for error in errors[1:])
            raise CollisionError(f"{errors[0]}{others}; or go on without the shapes that cannot be read")
        shaped = {link for link, _, _ in parts} - set(unread)
        lines = cls.lines(robot)
        bare = [k for k, link in enumerate(lines.link) if link not in shaped and link != FIXED_LINK]
        bare += [k for k, link in enumerate(lines.link) if link == FIXED_LINK and link in unread]
        parts += [(int(lines.link[k]), lines.names[k], _line(lines, k)) for k in bare]
        parts.sort(key=lambda part: part[0])
        names = (chain.base, *chain.link_names)
        counts = [len(capsules.radius) for _, _, capsules in parts]
        return cls(
            np.repeat([link for link, _, _ in parts], counts),
            np.concatenate([capsules.start for _, _, capsules in parts]),
            np.concatenate([capsules.end for _, _, capsules in parts]),
            np.concatenate([capsules.radius for _, _, capsules in parts]),
            tuple(hull for _, _, capsules in parts for hull in capsules.hulls),
            tuple(name for (_, name, _), count in zip(parts, counts, strict=True) for _ in range(count)),
            tuple(names[link + 1] for link in range(-1, chain.n_links) if link not in shaped),
            tuple(left_out),
            may_touch,
        )

    @classmethod
    def lines(cls, robot: RobotModel) -> Bodies:
        """Return lines from link origin to link origin, from the base to the tip: links without thickness.

        Each line is part of one link; the displacement of a sliding joint belongs to none.
        """
        chain = robot.chain
        m = chain.n_links
        tips = chain.tip_offsets[:, :3, 3]
        joints = np.zeros((m + 1, 3))
        # Lines end at the origins of the links and at the tips.
        beyond = np.concatenate([chain.placements[:, :3, 3], tips])
        if robot.urdf is None:  # a DH frame is at the far end of its link, the shift along its joint is part of it
            for i, (before, after) in enumerate(zip(chain.placements, chain.link_offsets, strict=True)):
                joints[i] = -after[:3, :3].T @ (after[:3, 3] + before[:3, :3].T @ before[:3, 3])
            beyond = np.zeros_like(beyond)
        link, end = np.array(line_ends(chain)).T
        start = np.concatenate([joints[link], tips])
        ends = np.concatenate([beyond[end], tips])
        hulls = np.pad(np.stack([start, ends], axis=1), ((0, 0), (0, 0), (0, 1)))
        link_names = (*chain.link_names, chain.base)
        names = (*(link_names[k] for k in link), *chain.tips)
        link = np.append(link, chain.tip_links)
        return cls(link, start, ends, np.zeros(len(link)), tuple(hulls), names, (chain.base, *chain.link_names))


def line_ends(chain: Chain) -> list[tuple[int, int]]:
    """Return pairs of a link (from the base on) and the end of a line from it: a child link, or a tip (from m on)."""
    beyond = [*chain.parents.tolist(), *chain.tip_links]
    return [(link, end) for link in range(FIXED_LINK, chain.n_links) for end, at in enumerate(beyond) if at == link]


def _line(lines: Bodies, k: int) -> Capsules:
    return Capsules(lines.start[[k]], lines.end[[k]], lines.radius[[k]], (lines.hulls[k],))


class Placed(NamedTuple):
    """An arm in N poses, in the base frame.

    Attributes:
        points: (2 C, 3, N) ends of the capsules: all starts, then all ends.
        rotations: (m + 1, 3, 3, N) rotations of the joint frames; FIXED_LINK, the last one, is the base frame.
        origins: (m + 1, 3, N) origins of the joint frames, m.
    """

    points: np.ndarray
    rotations: np.ndarray
    origins: np.ndarray

    def only(self, poses: np.ndarray) -> Placed:
        """Return the poses of a mask (N,)."""
        return Placed(*(array[..., poses] for array in self))


class Placing:
    """Capsules of one arm, and their places in poses.

    Attributes:
        robot: the arm.
        bodies: its capsules.
    """

    def __init__(self, robot: RobotModel, bodies: Bodies) -> None:
        self.robot = robot
        self.bodies = bodies
        self._link = np.tile(bodies.link, 2)
        self._offsets = np.concatenate([robot.chain.link_offsets, np.eye(4)[np.newaxis]])
        points = np.concatenate([bodies.start, bodies.end])
        self._points = np.array([self.in_joint_frame(link, p) for link, p in zip(self._link, points, strict=True)])

    def in_joint_frame(self, link: int, points: np.ndarray) -> np.ndarray:
        """Return points (..., 3) in the frame of a link's joint, given in the link's frame."""
        return points @ self._offsets[link, :3, :3].T + self._offsets[link, :3, 3]

    def at(self, position: ArrayLike) -> Placed:
        """Return the arm at positions (N, n)."""
        (q,) = joint_samples(self.robot.joint_names, position=position)
        moved, shifted = joint_frames(self.robot.chain, q)
        base = np.repeat(np.eye(3)[:, :, np.newaxis], len(q), axis=2)
        rotations = np.concatenate([moved, base[np.newaxis]])
        origins = np.concatenate([shifted, np.zeros((1, 3, len(q)))])
        points = np.empty((*self._points.shape, len(q)))
        for link in range(FIXED_LINK, self.robot.chain.n_links):
            on_link = self._link == link
            points[on_link] = (self._points[on_link] @ rotations[link]).transpose(1, 0, 2) + origins[link]
        return Placed(points, rotations, origins)
