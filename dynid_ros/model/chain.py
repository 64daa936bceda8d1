"""A kinematic chain, serial or branched: its joints, links and frames."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.model.arrays import blocks


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the joints, (n,) arrays; infinite without a limit.

    Attributes:
        lower: lowest position, rad or m.
        upper: highest position, rad or m.
        velocity: highest speed, rad/s or m/s.
        effort: highest torque or force, N m or N.
        acceleration: highest acceleration, rad/s² or m/s².
        jerk: highest jerk, rad/s³ or m/s³.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray

    @classmethod
    def unlimited(cls, n_joints: int) -> JointLimits:
        """Return limits that never bind."""
        infinite = np.full((5, n_joints), np.inf)
        return cls(-infinite[0], *infinite)


@dataclass(frozen=True, eq=False)
class Chain:
    """Geometry of an open chain of n joints that move m links; it may have branches, and joints that mimic others.

    The parent of link i is link p = `parents[i]` or the base. The link turns about or slides along z of its joint frame
    by its position s_i = `ratios[i]` q_j + `offsets[i]`, where j = `drivers[i]` is the joint that it follows. Its pose
    in link frame p is `placements[i] Z(s_i) link_offsets[i]`, where Z is the rotation about z or the shift along z.
    Joint frame i is the frame after `Z(s_i)`. In a serial arm p = i - 1, and s = q unless joints mimic others.

    Attributes:
        base: name of the link that the chain starts from.
        tip: name of the link that the chain ends at, or names with commas between; loads are at the first one.
        joint_names: names of the independent joints, from base to tip, branch by branch.
        link_names: names of the moving links, parents before children.
        prismatic: (n,) mask of the prismatic joints.
        placements: (m, 4, 4) transforms from the parent's frame to the joint.
        link_offsets: (m, 4, 4) transforms from the joint frame to the link frame.
        tip_links: for each tip the last moving link before it.
        tip_offsets: (k, 4, 4) poses of the tips in the frames of these links.
        parents: (m,) parent of each link; -1 for the base.
        mover_names: names of the joints that move the links, including joints that mimic others.
        drivers: (m,) independent joint that moves each link.
        ratios: (m,) position of a link per position of its driver.
        offsets: (m,) rad or m.
        slides: (m,) mask of the links whose position is a shift.
        held: positions, rad or m, of held joints; the links that they move are part of the link before.
        structure: the chain with the right angles that its DH table rounds; None without a DH table.
    """

    name: str
    base: str
    tip: str
    joint_names: tuple[str, ...]
    link_names: tuple[str, ...]
    prismatic: np.ndarray
    placements: np.ndarray
    link_offsets: np.ndarray
    tip_links: tuple[int, ...]
    tip_offsets: np.ndarray
    limits: JointLimits
    parents: np.ndarray
    mover_names: tuple[str, ...]
    drivers: np.ndarray
    ratios: np.ndarray
    offsets: np.ndarray
    slides: np.ndarray
    held: Mapping[str, float]
    structure: Chain | None = None

    @property
    def n_joints(self) -> int:
        """Number of joints, n."""
        return len(self.joint_names)

    @property
    def n_links(self) -> int:
        """Number of links that move, m."""
        return len(self.link_names)

    @property
    def tip_link(self) -> int:
        """Last moving link before the first tip."""
        return self.tip_links[0]

    @property
    def tip_offset(self) -> np.ndarray:
        """Pose (4, 4) of the first tip in the frame of `tip_link`."""
        return self.tip_offsets[0]

    @cached_property
    def tips(self) -> tuple[str, ...]:
        """Names of the links that the chain ends at."""
        return tuple(self.tip.split(",")) if len(self.tip_links) > 1 else (self.tip,)

    @cached_property
    def has_branches(self) -> bool:
        """Whether the parent of a link is not the link before it."""
        return bool(np.any(self.parents != np.arange(self.n_links) - 1))

    @cached_property
    def has_mimics(self) -> bool:
        """Whether joints mimic others."""
        return self.n_links > self.n_joints

    @cached_property
    def own_links(self) -> np.ndarray:
        """Link (n,) that each independent joint itself moves."""
        return np.array([self.mover_names.index(name) for name in self.joint_names])

    @cached_property
    def moves(self) -> np.ndarray:
        """Mask (m, m): whether link i is link l or one of its ancestors, so that moving i moves l."""
        moves = np.eye(self.n_links, dtype=bool)
        for link, parent in enumerate(self.parents):
            if parent >= 0:
                moves[:, link] |= moves[:, parent]
        return moves

    @cached_property
    def moved(self) -> np.ndarray:
        """Mask (n, m): whether a joint moves a link, directly or through a joint that mimics it."""
        return np.array([self.moves[self.drivers == joint].any(axis=0) for joint in range(self.n_joints)])

    def between(self, link: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the number of moving joints between links and others, arrays of any shape; -1 is the base."""
        return np.sum(self.joints_between(link, other), axis=-1)

    def joints_between(self, link: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return a mask (..., m) of the joints between links and others, arrays of any shape; -1 is the base."""
        before = np.pad(self.moves, ((0, 0), (0, 1))).T
        return before[link] != before[other]

    @cached_property
    def transforms(self) -> np.ndarray:
        """Poses (m, 4, 4) of each joint frame at position 0 in the joint frame of its parent."""
        transforms = self.placements.copy()
        below = self.parents >= 0
        transforms[below] = self.link_offsets[self.parents[below]] @ self.placements[below]
        return transforms

    def path(self, link: int) -> list[int]:
        """Return the links from the base to a link."""
        return np.flatnonzero(self.moves[:, link]).tolist()

    def of_links(self, q: np.ndarray, *rates: np.ndarray) -> list[np.ndarray]:
        """Return the links' positions (N, m) and their derivatives, given those of the joints, each (N, n)."""
        if not self.has_mimics:
            return [q, *rates]
        positions, *derivatives = (array[:, self.drivers] * self.ratios for array in (q, *rates))
        return [positions + self.offsets, *derivatives]

    def of_joints(self, torques: np.ndarray) -> np.ndarray:
        """Return the torques (n, ...) of the independent joints, given torques (m, ...) along the links' positions."""
        if not self.has_mimics:
            return torques
        joints = np.zeros((self.n_joints, *torques.shape[1:]))
        for torque, driver, ratio in zip(torques, self.drivers, self.ratios, strict=True):
            joints[driver] += ratio * torque
        return joints

    @cached_property
    def sha256(self) -> str:
        """Hash of joint names, types, axes and placements, and of branches and mimics if there are some.

        Lengths and direction cosines are rounded to 1e-9, so that the last bit of a sine does not change the hash from
        one machine to another.
        """
        digest = hashlib.sha256()
        for name, prismatic in zip(self.joint_names, self.prismatic, strict=True):
            digest.update(f"{name}\0{'prismatic' if prismatic else 'revolute'}\0".encode())
        numbers = [self.placements, self.link_offsets]
        if self.has_branches or self.has_mimics:
            digest.update("\0".join(self.mover_names).encode())
            numbers += [self.parents, self.drivers, self.ratios, self.offsets, self.slides.astype(float)]
        for values in numbers:
            digest.update((np.round(values, 9) + 0.0).astype("<f8").tobytes())
        return digest.hexdigest()


class ArmModel(Protocol):
    """Model of an arm as friction and base parameters use it; `RobotModel` is one."""

    chain: Chain
    parameters: np.ndarray

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def joint_names(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def link_names(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def n_joints(self) -> int: ...  # noqa: D102

    @property
    def n_links(self) -> int: ...  # noqa: D102

    @property
    def limits(self) -> JointLimits: ...  # noqa: D102

    @property
    def structure(self) -> ArmModel: ...  # noqa: D102

    def torque_regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray: ...  # noqa: D102

    def inverse_dynamics(  # noqa: D102
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, parameters: ArrayLike | None = None
    ) -> np.ndarray: ...


def joint_frames(chain: Chain, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint frames in the base frame at positions q (N, n): rotations (m, 3, 3, N) and origins (m, 3, N).

    The samples come last, so that numpy's inner loops run over them. The columns of a rotation are the axes of the
    frame; z is the axis that the link moves about or along.
    """
    (positions,) = chain.of_links(q)
    n_samples, m = positions.shape
    rotations = np.empty((m, 3, 3, n_samples))
    origins = np.empty((m, 3, n_samples))
    base = np.repeat(np.eye(3)[:, :, None], n_samples, axis=2), np.zeros((3, n_samples))
    for i, (transform, parent) in enumerate(zip(chain.transforms, chain.parents, strict=True)):
        rotation, origin = (rotations[parent], origins[parent]) if parent >= 0 else base
        origin = origin + transform[:3, 3] @ rotation
        rotation = transform[:3, :3].T @ rotation
        if chain.slides[i]:
            origin += rotation[:, 2] * positions[:, i]
        else:
            cos = np.cos(positions[:, i])
            sin = np.sin(positions[:, i])
            x = rotation[:, 0]
            y = rotation[:, 1]
            turned_x = x * cos + y * sin
            rotation[:, 1] = y * cos - x * sin  # x and y are views, so x is replaced last
            rotation[:, 0] = turned_x
        rotations[i] = rotation
        origins[i] = origin
    return rotations, origins


def joint_axes(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Return the unit axes (N, n, 3) of the independent joints in the base frame at positions q (N, n)."""
    axes = np.empty((*q.shape, 3))
    for block in blocks(len(q)):
        rotations, _ = joint_frames(chain, q[block])
        axes[block] = rotations[chain.own_links, :, 2].transpose(2, 0, 1)
    return axes


def link_poses(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Return the poses (N, m, 4, 4) of the link frames in the base frame at positions q (N, n)."""
    poses = np.zeros((len(q), chain.n_links, 4, 4))
    poses[..., 3, 3] = 1.0
    for block in blocks(len(q)):
        for i, (rotation, origin) in enumerate(zip(*joint_frames(chain, q[block]), strict=True)):
            offset = chain.link_offsets[i]
            poses[block, i, :3, :3] = (offset[:3, :3].T @ rotation).transpose(2, 0, 1)
            poses[block, i, :3, 3] = (origin + offset[:3, 3] @ rotation).T
    return poses
