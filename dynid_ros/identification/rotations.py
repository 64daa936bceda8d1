"""Single-joint rotations among static samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.samples import Samples

HOLD_TOLERANCE = np.deg2rad(3.0)
"""Poses that differ by less are the same: friction shifts a soft servo by a degree or two between the directions."""


@dataclass(frozen=True)
class Rotation:
    """Consecutive static samples between which one joint alone moved."""

    joint: int
    rows: NDArray


def rotations(samples: Samples) -> list[Rotation]:
    """Split static samples into single-joint rotations of at least four poses; the rest belongs to none."""
    found = []
    rows = np.flatnonzero(samples.static)
    start = 0
    while start < len(rows) - 1:
        end, joint = _extend(samples, rows, start)
        if joint is not None and end - start >= 4:
            found.append(Rotation(joint, rows[start:end]))
            start = end
        else:
            start += 1
    return found


def _extend(samples: Samples, rows: NDArray, start: int) -> tuple[int, int | None]:
    """End of the run from `start` in which one and the same joint moves, and that joint."""
    first = samples.position[rows[start]]
    joint = None
    for end in range(start + 1, len(rows)):
        moved = np.flatnonzero(np.abs(samples.position[rows[end]] - first) > HOLD_TOLERANCE)
        same_part = samples.part[rows[end]] == samples.part[rows[start]]
        if not same_part or len(moved) > 1 or (len(moved) == 1 and joint not in (None, moved[0])):
            return end, joint
        if len(moved) == 1:
            joint = int(moved[0])
    return len(rows), joint
