"""Low-pass and delay that a driver applies to the torque that it reports, and their choice by held-out samples.

A filter is believed if a model whose whole torque passes it predicts held-out samples better than every model without
a driver's filter. These are the plain model, the model whose torque is only delayed, and the model in which friction
alone passes a filter. The last one stands for friction that builds up slowly, which resembles a low-pass. A driver
filters all joints alike, so the gain must remain without the joint that gains most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.estimation.cross_validation import FoldGrams, ForwardSelection
from dynid_ros.signals.low_pass import MAX_DISTURBANCE, LowPass
from dynid_ros.signals.spectra import ROUNDING, analog_poles, apply_gain, butterworth_poles

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

    def causal_above(self, bandwidth: float) -> DriverFilter:
        """Return the filter, made causal if its cutoff frequency is above the bandwidth of the motion, Hz.

        Such a filter changes friction only. Friction itself may lag, but never acts before a reversal, as friction
        behind a zero-phase filter seems to do. The filtered torque is therefore compared with causal friction.
        """
        is_above = self.cutoff is not None and self.cutoff > bandwidth
        return replace(self, zero_phase=self.zero_phase and not is_above)

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
        poles = butterworth_poles(self.order, cutoff, rate)

        def gain(frequency: NDArray) -> NDArray:
            delayed = np.exp(-2j * np.pi * frequency)
            total = np.ones_like(delayed)
            for pole in poles:
                total *= (1 - pole) * (1 + delayed) / (2 - 2 * pole * delayed)
            return total

        slowest = np.abs(poles).max()
        return values[0] + apply_gain(values - values[0], gain, int(np.log(ROUNDING) / np.log(slowest)))


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


MIN_FILTER_GAIN_PER_JOINT = 0.1
"""Smallest mean gain of the joints, in the logarithm of the squared error. Without the joint that gains most, halves of
a KUKA LWR4+ recording reach 0.09 without a filter; simulated filters that cut the motion gain 0.67 and more."""
FILTER_KINDS = tuple(DriverFilter(1.0, order, 0.0, zero_phase) for zero_phase in (False, True) for order in range(1, 5))
"""Kinds of filters that are tried, each at separate cutoff frequencies."""
COARSE_CUTOFF_RATIOS = (0.2, 0.5, 1.2)
"""Cutoff frequencies that are tried first, as ratios to the bandwidth of the motion."""
SMOOTHING_CUTOFF_RATIOS = (2.5, 5.0)
"""Further cutoff frequencies of zero-phase filters: above the band of the motion they still smooth friction."""
MAX_CUTOFF_RATIO = 1.5
"""Largest ratio of the cutoff frequency of a causal filter to the bandwidth of the motion. With a higher one it changes
friction only, and the result resembles friction that builds up."""
MAX_SMOOTHING_CUTOFF_RATIO = 8.0
"""Largest ratio of the cutoff frequency of a zero-phase filter to the bandwidth of the motion."""
N_REFINED_KINDS = 3
"""Number of the best kinds whose cutoff is refined."""
CUTOFF_REFINEMENTS = (1.4, 1.2, 1.1, 1.05, 1.02)
"""Factors by which the best cutoff of each kind is multiplied or divided, one after the other."""
FRICTION_CUTOFF_RATIOS = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
"""Cutoff frequencies of friction alone, as ratios to that of the best filter."""
DELAYS_S = (0.004, 0.008, 0.015, 0.03, 0.06, 0.1)
"""Delays that are tried without a low-pass."""
TRADED_CUTOFF_RATIOS = (0.8, 1.0, 1.25, 1.6, 2.0)
"""Cutoff frequencies with a delay, as ratios to that of the best filter without a delay."""


class Passage(NamedTuple):
    """Hypothesis on the filter that torques passed.

    Attributes:
        driver: filter; None: no filter.
        of_friction_alone: whether friction alone passes the filter, and the torque of links and rotors does not.
    """

    driver: DriverFilter | None = None
    of_friction_alone: bool = False


LossesOf = Callable[[Sequence[Passage]], Sequence[NDArray]]
"""Function that returns the held-out losses (F, n) of each hypothesis, per fold and joint."""


@dataclass(frozen=True)
class FilterChoice:
    """Filter of the driver that held-out samples support.

    Attributes:
        driver: filter.
        gain: mean decrease of the logarithm of a joint's squared error on held-out samples, relative to the best model
            without the filter.
    """

    driver: DriverFilter
    gain: float

    def __str__(self) -> str:
        """Return the filter and its gain in prediction."""
        return f"{self.driver} (squared error on held-out samples {-np.expm1(-self.gain):.0%} lower)"


def choose_driver_filter(
    losses_of: LossesOf, grams: FoldGrams, bandwidth: float, start: DriverFilter
) -> FilterChoice | None:
    """Return the filter through which held-out samples are predicted better than by any model without it, or None.

    Args:
        losses_of: losses of hypotheses.
        grams: normal equations of the folds; every choice of their columns has losses of the same folds.
        bandwidth: bandwidth of the motion, Hz.
        start: filter that is tried too.
    """
    search = _FilterSearch(losses_of, grams, bandwidth)
    coarse = [start, *filters_at(FILTER_KINDS, bandwidth, COARSE_CUTOFF_RATIOS, SMOOTHING_CUTOFF_RATIOS)]
    if not search.is_promising(coarse):
        return None
    driver = search.best_delay(search.best_cutoff(coarse))
    assert driver.cutoff is not None
    rival = driver.causal_above(bandwidth)
    smoothed = [replace(rival, cutoff=ratio * driver.cutoff) for ratio in FRICTION_CUTOFF_RATIOS]
    others = [
        Passage(),
        *(Passage(DriverFilter(delay=delay)) for delay in DELAYS_S),
        *(Passage(smooth, of_friction_alone=True) for smooth in smoothed),
    ]
    alternative = search.best(others)
    judged = _joints_to_judge(*search.losses([Passage(), Passage(driver)]))
    selection = ForwardSelection(grams, search.losses, alternative)
    gains, taken = selection.try_models([Passage(driver)], partial(_required_gain, judged), lambda _: judged)
    if taken is None:
        return None
    return FilterChoice(driver, float(gains[0][0]) / len(judged[0]))


def filters_at(
    kinds: Sequence[DriverFilter], bandwidth: float, ratios: Sequence[float], smoothing_ratios: Sequence[float]
) -> list[DriverFilter]:
    """Return filters of several kinds at each of several cutoff frequencies.

    Args:
        kinds: orders and phases.
        bandwidth: bandwidth of the motion, Hz.
        ratios: ratios of the cutoff frequencies to the bandwidth.
        smoothing_ratios: further ratios, of zero-phase filters only.
    """
    return [
        replace(kind, cutoff=float(f"{ratio * bandwidth:.3g}"))
        for kind in kinds
        for ratio in (*ratios, *(smoothing_ratios if kind.zero_phase else ()))
    ]


def _joints_to_judge(without: NDArray, through: NDArray) -> list[list[int]]:
    """Return all joints and, where there are several, all but the one that gains most."""
    order = np.argsort(np.log(without.mean(axis=0) / through.mean(axis=0)))
    return [order.tolist(), *([order[:-1].tolist()] if len(order) > 1 else [])]


def _required_gain(judged: Sequence[Sequence[int]], _: Passage, error: float) -> float:
    """Return the gain that the smaller group of joints must reach, given its standard error."""
    return max(MIN_FILTER_GAIN_PER_JOINT * len(judged[-1]), error)


def _low_pass_delay(order: int, cutoff: float) -> float:
    """Return the delay of slow signals by a causal Butterworth low-pass, s."""
    return float(np.sum(-1.0 / analog_poles(order)).real) / (2 * np.pi * cutoff)


def _with_total_delay(driver: DriverFilter, order: int, cutoff: float, ratio: float = 1.0) -> DriverFilter:
    """Return a filter of another order and cutoff that delays slow signals as much as a filter, times a ratio."""
    assert driver.cutoff is not None
    total = ratio * (driver.delay + _low_pass_delay(driver.order, driver.cutoff))
    rounded = float(f"{cutoff:.3g}")
    delay = float(f"{np.clip(total - _low_pass_delay(order, rounded), 0.0, MAX_DELAY_S):.2g}")
    return replace(driver, order=order, cutoff=rounded, delay=delay)


class _FilterSearch:
    """Search for the filter with the smallest held-out loss."""

    def __init__(self, losses_of: LossesOf, grams: FoldGrams, bandwidth: float):
        self._losses_of = losses_of
        self._grams = grams
        self._bandwidth = bandwidth
        self._losses: dict[Passage, NDArray] = {}

    def losses(self, passages: Sequence[Passage]) -> list[NDArray]:
        """Return the losses (F, n) of each of several hypotheses that were tried."""
        return [self._losses[passage] for passage in passages]

    def best(self, passages: Sequence[Passage]) -> Passage:
        """Try hypotheses and return the best."""
        new = [passage for passage in dict.fromkeys(passages) if passage not in self._losses]
        self._losses.update(zip(new, self._losses_of(new), strict=True))
        return min(passages, key=lambda passage: self._grams.mean(self._losses[passage]))

    def is_promising(self, drivers: Sequence[DriverFilter]) -> bool:
        """Return whether the best of several filters gains half of what is required, also over friction alone."""
        driver = self._best_driver(drivers)
        other = self.best([Passage(), Passage(driver.causal_above(self._bandwidth), of_friction_alone=True)])
        gain = self._grams.mean(self._losses[other]) - self._score(driver)
        return gain > 0.5 * MIN_FILTER_GAIN_PER_JOINT

    def best_cutoff(self, drivers: Sequence[DriverFilter]) -> DriverFilter:
        """Try filters and return the best, after each of the best kinds was tried at nearby cutoff frequencies."""
        best_of_kind: dict[DriverFilter, DriverFilter] = {}
        self._best_driver(drivers)
        for driver in sorted(drivers, key=self._score):
            best_of_kind.setdefault(replace(driver, cutoff=1.0), driver)
        best = list(best_of_kind.values())[:N_REFINED_KINDS]
        for factor in CUTOFF_REFINEMENTS:
            trials = [[driver, *self._near(driver, factor)] for driver in best]
            self._best_driver([driver for near in trials for driver in near])
            best = [min(near, key=self._score) for near in trials]
        return min(best, key=self._score)

    def best_delay(self, driver: DriverFilter) -> DriverFilter:
        """Return a filter with an additional delay, if held-out samples support it; a file's filter has none."""
        if driver.zero_phase:
            return driver
        assert driver.cutoff is not None
        # Orders, cutoffs and delays with one delay of slow signals in all resemble each other.
        delayed = self._best_driver(
            [driver]
            + [
                _with_total_delay(driver, order, ratio * driver.cutoff, ratio_of_total)
                for order in range(1, 5)
                for ratio in TRADED_CUTOFF_RATIOS
                for ratio_of_total in (1.0, 1.1)
            ]
        )
        for factor in CUTOFF_REFINEMENTS[1:]:
            cutoff = delayed.cutoff or driver.cutoff
            near = [
                *(_with_total_delay(delayed, delayed.order, cutoff * step) for step in (1 / factor, factor)),
                *(_with_total_delay(delayed, delayed.order, cutoff, step) for step in (1 / factor, factor)),
            ]
            delayed = self._best_driver([delayed, *near])
        every_joint = [list(range(self.losses([Passage(driver)])[0].shape[1]))]
        selection = ForwardSelection(self._grams, self.losses, Passage(driver))
        selection.try_models([Passage(delayed)], partial(_required_gain, every_joint), lambda _: every_joint)
        chosen = selection.model.driver
        assert chosen is not None
        return chosen

    def _near(self, driver: DriverFilter, factor: float) -> list[DriverFilter]:
        assert driver.cutoff is not None
        cutoffs = [float(f"{cutoff:.3g}") for cutoff in (driver.cutoff / factor, driver.cutoff * factor)]
        highest = (MAX_SMOOTHING_CUTOFF_RATIO if driver.zero_phase else MAX_CUTOFF_RATIO) * self._bandwidth
        return [replace(driver, cutoff=cutoff) for cutoff in cutoffs if cutoff <= highest]

    def _best_driver(self, drivers: Sequence[DriverFilter]) -> DriverFilter:
        best = self.best([Passage(driver) for driver in drivers]).driver
        assert best is not None
        return best

    def _score(self, driver: DriverFilter) -> float:
        return self._grams.mean(self._losses[Passage(driver)])
