"""How far an estimate is moved by innovations that are correlated in time.

Innovations of a robot are mostly friction that the model lacks: what is off now is off in the next second too. The
standard errors of least squares take each row for new evidence. Here the estimate's steps, gain times innovation, are
summed over blocks of time, and their squares compared with what white innovations of unit variance would give; the
blocks are 1, 2, 4, ... times as long (blocking: Flyvbjerg and Petersen 1989, "Error estimates on averages of correlated
data"; for each parameter it is a Bartlett estimate of its long-run variance). White innovations give the same ratio at
all lengths; correlated ones a ratio that grows until blocks are longer than the correlation. The largest counts.

What stays alike for longer than the longest block is not seen, nor what repeats with the motion.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.square_root import Innovation

LEVELS = 12
ENOUGH_BLOCKS = 8
"""Blocks of one length from which on their mean ratio counts."""

KNOWN = 1.0
"""Variance of the prediction, in units of the noise, above which an innovation says nothing of the noise."""


_TINY = 1e-300


@dataclass
class _Level:
    count: NDArray
    ratio: NDArray
    walked: NDArray = field(repr=False)
    white: NDArray = field(repr=False)
    half: bool = False


class EstimateWalk:
    """Variance of each parameter's steps over that of white innovations.

    Args:
        size: number k of parameters.
        blocks: how many blocks of one length count, those before fade.

    """

    def __init__(self, size: int, blocks: float = 200.0):
        self._blocks = blocks
        self._levels = [_Level(*np.zeros((4, size))) for _ in range(LEVELS)]

    def add(self, innovation: Innovation) -> None:
        """Take up the innovation of one instant; rows that were not predicted count as nothing."""
        known = innovation.spread < KNOWN
        if known.any():
            error = known * innovation.error / np.sqrt(1.0 + innovation.spread)
            self._carry(innovation.gain @ error, (innovation.gain * innovation.gain) @ known)

    def _carry(self, walked: NDArray, white: NDArray) -> None:
        for level in self._levels:
            # A parameter that no innovation could move says nothing.
            moved = white > 0.0
            np.minimum(level.count + moved, self._blocks, out=level.count)
            ratio = walked * walked / np.maximum(white, _TINY)
            level.ratio += moved * (ratio - level.ratio) / np.maximum(level.count, 1.0)
            if not level.half:
                level.walked, level.white, level.half = walked, white, True
                return
            walked, white = level.walked + walked, level.white + white
            level.half = False

    @property
    def inflation(self) -> NDArray:
        """(k,) by which the variances of the estimate for unit noise are to be multiplied; NaN: not known yet."""
        ratios = [np.where(level.count >= ENOUGH_BLOCKS, level.ratio, -np.inf) for level in self._levels]
        largest = np.max(ratios, axis=0)
        return np.where(np.isfinite(largest), largest, np.nan)

    @property
    def overall(self) -> float:
        """Median inflation of all parameters, at least one."""
        known = self.inflation[np.isfinite(self.inflation)]
        return max(1.0, float(np.median(known))) if known.size else 1.0
