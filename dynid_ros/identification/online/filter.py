"""One causal low-pass for all columns of an equation, and fewer equations after it.

An equation A x = b that holds at each instant for constant x holds for its filtered columns too, whatever the filter's
lag, from the first sample on if all columns start from zero. So noise of accelerations, which is largest at high
frequencies, is taken off before it can bias the estimate, and nothing has to be aligned.

The filter is linear: where its output is looked at, it is what was kept of its two states and a weighted sum of the
samples since. So columns that are cheaper to sum than to write down for each sample are never written down.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

CORNER = 0.1024
"""Time constant times cut-off of two equal lags in a row: sqrt(sqrt(2) − 1) / (2 π)."""

SPACING = 2.0
"""Time constants between equations that are used: closer ones say the same, wider ones lose some."""


class RowFilter:
    """Two equal first-order lags, exact for any spacing of samples.

    Args:
        cutoff: frequency at which half of the power passes, Hz.

    Attributes:
        time_constant: of each lag, s.
        spacing: s between equations that are used.

    """

    def __init__(self, cutoff: float):
        self.time_constant = CORNER / cutoff
        self.spacing = SPACING * self.time_constant
        self.reset()

    def reset(self) -> None:
        """Start from zero."""
        self._times: list[float] = []
        self._used = math.nan
        self._states: NDArray | None = None

    def add(self, time: float) -> bool:
        """Take up the time of a sample; whether the output is due.

        The step before the first sample after a reset is taken as zero: that sample has no weight.
        """
        if not self._times:
            self._times, self._used = [time], time
        self._times.append(time)
        # Half a part in a million: spacing is a multiple of the step more often than not.
        due = time - self._used >= self.spacing * (1.0 - 1e-6)
        if due:
            self._used = time
        return due

    @property
    def waiting(self) -> int:
        """Samples since the last output."""
        return len(self._times) - 1

    def output(self, sums: Callable[[NDArray], NDArray]) -> NDArray:
        """Filtered rows (n, k) at the last sample.

        Args:
            sums: function from weights (2, N) of the N samples since the last output to sums (2, n, k) of their rows.

        """
        first, second = [], []
        decay, following = 1.0, 0.0
        for earlier, time in zip(self._times[-2::-1], self._times[:0:-1], strict=True):
            left = math.exp((earlier - time) / self.time_constant)
            following += 1.0 - left
            first.append((1.0 - left) * decay)
            second.append(first[-1] * following)
            decay *= left
        states = sums(np.array([first[::-1], second[::-1]]))
        if self._states is not None:
            kept = np.array([[decay, 0.0], [decay * following, decay]])
            states += (kept @ self._states.reshape(2, -1)).reshape(states.shape)
        self._times, self._states = self._times[-1:], states
        return states[1]
