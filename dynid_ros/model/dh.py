"""Chains from standard Denavit-Hartenberg tables."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.model.chain import Chain, JointLimits

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
