"""Choice of the low-pass that a driver applied to its torques, by the prediction of held-out samples.

A filter is believed if a model whose whole torque passes it predicts held-out samples better than every model without
a driver's filter. These are the plain model, the model whose torque is only delayed, and the model in which friction
alone passes a filter. The last one stands for friction that builds up slowly, which resembles a low-pass. A driver
filters all joints alike, so the gain must remain without the joint that gains most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.cross_validation import FoldGrams
from dynid_ros.estimation.selection import ForwardSelection
from dynid_ros.signals.driver_filter import MAX_DELAY_S, DriverFilter
from dynid_ros.signals.spectra import analog_poles

MIN_FILTER_GAIN_PER_JOINT = 0.1
"""Smallest mean gain of the joints, in the logarithm of the squared error. Without the joint that gains most, halves of
a KUKA LWR4+ recording reach 0.09 without a filter; simulated filters that cut the motion gain 0.67 and more."""
FILTER_KINDS = tuple(DriverFilter(1.0, order, 0.0, zero_phase) for zero_phase in (False, True) for order in range(1, 5))
"""Kinds of filters that are tried, each at separate cutoff frequencies."""
COARSE_CUTOFF_RATIOS = (0.2, 0.5, 1.2)
"""Cutoff frequencies that are tried first, as ratios to the bandwidth of the motion."""
MAX_CUTOFF_RATIO = 1.5
"""Largest ratio of a cutoff frequency to the bandwidth of the motion: a higher one hardly changes the torques."""
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
        grams: normal equations of the folds, any of whose models have these losses.
        bandwidth: bandwidth of the motion, Hz.
        start: filter that is tried too.
    """
    search = _FilterSearch(losses_of, grams, MAX_CUTOFF_RATIO * bandwidth)
    cutoffs = [float(f"{ratio * bandwidth:.3g}") for ratio in COARSE_CUTOFF_RATIOS]
    coarse = [start, *(replace(kind, cutoff=cutoff) for kind in FILTER_KINDS for cutoff in cutoffs)]
    if not search.is_promising(coarse):
        return None
    driver = search.best_delay(search.best_cutoff(coarse))
    assert driver.cutoff is not None
    smoothed = [replace(driver, cutoff=ratio * driver.cutoff) for ratio in FRICTION_CUTOFF_RATIOS]
    others = [
        Passage(),
        *(Passage(DriverFilter(delay=delay)) for delay in DELAYS_S),
        *(Passage(smooth, of_friction_alone=True) for smooth in smoothed),
    ]
    alternative = search.best(others)
    judged = _joints_to_judge(search.losses(Passage()), search.losses(Passage(driver)))
    selection = ForwardSelection(grams, search.losses, alternative)
    gains, taken = selection.try_models([Passage(driver)], partial(_required_gain, judged), lambda _: judged)
    if taken is None:
        return None
    return FilterChoice(driver, float(gains[0][0]) / len(judged[0]))


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

    def __init__(self, losses_of: LossesOf, grams: FoldGrams, max_cutoff: float):
        self._losses_of = losses_of
        self._grams = grams
        self._max_cutoff = max_cutoff
        self._losses: dict[Passage, NDArray] = {}

    def losses(self, passage: Passage) -> NDArray:
        """Return the losses (F, n) of a hypothesis that was tried."""
        return self._losses[passage]

    def best(self, passages: Sequence[Passage]) -> Passage:
        """Try hypotheses and return the best."""
        new = [passage for passage in dict.fromkeys(passages) if passage not in self._losses]
        self._losses.update(zip(new, self._losses_of(new), strict=True))
        return min(passages, key=lambda passage: self._grams.mean(self._losses[passage]))

    def is_promising(self, drivers: Sequence[DriverFilter]) -> bool:
        """Return whether the best of several filters gains half of what is required, also over friction alone."""
        driver = self._best_driver(drivers)
        other = self.best([Passage(), Passage(driver, of_friction_alone=True)])
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
        every_joint = [list(range(self.losses(Passage(driver)).shape[1]))]
        selection = ForwardSelection(self._grams, self.losses, Passage(driver))
        selection.try_models([Passage(delayed)], partial(_required_gain, every_joint), lambda _: every_joint)
        chosen = selection.model.driver
        assert chosen is not None
        return chosen

    def _near(self, driver: DriverFilter, factor: float) -> list[DriverFilter]:
        assert driver.cutoff is not None
        cutoffs = [float(f"{cutoff:.3g}") for cutoff in (driver.cutoff / factor, driver.cutoff * factor)]
        return [replace(driver, cutoff=cutoff) for cutoff in cutoffs if cutoff <= self._max_cutoff]

    def _best_driver(self, drivers: Sequence[DriverFilter]) -> DriverFilter:
        best = self.best([Passage(driver) for driver in drivers]).driver
        assert best is not None
        return best

    def _score(self, driver: DriverFilter) -> float:
        return self._grams.mean(self._losses[Passage(driver)])
