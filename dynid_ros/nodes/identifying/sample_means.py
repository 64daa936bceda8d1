"""Joint states of a steady clock, thinned by means."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

GAP = 1.5
"""Periods between two samples from which on some are missing."""
LEARNING = 20
"""Steps from which the period is learnt, and gaps in a row after which it is learnt anew."""


class SampleMeans:
    """Means of so many samples, one after the other, that at most so many are left each second.

    Over a few milliseconds position and torque go straight, so that means say what the samples say, with less noise. A
    mean never spans a gap.

    Args:
        highest_rate: of the means, Hz.

    Attributes:
        period: between samples, s; NaN until it is learnt, from samples that are not used.
        missing: samples that the clock says there were, but did not come.

    """

    def __init__(self, highest_rate: float) -> None:
        self._highest_rate = highest_rate
        self.period, self.missing = math.nan, 0
        self._last, self._size, self._gaps = math.nan, 1, 0
        self._steps: list[float] = []
        self._waiting: list[tuple[float, ...]] = []

    def add(
        self, time: float, position: Iterable[float], torque: Iterable[float]
    ) -> tuple[float, NDArray, NDArray] | None:
        """Take up a sample at a time later than the one before; a mean if it completes one."""
        step, self._last = time - self._last, time
        if math.isnan(self.period):
            if not math.isnan(step):
                self._steps.append(step)
            if len(self._steps) == LEARNING:
                self.period = float(np.median(self._steps))
                # A tenth more than the highest rate is no reason to take half of it.
                self._size = max(1, math.ceil(0.9 / (self.period * self._highest_rate)))
            return None
        if step > GAP * self.period:
            self.missing += round(step / self.period) - 1
            self._gaps += 1
            self._waiting = []
            if self._gaps == LEARNING:
                self.period, self._gaps, self._steps = math.nan, 0, []
                return None
        else:
            self._gaps = 0
        self._waiting.append((time, *position, *torque))
        if len(self._waiting) < self._size:
            return None
        mean = np.mean(self._waiting, axis=0)
        self._waiting = []
        joints, torques = np.split(mean[1:], 2)
        return float(mean[0]), joints, torques
