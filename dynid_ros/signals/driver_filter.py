"""Low-pass and delay that a driver applies to the torque that it reports."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.signals.low_pass import MAX_DISTURBANCE, LowPass
from dynid_ros.signals.spectra import analog_poles, butterworth_poles

MAX_CUTOFF_OF_RATE = 0.45
"""Largest cutoff frequency that is computed, as a fraction of the sampling rate: samples do not show a higher one."""
AUTO, NONE = "auto", "none"
ZERO_PHASE = "zero_phase"
MAX_DELAY_S = 1.0
"""Longest delay: a longer one means a recording with two clocks."""


@dataclass(frozen=True)
class DriverFilter:
    """Butterworth low-pass and delay of one driver, equal for all joints.

    The filtered torque is predicted by passing the model's torque through the same filter. Positions are the clock.

    Attributes:
        cutoff: cutoff frequency with a gain of 1/√2, Hz; None: a delay only.
        order: order of the low-pass.
        delay: delay of the torque after its positions in addition to that of the low-pass, s; negative if torque comes
            earlier.
        zero_phase: whether the low-pass was run forward and backward over a recording, instead of by the driver.

    Raises:
        RecordingError: a value is outside its range.
    """

    cutoff: float | None = None
    order: int = 1
    delay: float = 0.0
    zero_phase: bool = False

    def __post_init__(self) -> None:
        for name, good, expected in (
            ("cutoff", self.cutoff is None or (np.isfinite(self.cutoff) and self.cutoff > 0), "a frequency above 0 Hz"),
            ("order", self.order == int(self.order) and 1 <= self.order <= 8, "1 to 8"),
            ("delay", abs(self.delay) <= MAX_DELAY_S, f"at most {MAX_DELAY_S:g} s either way"),
        ):
            if not good:
                raise RecordingError(f"torque_filter: {name} is {getattr(self, name)}; expected {expected}")

    def __str__(self) -> str:
        """Return the text that `driver_filter` reads."""
        parts = [f"cutoff={self.cutoff:g},order={self.order}"] if self.cutoff else []
        parts += [f"delay={self.delay:g}"] * bool(self.delay) + [ZERO_PHASE] * self.zero_phase
        return ",".join(parts) or NONE

    def filter(self, values: NDArray, rate: float) -> NDArray:
        """Filter values (N, …) at a sampling rate, Hz; before the first sample, they were constant."""
        if self.cutoff and len(values) > 1:
            values = self._low_passed(values, min(self.cutoff, MAX_CUTOFF_OF_RATE * rate), rate)
        if self.delay and len(values) > 1:
            place = np.clip(np.arange(len(values)) - self.delay * rate, 0, len(values) - 1)
            before = np.minimum(place.astype(int), len(values) - 2)
            share = (place - before).reshape(-1, *[1] * (values.ndim - 1))
            values = (1 - share) * values[before] + share * values[before + 1]
        return values

    def settling(self, rate: float) -> int:
        """Return the number of samples after which 1 % of a disturbance remains."""
        count = abs(self.delay) * rate + 1
        if self.cutoff:
            slowest = np.abs(butterworth_poles(self.order, min(self.cutoff, MAX_CUTOFF_OF_RATE * rate), rate)).max()
            count += np.log(MAX_DISTURBANCE) / np.log(slowest)
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
    """Return second-order sections (s, 6) and their states (s, 2) at rest at 1, cached for searches."""
    from scipy.signal import butter, sosfilt_zi  # noqa: PLC0415  # takes 0.4 s

    sections = butter(order, cutoff, fs=rate, output="sos")
    return sections, sosfilt_zi(sections)


class DriverPassage:
    """Filter of a driver for single samples, at any steps of time.

    The low-pass is the continuous Butterworth filter by its partial fractions, which is exact for values that are
    constant during each step. A zero-phase filter belongs to a file and is ignored here, and so is a negative delay.
    """

    def __init__(self, driver: DriverFilter) -> None:
        poles = np.empty(0, dtype=complex)
        if driver.cutoff and not driver.zero_phase:
            poles = 2.0 * np.pi * driver.cutoff * analog_poles(driver.order)
        others = poles[:, None] - poles + np.eye(len(poles))
        # With unit gain at rest, each state is a share of a constant value.
        self._shares = -np.prod(-poles) / (poles * others.prod(axis=1))
        self._poles = poles[:, None]
        self._delay = max(driver.delay, 0.0)
        self.restart()

    def restart(self) -> None:
        """Forget all samples: before the next one, values were constant."""
        self._states: NDArray | None = None
        self._now = 0.0
        self._line = deque[tuple[float, NDArray]]()

    def next(self, values: ArrayLike, step: float) -> NDArray:
        """Return the filtered values (n,) at the end of a step, s, given the mean values (n,) during the step."""
        output = np.asarray(values, dtype=float)
        if len(self._poles):
            shares = self._shares[:, None] * output
            if self._states is None:
                self._states = shares
            self._states = shares + (self._states - shares) * np.exp(self._poles * step)
            output = self._states.sum(axis=0).real
        if not self._delay:
            return output
        self._now += step
        self._line.append((self._now, output))
        wanted = self._now - self._delay
        while len(self._line) > 1 and self._line[1][0] <= wanted:
            self._line.popleft()
        (begin, first), (end, second) = self._line[0], self._line[min(1, len(self._line) - 1)]
        share = min(max((wanted - begin) / (end - begin), 0.0), 1.0) if end > begin else 0.0
        return (1.0 - share) * first + share * second


def driver_filter(text: str) -> DriverFilter | str | None:
    """Parse the attributes of a `DriverFilter`; return "auto" unchanged, and None for "none".

    Examples are "cutoff=5,order=2,delay=0.004" and "cutoff=5,zero_phase", in Hz and s.

    Raises:
        RecordingError: an attribute is unknown, or a value is not a number.
    """
    if text in (AUTO, NONE):
        return AUTO if text == AUTO else None
    names = [field.name for field in fields(DriverFilter)]
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
