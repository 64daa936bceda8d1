"""Samples on a steady clock, from samples with jittered stamps and losses.

A controller samples steadily, but stamps are late by chance and messages get lost. Derivatives and low-passes of noisy
samples rely on even spacing: noise of a second derivative cancels from sample to sample only if all samples count
alike. So each sample is assigned to a slot of the clock, and slots that stayed empty are filled by interpolation.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEARNING_SAMPLES = 20
"""Number of samples from which the period is learnt, and of misfits in a row after which it is learnt again."""

MAX_BRIDGED_S = 0.04
"""Longest time without samples that is bridged. The error of a cubic is 3e-5 rad for a motion of 0.5 rad at 1 Hz."""

MEMORY_SAMPLES = 200
"""Number of samples over which phase and period are averaged."""

SLOT_TRACKING = 0.5
"""Fraction of a stamp's deviation that corrects the phase while the period is learnt."""

LEARNING_ROUNDS = 3

MIN_SUPPORT = 2
"""Number of samples on each side that interpolate a gap; wider gaps use half the number of missing samples."""

RATE_TOLERANCE = 0.1
"""Largest excess of the rate over the limit without averaging, as a fraction of the limit."""


class SteadySample(NamedTuple):
    """Sample on the steady clock.

    Attributes:
        time: smoothed time, s.
        values: recorded sample, mean of several samples, or interpolated sample.
        starts: whether derivatives and filters must start again, after a long gap.
    """

    time: float
    values: NDArray
    starts: bool


