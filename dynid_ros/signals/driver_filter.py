"""What a driver did to the torque that it reports: a low-pass and a delay."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.signals.low_pass import SETTLED, LowPass
from dynid_ros.signals.spectra import analog_poles, butterworth_poles

HIGHEST = 0.45
"""Highest cut-off that is computed, in parts of the rate: a higher one does nothing that samples could show."""
AUTO, NONE = "auto", "none"
ZERO_PHASE = "zero_phase"
LONGEST = 1.0
"""Longest delay, s: more is a recording of two clocks."""


@dataclass(frozen=True)
class DriverFilter:
    """A Butterworth low-pass and a delay, of one driver for all joints.

    A torque that passed it is predicted by passing the model's torque through the same; positions are taken as the
    clock.

    Attributes:
        cutoff: frequency of gain 1/√2, Hz; None: there is a delay alone.
        order: of the low-pass.
        delay: by which torque comes later than the positions that it belongs to, beside what the low-pass does, s;
            negative if it comes earlier.
        zero_phase: the low-pass ran forward and backward over a recording, not on the driver's way.

    Raises:
        RecordingError: values that no filter has.
    """

    cutoff: float | None = None
    order: int = 1
    delay: float = 0.0
    zero_phase: bool = False

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("cutoff", self.cutoff is None or (np.isfinite(self.cutoff) and self.cutoff > 0), "a frequency above 0 Hz"),
            ("order", self.order == int(self.order) and 1 <= self.order <= 8, "1 to 8"),
            ("delay", abs(self.delay) <= LONGEST, f"at most {LONGEST:g} s either way"),
        ):
            if not good:
                raise RecordingError(f"torque_filter: {name} is {getattr(self, name)}; expected {expected}")

    def __str__(self) -> str:
        """As `driver_filter` reads it."""
        parts = [f"cutoff={self.cutoff:g},order={self.order}"] if self.cutoff else []
        parts += [f"delay={self.delay:g}"] * bool(self.delay) + [ZERO_PHASE] * self.zero_phase
        return ",".join(parts) or NONE

    def filter(self, values: NDArray, rate: float) -> NDArray:
        """(N, …) of the same shape, uniformly sampled at `rate` Hz; before the first sample all was as there."""
        if self.cutoff and len(values) > 1:
            values = self._low_passed(values, min(self.cutoff, HIGHEST * rate), rate)
        if self.delay and len(values) > 1:
            place = np.clip(np.arange(len(values)) - self.delay * rate, 0, len(values) - 1)
            before = np.minimum(place.astype(int), len(values) - 2)
            share = (place - before).reshape(-1, *[1] * (values.ndim - 1))
            values = (1 - share) * values[before] + share * values[before + 1]
        return values

    def settling(self, rate: float) -> int:
        """Samples after which a disturbance is gone but for 1 %."""
        count = abs(self.delay) * rate + 1
        if self.cutoff:
            slowest = np.abs(butterworth_poles(self.order, min(self.cutoff, HIGHEST * rate), rate)).max()
            count += np.log(SETTLED) / np.log(slowest)
        return int(np.ceil(count))

    def _low_passed(self, values: NDArray, cutoff: float, rate: float) -> NDArray:
        if self.zero_phase:
            return LowPass(cutoff, rate, self.order).filter(values)
        from scipy.signal import sosfilt  # noqa: PLC0415  # takes 0.4 s

        sections, steady = _butterworth(self.order, cutoff, rate)
        start = steady.reshape(len(sections), 2, *[1] * (values.ndim - 1))
        return sosfilt(sections, values, axis=0, zi=start * values[:1])[0]


@lru_cache(maxsize=256)
def _butterworth(order: int, cutoff: float, rate: float) -> tuple[NDArray, NDArray]:
    """(s, 6) second-order sections and (s, 2) their states at rest at 1; a search asks for the same again and again."""
    from scipy.signal import butter, sosfilt_zi  # noqa: PLC0415  # takes 0.4 s

    sections = butter(order, cutoff, fs=rate, output="sos")
    return sections, sosfilt_zi(sections)


class DriverPassage:
    """Passes samples through a driver's filter as they come, whatever their steps.

    The low-pass is the continuous Butterworth one by its partial fractions, exact for values that are constant in each
    step. One of zero phase was no driver's but a file's, and changes nothing here; so does a negative delay.

    Args:
        driver: what it did.
    """

    def __init__(self, driver: DriverFilter) -> None:
        poles = np.empty(0, dtype=complex)
        if driver.cutoff and not driver.zero_phase:
            poles = 2.0 * np.pi * driver.cutoff * analog_poles(driver.order)
        others = poles[:, None] - poles + np.eye(len(poles))
        # Of unit gain at rest: each state is its share of a constant.
        self._shares = -np.prod(-poles) / (poles * others.prod(axis=1))
        self._poles, self._delay = poles[:, None], max(driver.delay, 0.0)
        self.restart()

    def restart(self) -> None:
        """Forget what came: before the next sample all was as there."""
        self._states: NDArray | None = None
        self._now, self._line = 0.0, deque[tuple[float, NDArray]]()

    def next(self, values: ArrayLike, step: float) -> NDArray:
        """(n,) what the driver reports at the end of a step, s, in which the values (n,) were these on average."""
        found = np.asarray(values, dtype=float)
        if len(self._poles):
            shares = self._shares[:, None] * found
            if self._states is None:
                self._states = shares
            self._states = shares + (self._states - shares) * np.exp(self._poles * step)
            found = self._states.sum(axis=0).real
        if not self._delay:
            return found
        self._now += step
        self._line.append((self._now, found))
        wanted = self._now - self._delay
        while len(self._line) > 1 and self._line[1][0] <= wanted:
            self._line.popleft()
        (begin, first), (end, second) = self._line[0], self._line[min(1, len(self._line) - 1)]
        share = min(max((wanted - begin) / (end - begin), 0.0), 1.0) if end > begin else 0.0
        return (1.0 - share) * first + share * second


def driver_filter(text: str) -> DriverFilter | str | None:
    """Return a filter from attributes of `DriverFilter` with commas between; "auto" as it is, None for "none".

    As in "cutoff=5,order=2,delay=0.004" or "cutoff=5,zero_phase"; Hz and s.

    Raises:
        RecordingError: an unknown attribute, or a number that makes no sense.
    """
    if text in (AUTO, NONE):
        return AUTO if text == AUTO else None
    names = [each.name for each in fields(DriverFilter)]
    given: dict = {}
    for word in text.split(","):
        name, equals, value = word.strip().partition("=")
        if name not in names or bool(equals) == (name == ZERO_PHASE):
            raise RecordingError(
                f"torque_filter: '{word}' is no part of it; expected {AUTO}, {NONE}, or some of cutoff=HZ, order=N, "
                f"delay=S, {ZERO_PHASE}"
            )
        try:
            given[name] = True if name == ZERO_PHASE else (int if name == "order" else float)(value)
        except ValueError as error:
            raise RecordingError(f"torque_filter: {name} is '{value}'; expected a number") from error
    return DriverFilter(**given)
