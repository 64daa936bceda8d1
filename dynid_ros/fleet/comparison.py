"""Parameters of many arms and times: which arm is unlike the others, and which one changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dynid_ros.estimation.estimate import half_width


class Entry(NamedTuple):
    """A parameter that was identified; `group` has kind and kinematics: arms of one can be compared.

    The time is that of the run as a number, negative infinity where it is not known; value and error are in SI units.
    """

    group: tuple[str, str]
    arm: str
    run: str
    time: float
    parameter: str
    value: float
    std: float


FALSE_ALARM = 0.05
"""Probability that anything at all is reported of a fleet in which nothing is unlike, or changes."""
FEWEST = 20
"""Arms from which on one can be told to be unlike the others."""
NORMAL_MAD = float(half_width(1.0, level=0.5))
DOUBT = 2.0 * 0.787
"""Standard errors by which the median |z| may be too small by chance; one is 0.787 / √n (normal distribution)."""


@dataclass(frozen=True)
class Compared:
    """A parameter of an arm's last run, and the median and spread of the fleet, without what standard errors explain.

    `z` is the distance from the median over spread and standard error, `threshold` the
    largest of one that is like the others.
    """

    entry: Entry
    median: float
    spread: float
    z: float
    threshold: float

    @property
    def unlike(self) -> bool:
        """Whether the arm is unlike the others."""
        return abs(self.z) > self.threshold


def compare(entries: Iterable[Entry]) -> list[Compared]:
    """The last runs of arms with each other, the most unlike first.

    The distance from the median is counted in units of the fleet's spread and of the arm's own standard error, so that
    an arm that was identified badly is not taken for a bad arm. The threshold allows for how many parameters are looked
    at, and for a spread that is larger than it seems: as large as so many arms with such errors leave it open.
    """
    last = {
        (*entry.group, entry.arm, entry.parameter): entry for entry in sorted(entries, key=lambda entry: entry.time)
    }
    sets: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in last.values():
        key = (*entry.group, entry.parameter)
        sets[key].append(entry)
    many = [each for each in sets.values() if len(each) >= FEWEST]
    alarm, found = FALSE_ALARM / (2.0 * max(sum(map(len, many)), 1)), []
    for each in many:
        value, std = np.array([e.value for e in each]), np.array([e.std for e in each])
        median = float(np.median(value))
        spread = _spread(value - median, std, NORMAL_MAD)
        largest = _spread(value - median, std, NORMAL_MAD - DOUBT / np.sqrt(len(each)))
        variance = spread**2 + std**2
        z = (value - median) / np.sqrt(variance + np.pi / 2.0 * np.mean(variance) / len(each))
        threshold = half_width(1.0, level=1.0 - 2.0 * alarm) * np.sqrt((largest**2 + std**2) / variance)
        found += [
            Compared(e, median, spread, float(own), float(least))
            for e, own, least in zip(each, z, threshold, strict=True)
        ]
    return sorted(found, key=lambda one: -abs(one.z))


def _spread(deviation: NDArray, std: NDArray, expected: float) -> float:
    """Of the arms themselves: with it, the median |z| is as expected; zero if errors explain more."""

    def excess(spread: float) -> float:
        return float(np.median(np.abs(deviation) / np.hypot(spread, std))) - expected

    return 0.0 if excess(0.0) <= 0.0 else float(brentq(excess, 0.0, np.abs(deviation).max() / expected))


# Arms that change.


@dataclass(frozen=True)
class Drift:
    """How a parameter of an arm changes: rate and its 95 % interval, a day, or per unit of the runs' numbers.

    `entry` is of the last of its runs; `sure`: the rate differs from zero, though so many are looked at.
    """

    entry: Entry
    runs: int
    rate: float
    interval: list[float]
    sure: bool


def drifts(entries: Iterable[Entry]) -> list[Drift]:
    """Rates of all parameters of arms with two runs or more at known times, by weighted least squares.

    Where three runs or more scatter more about the line than their standard errors say, the interval is as wide as
    their scatter (Birge's ratio), with Student's quantile.
    """
    series: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        if np.isfinite(entry.time):
            key = (*entry.group, entry.arm, entry.parameter)
            series[key].append(entry)
    several = [each for each in series.values() if len({entry.time for entry in each}) > 1]
    return [_drift(sorted(each, key=lambda entry: entry.time), len(several)) for each in several]


def _drift(each: Sequence[Entry], count: int) -> Drift:
    time, value, std = (np.array([getattr(e, name) for e in each]) for name in ("time", "value", "std"))
    weight = std**-2.0
    since = time - np.average(time, weights=weight)
    information = np.sum(weight * since**2)
    rate = float(np.sum(weight * since * value) / information)
    left = value - np.average(value, weights=weight) - rate * since
    freedom = len(each) - 2
    ratio = np.sum(weight * left**2) / freedom if freedom else 0.0
    error = float(np.sqrt(max(ratio, 1.0) / information))

    def quantile(alarm: float) -> float:
        return float(half_width(1.0, freedom if ratio > 1.0 else np.inf, 1.0 - alarm))

    half = quantile(0.05) * error
    return Drift(
        each[-1], len(each), rate, [rate - half, rate + half], abs(rate) > quantile(FALSE_ALARM / count) * error
    )
