"""The two approaches of a pose, from below and from above: friction is in their difference, not in their sum."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.rotations import HOLD_TOLERANCE
from dynid_ros.identification.samples import Samples

FEW_ROWS = 6
"""Fewer single samples than this do not show a noise of their own; they take that of the differences."""
SUM, DIFFERENCE = "both approaches, sum", "both approaches, difference"
LABELS = (SUM, DIFFERENCE, "one approach", "approach unknown")


@dataclass(frozen=True, eq=False)
class Approaches:
    """Pairs among m rows, one for a sample and a joint, whose samples are of the same pose reached from both sides.

    What a model of friction misses does not blur the sum, which tells gravity. Each joint has its own noise for sums,
    differences, single samples of known and of unknown direction.

    Attributes:
        up, down: (p,) rows of each pair.
        group: (m,) which noise each row has, once combined.
        names: of the noises.

    """

    up: NDArray
    down: NDArray
    group: NDArray
    names: tuple[str, ...]

    @classmethod
    def among(
        cls,
        samples: Samples,
        sample: NDArray,
        joint: NDArray,
        joint_names: tuple[str, ...],
        state: NDArray | None = None,
    ) -> Approaches:
        """Find them among rows of the samples (m,) and joints (m,).

        Args:
            samples: all.
            sample: (m,) which sample each row is of.
            joint: (m,) which joint.
            joint_names: all joints.
            state: (M,) of each sample; those that differ, as by a load, are not of one pose. None: all are alike.

        """
        direction = samples.direction[sample, joint]
        kind = np.where(direction != 0, 2, 3)
        up, down = _partners(samples, sample, joint, np.zeros(len(samples)) if state is None else state)
        kind[up], kind[down] = 0, 1
        for j in np.unique(joint[down]):
            single = (joint == j) & (kind == 2)
            if single.sum() < FEW_ROWS:
                kind[single] = 1
        keys, group = np.unique(joint * len(LABELS) + kind, return_inverse=True)
        names = tuple(f"{joint_names[key // len(LABELS)]}, {LABELS[key % len(LABELS)]}" for key in keys)
        return cls(up, down, group, names)

    def combine(self, values: NDArray) -> NDArray:
        """Rows (m, …) in which half sum and half difference, times √2 so that noise stays white, replace each pair."""
        combined = np.array(values, dtype=float)
        first, second = combined[self.up], combined[self.down]
        combined[self.up], combined[self.down] = (first + second) / np.sqrt(2), (first - second) / np.sqrt(2)
        return combined


def _partners(samples: Samples, sample: NDArray, joint: NDArray, state: NDArray) -> tuple[NDArray, NDArray]:
    up, down = [], []
    position = samples.position
    direction, static = samples.direction[sample, joint], samples.static[sample]
    for j, kind in product(np.unique(joint), np.unique(state)):
        mine = (joint == j) & static & (state[sample] == kind)
        falling = list(np.flatnonzero(mine & (direction < 0)))
        for row in np.flatnonzero(mine & (direction > 0)):
            if not falling:
                break
            distance = np.abs(position[sample[falling]] - position[sample[row]]).max(axis=1)
            nearest = int(np.argmin(distance))
            if distance[nearest] < HOLD_TOLERANCE:
                up.append(row)
                down.append(falling.pop(nearest))
    return np.array(up, int), np.array(down, int)
