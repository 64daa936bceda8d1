"""Samples of a steady clock, from samples with jittered stamps some of which are lost.

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
"""Samples from which the period is learnt, and misfits in a row after which it is learnt anew."""

MAX_BRIDGED_S = 0.04
"""Longest time without samples that is bridged. A cubic misses 0.5 rad at 1 Hz by some 3e-5 rad there."""

MEMORY_SAMPLES = 200
"""Samples over which phase and period are averaged."""

SLOT_TRACKING = 0.5
"""Part of a stamp's deviation that moves the phase while the period is being learnt."""

LEARNING_ROUNDS = 3

MIN_SUPPORT = 2
"""Samples on either side that a gap is interpolated from; wider gaps take half as many as are missing."""

RATE_TOLERANCE = 0.1
"""Part by which the rate may exceed the largest one before samples are averaged."""


class SteadySample(NamedTuple):
    """A sample on the steady clock.

    Attributes:
        time: s, smoothed.
        values: the sample, a mean of several, or interpolated.
        starts: whether what came before is too long ago to go on from: derivatives and filters start anew.
    """

    time: float
    values: NDArray
    starts: bool


class SteadySamples:
    """Assigns samples to the slots of a steady clock, fills short gaps, and averages what comes too fast.

    Phase and period follow the stamps by a growing-memory line fit (g-h filter; Brookner 1998, "Tracking and Kalman
    filtering made easy"). A late stamp looks like a lost sample until the next one claims the same slot.

    Args:
        period: s between samples; None: learnt from the first samples, which wait for it.
        max_rate: Hz of the samples that are handed on, which are means of several neighbours; None: no limit.

    Attributes:
        period: s between the samples that come; NaN until it is learnt.
        missing: samples that the clock says there were, but did not come.
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
        """Time between the samples that are handed on, s."""
        return self._mean_size * self.period

    def add(self, time: float, values: NDArray) -> list[SteadySample]:
        """Take up a sample at a time later than the one before; return the steady samples that it completes."""
        if not math.isnan(self.period):
            return self._place(time, values)
        self._waiting.append((time, values))
        if len(self._waiting) <= LEARNING_SAMPLES:
            return []
        waiting, self._waiting = self._waiting, []
        self.period = _period_of(np.array([moment for moment, _ in waiting]))
        return [steady for sample in waiting for steady in self._place(*sample)]

    def _start(self) -> None:
        """Begin anew: the next sample sets the phase."""
        self._phase, self._count, self._starts = math.nan, LEARNING_SAMPLES, True
        self._before: deque[NDArray] = deque(maxlen=max(MIN_SUPPORT, self._max_bridged // 2))
        self._after: list[tuple[float, NDArray]] = []
        self._empty_slots = 0
        self._mean: list[tuple[float, NDArray]] = []

    @property
    def _max_bridged(self) -> int:
        """Largest number of samples in a row that is filled in."""
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
            # The sample after the gap came late: it belongs into a slot before.
            self._empty_slots -= 1
            self.missing -= 1
            self._phase -= self.period
            self._after = [(moment - self.period, sample) for moment, sample in self._after]
            slots += 1.0
        steps = max(1, round(slots))
        self._misfits = self._misfits + 1 if steps > 1 or slots < 0.5 else 0
        if self._misfits >= LEARNING_SAMPLES:
            self.period, self._misfits = math.nan, 0
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
        """Hand on the samples after a gap, and before them what a cubic through the neighbours says of the gap."""
        after, empty = self._after, self._empty_slots
        self._after, self._empty_slots = [], 0
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
        starts, self._starts = self._starts, False
        if len(times) == 1:
            return [SteadySample(time, values, starts)]
        return [SteadySample(float(np.mean(times)), np.mean(samples, axis=0), starts)]


def _period_of(times: NDArray) -> float:
    """Return the period (s) of stamps (N,) with jitter and gaps: the slope of a line through slots and stamps."""
    steps = np.diff(times)
    period = float(np.median(steps))
    for _ in range(LEARNING_ROUNDS):
        slots, ahead = [0], 0.0
        for step in steps:
            count = max(1, round((ahead + step) / period))
            ahead = (1.0 - SLOT_TRACKING) * (ahead + step - count * period)
            slots.append(slots[-1] + count)
        period = float(np.polyfit(slots, times - times[0], 1)[0])
    return period


def _interpolated(slots: NDArray, samples: NDArray, wanted: NDArray) -> NDArray:
    """Return the values at the `wanted` slots of the least-squares cubic through `samples` at `slots`."""
    center, scale = slots.mean(), max(np.ptp(slots) / 2, 1.0)
    degree = min(3, len(slots) - 1)
    basis, target = (np.vander((x - center) / scale, degree + 1) for x in (slots, wanted))
    weights = target @ np.linalg.pinv(basis)
    return np.tensordot(weights, samples, axes=1)
