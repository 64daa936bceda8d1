"""A kinematic chain, serial or branched: its joints and links, from a Denavit-Hartenberg table, and its frames."""

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
    """Limits of the joints, (n,) arrays, infinite where none are given.

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
        """Limits that never bind."""
        infinite = np.full((5, n_joints), np.inf)
        return cls(-infinite[0], *infinite)


@dataclass(frozen=True, eq=False)
class Chain:
    """Geometry of an open chain of n joints that move m links; it may have branches, and joints that mimic others.

    Link i hangs on link p = `parents[i]`, or on the base. It turns about or slides along z of its joint frame by a
    position s_i = `ratios[i]` q_j + `offsets[i]` of its own, j = `drivers[i]` being the joint that it follows. Its pose
    in link frame p is `placements[i] Z(s_i) link_offsets[i]`, Z being the rotation about z or the shift along z. The
    joint frame i is the one that `Z(s_i)` leads to. In a serial arm p is i - 1, and s is q unless joints mimic others.

    Attributes:
        name: name of the robot.
        base: name of the link that the chain starts from.
        tip: name of the link that the chain ends at; of several with commas between the first is where loads are.
        joint_names: of the independent joints, from base to tip, branch by branch.
        link_names: the links that joints move; a link comes after the one that it hangs on.
        prismatic: (n,) bool.
        placements: (m, 4, 4) transforms.
        link_offsets: (m, 4, 4) transforms.
        tip_links: for each tip the last link that moves before it.
        tip_offsets: (k, 4, 4) poses of the tips in the frames of these.
        limits: limits of the joints.
        parents: (m,) the link that each link hangs on, -1: the base.
        mover_names: names of the joints that move the links, those that mimic others among them.
        drivers: (m,) the independent joint that moves each link.
        ratios: (m,) rad or m of a link's own position per rad or m of its driver.
        offsets: (m,) rad or m.
        slides: (m,) bool, whether a link's own position is a shift.
        held: positions, rad or m, of joints that are held there; what they move is part of the link before.
        structure: the chain with the right angles that its DH table rounds; None: it does not come from one.
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
        """The last link that moves before the first tip."""
        return self.tip_links[0]

    @property
    def tip_offset(self) -> np.ndarray:
        """(4, 4) pose of the first tip in the frame of that link."""
        return self.tip_offsets[0]

    @cached_property
    def tips(self) -> tuple[str, ...]:
        """Names of the links that the chain ends at."""
        return tuple(self.tip.split(",")) if len(self.tip_links) > 1 else (self.tip,)

    @cached_property
    def has_branches(self) -> bool:
        """Whether some link hangs on another one than that before it."""
        return bool(np.any(self.parents != np.arange(self.n_links) - 1))

    @cached_property
    def has_mimics(self) -> bool:
        """Whether a link's own position is not that of a joint of its own."""
        return self.n_links > self.n_joints

    @cached_property
    def own_links(self) -> np.ndarray:
        """(n,) the link that each independent joint itself moves."""
        return np.array([self.mover_names.index(name) for name in self.joint_names])

    @cached_property
    def moves(self) -> np.ndarray:
        """(m, m) bool, whether link i is link l or one that it hangs on: what moves i moves l."""
        moves = np.eye(self.n_links, dtype=bool)
        for link, parent in enumerate(self.parents):
            if parent >= 0:
                moves[:, link] |= moves[:, parent]
        return moves

    @cached_property
    def moved(self) -> np.ndarray:
        """(n, m) bool, whether a joint moves a link, by itself or by one that mimics it."""
        return np.array([self.moves[self.drivers == joint].any(axis=0) for joint in range(self.n_joints)])

    def between(self, link: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Number of moving joints on the way from links to others, of any shape; -1 is the base."""
        before = np.pad(self.moves, ((0, 0), (0, 1))).T
        return np.sum(before[link] != before[other], axis=-1)

    @cached_property
    def transforms(self) -> np.ndarray:
        """(m, 4, 4) pose of each joint frame, the link's own position being 0, in the joint frame of its parent."""
        transforms = self.placements.copy()
        below = self.parents >= 0
        transforms[below] = self.link_offsets[self.parents[below]] @ self.placements[below]
        return transforms

    def path(self, link: int) -> list[int]:
        """The links from the base to one of them."""
        return np.flatnonzero(self.moves[:, link]).tolist()

    def of_links(self, q: np.ndarray, *rates: np.ndarray) -> list[np.ndarray]:
        """The links' own positions (N, m) and their derivatives, given those of the joints, each (N, n)."""
        if not self.has_mimics:
            return [q, *rates]
        positions, *moved = (array[:, self.drivers] * self.ratios for array in (q, *rates))
        return [positions + self.offsets, *moved]

    def of_joints(self, torques: np.ndarray) -> np.ndarray:
        """Torques (n, ...) of the independent joints, given what the links' own motions (m, ...) would take."""
        if not self.has_mimics:
            return torques
        joints = np.zeros((self.n_joints, *torques.shape[1:]))
        for torque, driver, ratio in zip(torques, self.drivers, self.ratios, strict=True):
            joints[driver] += ratio * torque
        return joints

    @cached_property
    def sha256(self) -> str:
        """Hash of joint names, types, axes and placements, and of branches and mimics where there are some.

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
    """Joint frames in the base frame: rotations (m, 3, 3, N) and origins (m, 3, N), at positions q (N, n).

    The samples come last, so that numpy's inner loops run over them. The columns of a rotation are the axes of the
    frame; its z is the axis that the link moves about or along.
    """
    (own,) = chain.of_links(q)
    n_samples, m = own.shape
    rotations = np.empty((m, 3, 3, n_samples))
    origins = np.empty((m, 3, n_samples))
    base = np.repeat(np.eye(3)[:, :, None], n_samples, axis=2), np.zeros((3, n_samples))
    for i, (transform, parent) in enumerate(zip(chain.transforms, chain.parents, strict=True)):
        rotation, origin = (rotations[parent], origins[parent]) if parent >= 0 else base
        origin = origin + transform[:3, 3] @ rotation
        rotation = transform[:3, :3].T @ rotation
        if chain.slides[i]:
            origin += rotation[:, 2] * own[:, i]
        else:
            cos, sin = np.cos(own[:, i]), np.sin(own[:, i])
            x, y = rotation[:, 0], rotation[:, 1]
            rotation[:, 0], rotation[:, 1] = x * cos + y * sin, y * cos - x * sin
        rotations[i], origins[i] = rotation, origin
    return rotations, origins


def joint_axes(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Unit axes (N, n, 3) of the independent joints in the base frame, at positions q (N, n)."""
    axes = np.empty((*q.shape, 3))
    for block in blocks(len(q)):
        rotations, _ = joint_frames(chain, q[block])
        axes[block] = rotations[chain.own_links, :, 2].transpose(2, 0, 1)
    return axes


def link_poses(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Poses (N, m, 4, 4) of the link frames in the base frame, at positions q (N, n)."""
    poses = np.zeros((len(q), chain.n_links, 4, 4))
    poses[..., 3, 3] = 1.0
    for block in blocks(len(q)):
        for i, (rotation, origin) in enumerate(zip(*joint_frames(chain, q[block]), strict=True)):
            offset = chain.link_offsets[i]
            poses[block, i, :3, :3] = (offset[:3, :3].T @ rotation).transpose(2, 0, 1)
            poses[block, i, :3, 3] = (origin + offset[:3, 3] @ rotation).T
    return poses
