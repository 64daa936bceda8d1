"""Chains from Denavit-Hartenberg tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dynid_ros.errors import ModelError
from dynid_ros.files import MEGABYTE, read_yaml, require_name
from dynid_ros.model.chain import Chain, JointLimits
from dynid_ros.model.urdf import meant_angle

KEYS = ("a", "alpha", "d", "theta", "type")
TYPES = ("revolute", "prismatic")
MAX_FILE_BYTES = MEGABYTE


def dh_chain(rows: Sequence[Mapping[str, float | str]], name: str, *, meant_angles: bool = False) -> Chain:
    """Return the chain of a standard DH table: T_{i-1,i} = Rz(theta) Tz(d) Tx(a) Rx(alpha).

    Args:
        rows: one mapping per joint with keys a (m), alpha (rad), d (m), theta (rad) and type ("revolute" or
            "prismatic"). The joint's position is added to theta or to d.
        name: name of the robot.
        meant_angles: whether rounded right angles become right angles, see `urdf.meant_angle`.

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
        if meant_angles:
            alpha = meant_angle(repr(alpha))
            theta = meant_angle(repr(theta))
        placements[i, :2, :2] = _rotation(theta)
        placements[i, 2, 3] = d
        link_offsets[i, 1:3, 1:3] = _rotation(alpha)
        link_offsets[i, 0, 3] = a
    links = tuple(f"link_{i}" for i in range(1, n + 1))
    joints = tuple(f"joint_{i}" for i in range(1, n + 1))
    prismatic = np.array([row["type"] == TYPES[1] for row in rows])
    return Chain(
        name=require_name(name, "DH table: the robot", ModelError),
        base="base",
        tip=links[-1],
        joint_names=joints,
        link_names=links,
        prismatic=prismatic,
        placements=placements,
        link_offsets=link_offsets,
        tip_links=(n - 1,),
        tip_offsets=np.eye(4)[None],
        limits=JointLimits.unlimited(n),
        parents=np.arange(n) - 1,
        mover_names=joints,
        drivers=np.arange(n),
        ratios=np.ones(n),
        offsets=np.zeros(n),
        slides=prismatic,
        held={},
        structure=None if meant_angles else dh_chain(rows, name, meant_angles=True),
    )


def dh_file(path: str | Path) -> tuple[list[Mapping[str, float | str]], str]:
    """Return rows and robot name of a DH table in a YAML file: a list of rows, or a mapping with `name` and `joints`.

    Raises:
        ModelError: the file cannot be read or has another form.
    """
    where = f"DH table '{path}'"
    try:
        content = read_yaml(path, MAX_FILE_BYTES)
    except OSError as error:
        raise ModelError(
            f"{where}: cannot be read ({error.strerror}); give a YAML file with a row per joint"
        ) from error
    except ValueError as error:
        raise ModelError(f"{where}: not plain YAML ({error})") from error
    name = Path(path).stem
    rows = content
    if isinstance(content, Mapping) and set(content) <= {"name", "joints"}:
        name = str(content.get("name", name))
        rows = content.get("joints")
    if not isinstance(rows, list):
        raise ModelError(
            f"{where}: expected a list of rows with keys {', '.join(KEYS)}, or a mapping of name and joints, that list"
        )
    return rows, name


def _numbers(row: Mapping[str, float | str], number: int) -> list[float]:
    if not isinstance(row, Mapping):
        raise ModelError(f"DH table, row {number}: it is {row!r}; expected a mapping with keys {', '.join(KEYS)}")
    unknown = sorted(set(row) - set(KEYS))
    missing = sorted(set(KEYS) - set(row))
    if unknown or missing:
        faults = [f"{kind} {', '.join(keys)}" for kind, keys in (("unknown", unknown), ("missing", missing)) if keys]
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
    cos = math.cos(angle)
    sin = math.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])
