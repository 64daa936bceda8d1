"""A serial chain: joints, fixed transforms between them, limits; from a Denavit-Hartenberg table; its frames."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.model.arrays import blocks


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


KEYS = ("a", "alpha", "d", "theta", "type")
TYPES = ("revolute", "prismatic")


def dh_chain(rows: Sequence[Mapping[str, float | str]], name: str) -> Chain:
    """Chain of a standard DH table: T_{i-1,i} = Rz(theta) Tz(d) Tx(a) Rx(alpha).

    Args:
        rows: one mapping per joint with keys a (m), alpha (rad), d (m), theta (rad) and type ("revolute" or
            "prismatic"). The joint's position is added to theta or to d.
        name: name of the robot.

    Raises:
        ModelError: no rows, unknown or missing keys, an unknown type or a number that is not finite.
    """
    if not rows:
        raise ModelError("DH table: it has no rows; give one row per joint")
    n = len(rows)
    placements = np.tile(np.eye(4), (n, 1, 1))
    link_offsets = np.tile(np.eye(4), (n, 1, 1))
    for i, row in enumerate(rows):
        a, alpha, d, theta = _numbers(row, i + 1)
        placements[i, :2, :2] = _rotation(theta)
        placements[i, 2, 3] = d
        link_offsets[i, 1:3, 1:3] = _rotation(alpha)
        link_offsets[i, 0, 3] = a
    links = tuple(f"link_{i}" for i in range(1, n + 1))
    return Chain(
        name=name,
        base="base",
        tip=links[-1],
        joint_names=tuple(f"joint_{i}" for i in range(1, n + 1)),
        link_names=links,
        prismatic=np.array([row["type"] == "prismatic" for row in rows]),
        placements=placements,
        link_offsets=link_offsets,
        tip_offset=np.eye(4),
        limits=JointLimits.unlimited(n),
    )


def _numbers(row: Mapping[str, float | str], number: int) -> list[float]:
    if not isinstance(row, Mapping):
        raise ModelError(f"DH table, row {number}: it is {row!r}; expected a mapping with keys {', '.join(KEYS)}")
    unknown, missing = sorted(set(row) - set(KEYS)), sorted(set(KEYS) - set(row))
    if unknown or missing:
        faults = [f"unknown {', '.join(unknown)}"] * bool(unknown) + [f"missing {', '.join(missing)}"] * bool(missing)
        raise ModelError(f"DH table, row {number}: {'; '.join(faults)}; the keys are {', '.join(KEYS)}")
    if row["type"] not in TYPES:
        raise ModelError(f"DH table, row {number}: type is {row['type']!r}; expected one of {', '.join(TYPES)}")
    numbers = []
    for key in KEYS[:-1]:
        try:
            value = float(row[key])
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ModelError(f"DH table, row {number}: {key} is {row[key]!r}; expected a finite number")
        numbers.append(value)
    return numbers


def _rotation(angle: float) -> np.ndarray:
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])


def joint_frames(chain: Chain, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Joint frames in the base frame: rotations (n, 3, 3, N) and origins (n, 3, N), at positions q (N, n).

    The samples come last, so that numpy's inner loops run over them. The columns of a rotation are the axes of the
    frame; its z is the axis of the joint.
    """
    n_samples, n = q.shape
    rotations = np.empty((n, 3, 3, n_samples))
    origins = np.empty((n, 3, n_samples))
    rotation = np.repeat(np.eye(3)[:, :, None], n_samples, axis=2)
    origin = np.zeros((3, n_samples))
    for i, transform in enumerate(chain.transforms):
        origin = origin + transform[:3, 3] @ rotation
        rotation = transform[:3, :3].T @ rotation
        if chain.prismatic[i]:
            origin += rotation[:, 2] * q[:, i]
        else:
            cos, sin = np.cos(q[:, i]), np.sin(q[:, i])
            x, y = rotation[:, 0], rotation[:, 1]
            rotation[:, 0], rotation[:, 1] = x * cos + y * sin, y * cos - x * sin
        rotations[i], origins[i] = rotation, origin
    return rotations, origins


def joint_axes(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Unit axes (N, n, 3) of the joints in the base frame, at positions q (N, n)."""
    axes = np.empty((*q.shape, 3))
    for block in blocks(len(q)):
        rotations, _ = joint_frames(chain, q[block])
        axes[block] = rotations[:, :, 2].transpose(2, 0, 1)
    return axes


def link_poses(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Poses (N, n, 4, 4) of the link frames in the base frame, at positions q (N, n)."""
    poses = np.zeros((*q.shape, 4, 4))
    poses[..., 3, 3] = 1.0
    for block in blocks(len(q)):
        for i, (rotation, origin) in enumerate(zip(*joint_frames(chain, q[block]), strict=True)):
            offset = chain.link_offsets[i]
            poses[block, i, :3, :3] = (offset[:3, :3].T @ rotation).transpose(2, 0, 1)
            poses[block, i, :3, 3] = (origin + offset[:3, 3] @ rotation).T
    return poses
