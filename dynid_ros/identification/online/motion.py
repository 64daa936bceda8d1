"""Motion and torque of the same instant from positions and torques as they come.

Velocity is the 5-point derivative of position, acceleration that of velocity (Khosla and Kanade 1987, section 5.1), two
samples late each. Velocity, position and torque wait for the acceleration, so all are of four samples ago.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from dynid_ros.signals.derivatives import DELAY, WEIGHTS

GAP = 1.5
"""Steps between two samples above which one is missing; also times smaller than one by as much are no step."""


_SLOPES = np.stack([np.pad(WEIGHTS, DELAY), np.convolve(WEIGHTS, WEIGHTS)])
"""First and second derivative in the middle of nine positions, per step: the slope, and the slope of slopes."""

_NINE = np.arange(_SLOPES.shape[1])


class CausalMotion:
    """Differentiates on a steady clock, all instants since it was last asked at once.

    A controller samples steadily and stamps are late by chance, so the derivative uses the mean step since the start;
    a step that is longer by half is a gap, and starts anew.

    Args:
        period: s between samples; None: the mean of the stamps.

    """

    def __init__(self, period: float | None = None):
        self._period = period
        self._known: list[NDArray] = []
        self._steps: list[float] = []
        self.reset()

    @property
    def delay(self) -> int:
        """Samples by which instants are late."""
        return 2 * DELAY

    def reset(self) -> None:
        """Forget all samples; instants that are known stay."""
        self._differentiate()
        self._samples: list[NDArray] = []
        self._times: deque[float] = deque(maxlen=self.delay + 1)
        self._first, self._count = 0.0, 0

    def add(self, time: float, sample: NDArray) -> float | None:
        """Take up positions and torques (2, n); time of the instant four samples before, None until there is one."""
        if self._count:
            step = self._step
            if step > 0.0 and time - self._times[-1] > GAP * step:
                self.reset()
        if not self._count:
            self._first = time
        self._count += 1
        self._times.append(time)
        self._samples.append(sample)
        if self._count < _NINE.size:
            return None
        self._steps.append(self._step)
        return self._times[0]

    def take(self) -> list[NDArray]:
        """Arrays (4, N, n) of q, qd, qdd and torque of the instants since this was last called."""
        self._differentiate()
        known, self._known = self._known, []
        return known

    def _differentiate(self) -> None:
        if not self._steps:
            return
        steps = np.array(self._steps)[:, None]
        positions, torques = np.array(self._samples).transpose(1, 0, 2)
        slopes = _SLOPES @ positions[np.arange(len(steps))[:, None] + _NINE]
        now = slice(self.delay, -self.delay)
        self._known.append(np.stack([positions[now], slopes[:, 0] / steps, slopes[:, 1] / steps**2, torques[now]]))
        self._samples, self._steps = self._samples[1 - _NINE.size :], []

    @property
    def _step(self) -> float:
        if self._period is not None:
            return self._period
        return (self._times[-1] - self._first) / (self._count - 1) if self._count > 1 else 0.0
