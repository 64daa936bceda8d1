"""A serial chain: its joints, the fixed transforms between them and their limits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the joints, (n,) arrays, infinite where none are given.

    Attributes:
        lower: lowest position, rad or m.
        upper: highest position, rad or m.
        velocity: highest speed, rad/s or m/s.
        effort: highest torque or force, N m or N.

    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray

    @classmethod
    def unlimited(cls, n_joints: int) -> JointLimits:
        """Limits that never bind."""
        infinite = np.full(n_joints, np.inf)
        return cls(-infinite, infinite, infinite.copy(), infinite.copy())


@dataclass(frozen=True, eq=False)
class Chain:
    """Geometry of a serial arm of n joints; each turns about or slides along z of its joint frame.

    The pose of link frame i in link frame i-1 (the base for the first joint) is `placements[i] Z(q_i) link_offsets[i]`,
    Z being the rotation about z or the shift along z. The joint frame i is the one that `Z(q_i)` leads to.

    Attributes:
        name: name of the robot.
        base: name of the link that the chain starts from.
        tip: name of the link that the chain ends at.
        joint_names: from base to tip.
        link_names: the link that each joint moves.
        prismatic: (n,) bool.
        placements: (n, 4, 4) transforms.
        link_offsets: (n, 4, 4) transforms.
        tip_offset: (4, 4) pose of the tip link in the frame of the last link that moves.
        limits: limits of the joints.

    """

    name: str
    base: str
    tip: str
    joint_names: tuple[str, ...]
    link_names: tuple[str, ...]
    prismatic: np.ndarray
    placements: np.ndarray
    link_offsets: np.ndarray
    tip_offset: np.ndarray
    limits: JointLimits

    @property
    def n_joints(self) -> int:
        """Number of joints, n."""
        return len(self.joint_names)

    @cached_property
    def transforms(self) -> np.ndarray:
        """(n, 4, 4) pose of each joint frame at q = 0 in the joint frame before it."""
        transforms = self.placements.copy()
        transforms[1:] = self.link_offsets[:-1] @ self.placements[1:]
        return transforms

    @cached_property
    def sha256(self) -> str:
        """Hash of joint names, types, axes and placements.

        Lengths and direction cosines are rounded to 1e-9, so that the last bit of a sine does not change the hash from
        one machine to another.
        """
        digest = hashlib.sha256()
        for name, prismatic in zip(self.joint_names, self.prismatic, strict=True):
            digest.update(f"{name}\0{'prismatic' if prismatic else 'revolute'}\0".encode())
        for transforms in (self.placements, self.link_offsets):
            digest.update((np.round(transforms, 9) + 0.0).astype("<f8").tobytes())
        return digest.hexdigest()
