"""Single-joint rotations among static samples, and the sinusoid that each one's torque follows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.least_squares import solve
from dynid_ros.identification.samples import Samples

HOLD_TOLERANCE = np.deg2rad(3.0)
"""Poses that differ by less are the same: friction shifts a soft servo by a degree or two between the directions."""


@dataclass(frozen=True)
class Rotation:
    """Consecutive static samples between which one joint alone moved."""

    joint: int
    rows: NDArray


@dataclass(frozen=True)
class Sinusoid:
    """Own torque of a rotating joint, sin·sin θ + cos·cos θ + offset + coulomb·direction (Ma & Hollerbach eq. 4)."""

    sin: float
    cos: float
    offset: float
    coulomb: float

    def torque(self, angle: NDArray) -> NDArray:
        """Torque without friction (M,), N m, at `angle` (M,), rad."""
        return self.sin * np.sin(angle) + self.cos * np.cos(angle) + self.offset


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


def fit_sinusoid(angle: NDArray, torque: NDArray, direction: NDArray | None = None) -> Sinusoid:
    """Linear fit of sin, cos, offset and, if both directions occur, Coulomb friction; (M,) rad, (M,) N m."""
    columns = [np.sin(angle), np.cos(angle), np.ones_like(angle)]
    both = direction is not None and np.any(direction > 0) and np.any(direction < 0)
    if both:
        columns.append(np.asarray(direction))
    solution = solve(np.column_stack(columns), torque).solution
    sin, cos, offset, coulomb = map(float, solution if both else np.append(solution, 0.0))
    return Sinusoid(sin, cos, offset, coulomb)
