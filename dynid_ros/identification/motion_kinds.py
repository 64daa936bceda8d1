"""Kinds of motion: samples at which the joints are in like positions and move alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans, vq

KINDS = 10
"""More make standard errors more certain, but follow each other within the time in which residuals stay alike."""
SAMPLES_PER_KIND = 10
SAMPLES = 2000
"""Enough to find the kinds."""


class MotionKinds:
    """K-means clusters of positions and velocities, each joint's in parts of its own standard deviation.

    A kind is a stretch of a motion, together with all its repetitions, in whatever recording.

    Args:
        motions: position and velocity (M, n) of each of several motions.

    """

    def __init__(self, motions: Sequence[tuple[NDArray, NDArray]]):
        every = max(1, sum(len(position) for position, _ in motions) // SAMPLES)
        states = np.concatenate([np.hstack([position[::every], velocity[::every]]) for position, velocity in motions])
        self._middle, self._size = states.mean(axis=0), states.std(axis=0)
        self._size[self._size == 0] = 1.0
        count = int(np.clip(len(states) // SAMPLES_PER_KIND, 1, KINDS))
        states = (states - self._middle) / self._size
        # From the middles of stretches of time: the same motion gives the same kinds, whatever the seed of a generator.
        self._centers, _ = kmeans(states, states[(2 * np.arange(count) + 1) * len(states) // (2 * count)])

    def of(self, position: NDArray, velocity: NDArray) -> NDArray:
        """(M,) number of the kind of each sample of position and velocity (M, n)."""
        return vq((np.hstack([position, velocity]) - self._middle) / self._size, self._centers)[0]