class SteadySamples:
    """Converter of samples to a steady clock, which fills short gaps and averages samples that come too fast.

    Phase and period follow the stamps by a growing-memory line fit (g-h filter; Brookner 1998, "Tracking and Kalman
    filtering made easy"). A late stamp looks like a lost sample until the next one claims the same slot.

    Args:
        period: time between samples, s; None: learnt from the first samples, which are held back meanwhile.
        max_rate: largest rate of the returned samples, Hz, which are means of several neighbours; None: no limit.

    Attributes:
        period: time between the incoming samples, s; NaN until it is learnt.
        missing: number of samples that were lost by the clock.
    """

    def __init__(self, period: float | None = None, max_rate: float | None = None):
        self.missing = 0
        self._max_rate = max_rate
        self.period = math.nan if period is None else period
        self._waiting: list[tuple[float, NDArray]] = []
        self._misfits = 0
        self._start()

    @property
    def spacing(self) -> float:
        """Time between the returned samples, s."""
        return self._mean_size * self.period

    def add(self, time: float, values: NDArray) -> list[SteadySample]:
        """Add a sample with a later time than the one before; return the steady samples that it completes."""
        if not math.isnan(self.period):
            return self._place(time, values)
        self._waiting.append((time, values))
        if len(self._waiting) <= LEARNING_SAMPLES:
            return []
        waiting = self._waiting
        self._waiting = []
        self.period = _period_of(np.array([moment for moment, _ in waiting]))
        return [steady for sample in waiting for steady in self._place(*sample)]

    def _start(self) -> None:
        """Start again: the next sample sets the phase."""
        self._phase = math.nan
        self._count = LEARNING_SAMPLES
        self._starts = True
        self._before: deque[NDArray] = deque(maxlen=max(MIN_SUPPORT, self._max_bridged // 2))
        self._after: list[tuple[float, NDArray]] = []
        self._empty_slots = 0
        self._mean: list[tuple[float, NDArray]] = []

    @property
    def _max_bridged(self) -> int:
        """Largest number of consecutive samples that are interpolated."""
        return 1 if math.isnan(self.period) else max(1, round(MAX_BRIDGED_S / self.period))

    @property
    def _mean_size(self) -> int:
        """Number of neighbouring samples in a mean."""
        if self._max_rate is None:
            return 1
        return max(1, math.ceil((1.0 - RATE_TOLERANCE) / (self.period * self._max_rate)))

    def _place(self, time: float, values: NDArray) -> list[SteadySample]:
        """Assign a sample to its slot."""
        if math.isnan(self._phase):
            self._start()
            self._phase = time
            return self._hand_on(time, values)
        slots = (time - self._phase) / self.period
        while slots < 0.5 and self._empty_slots:
            # The sample after the gap was late and belongs to an earlier slot.
            self._empty_slots -= 1
            self.missing -= 1
            self._phase -= self.period
            self._after = [(moment - self.period, sample) for moment, sample in self._after]
            slots += 1.0
        steps = max(1, round(slots))
        self._misfits = self._misfits + 1 if steps > 1 or slots < 0.5 else 0
        if self._misfits >= LEARNING_SAMPLES:
            self.period = math.nan
            self._misfits = 0
            self._start()
            return self.add(time, values)
        found = []
        if steps > 1:
            found = self._fill()
            self.missing += steps - 1
            if steps - 1 > self._max_bridged:
                self._start()
                self._phase = time
                return [*found, *self._hand_on(time, values)]
            self._empty_slots = steps - 1
        self._follow(time, steps)
        if not self._empty_slots:
            return [*found, *(self._fill() if self._after else []), *self._hand_on(self._phase, values)]
        self._after.append((self._phase, values))
        if len(self._after) >= max(MIN_SUPPORT, self._empty_slots // 2):
            found += self._fill()
        return found

    def _follow(self, time: float, steps: int) -> None:
        """Correct phase and period by a stamp."""
        predicted = self._phase + steps * self.period
        deviation = float(np.clip(time - predicted, -self.period / 2, self.period / 2))
        self._count = min(self._count + 1, MEMORY_SAMPLES)
        weight = 2.0 / (self._count * (self._count + 1))
        self._phase = predicted + (2 * self._count - 1) * weight * deviation
        self.period += 3.0 * weight * deviation

    def _fill(self) -> list[SteadySample]:
        """Return the samples of a gap, by a cubic through its neighbours, and those after it."""
        after = self._after
        empty = self._empty_slots
        self._after = []
        self._empty_slots = 0
        if not after:
            return []
        found = []
        if empty:
            first, _ = after[0]
            before = list(self._before)[-max(MIN_SUPPORT, empty // 2) :]
            slots = np.concatenate([np.arange(-len(before), 0), empty + np.arange(len(after))])
            samples = np.array([*before, *(values for _, values in after)])
            for slot, values in enumerate(_interpolated(slots, samples, np.arange(empty))):
                found += self._hand_on(first - (empty - slot) * self.period, values)
        for moment, values in after:
            found += self._hand_on(moment, values)
        return found

    def _hand_on(self, time: float, values: NDArray) -> list[SteadySample]:
        """Return the mean that a sample completes."""
        self._before.append(values)
        self._mean.append((time, values))
        if len(self._mean) < self._mean_size:
            return []
        times, samples = zip(*self._mean, strict=True)
        self._mean = []
        starts = self._starts
        self._starts = False
        if len(times) == 1:
            return [SteadySample(time, values, starts)]
        return [SteadySample(float(np.mean(times)), np.mean(samples, axis=0), starts)]


def _period_of(times: NDArray) -> float:
    """Return the period (s) of stamps (N,) with jitter and gaps: the slope of a line through slots and stamps."""
    steps = np.diff(times)
    period = float(np.median(steps))
    for _ in range(LEARNING_ROUNDS):
        slots = [0]
        ahead = 0.0
        for step in steps:
            count = max(1, round((ahead + step) / period))
            ahead = (1.0 - SLOT_TRACKING) * (ahead + step - count * period)
            slots.append(slots[-1] + count)
        period = float(np.polyfit(slots, times - times[0], 1)[0])
    return period


def _interpolated(slots: NDArray, samples: NDArray, wanted: NDArray) -> NDArray:
    """Return the values at the `wanted` slots of the least-squares cubic through `samples` at `slots`."""
    center = slots.mean()
    scale = max(np.ptp(slots) / 2, 1.0)
    degree = min(3, len(slots) - 1)
    basis, target = (np.vander((x - center) / scale, degree + 1) for x in (slots, wanted))
    weights = target @ np.linalg.pinv(basis)
    return np.tensordot(weights, samples, axes=1)
