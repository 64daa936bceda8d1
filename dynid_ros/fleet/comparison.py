"""Parameters of many arms and times: which arm is unlike the others, and which one changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from dynid_ros.estimation.estimate import half_width, normal_score


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
MOST_UNLIKE, AT_MOST = 0.25, 50
"""Largest share and number of arms that can be unlike the others in one parameter."""
SPREADS = (1e-3, 30.0, 200)
"""Smallest and largest spread that is thought of, in median deviations, and the least number of them."""


@dataclass(frozen=True)
class Compared:
    """A parameter of an arm's last run, and the median and spread of the fleet, without what standard errors explain.

    `z` is where a normal distribution is as improbable as this arm is, being one of the others; `threshold` the largest
    of one that is like them.
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

    An arm that was identified badly is not taken for a bad arm: its own standard error counts, and what few arms or
    badly known ones leave open of the spread. The threshold allows for how many parameters are looked at.
    """
    last = {
        (*entry.group, entry.arm, entry.parameter): entry for entry in sorted(entries, key=lambda entry: entry.time)
    }
    sets: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in last.values():
        key = (*entry.group, entry.parameter)
        sets[key].append(entry)
    many = [each for each in sets.values() if len(each) >= FEWEST]
    threshold = float(half_width(1.0, level=1.0 - FALSE_ALARM / max(sum(map(len, many)), 1)))
    found = []
    for each in many:
        value, std = np.array([e.value for e in each]), np.array([e.std for e in each])
        median = float(np.median(value))
        spread, z = _scores(value - median, std, threshold)
        found += [Compared(e, median, spread, float(own), threshold) for e, own in zip(each, z, strict=True)]
    return sorted(found, key=lambda one: -abs(one.z))


def _scores(deviation: NDArray, std: NDArray, threshold: float) -> tuple[float, NDArray]:
    """Spread of the arms themselves, and z (n,) of each as one more of the others.

    Those that are unlike say nothing of the others: the most extreme are left out one by one, and those up to the last
    one that is beyond the threshold stay out (Rosner 1983, "Percentage points for a generalized ESD procedure").
    """
    size = np.abs(deviation)
    smallest, largest, count = SPREADS
    count = max(count, int(10 * np.sqrt(len(size))))  # the more arms, the narrower the spreads that are possible
    spreads = (np.median(size) or size.mean() or 1.0) * np.geomspace(smallest, largest, count)
    variance = spreads**2 + std[:, None] ** 2
    right = deviation[:, None]
    terms = np.stack([1.0 / variance, right / variance, right**2 / variance, -np.log(variance)])
    like, extreme, unlike = np.ones(len(size), dtype=bool), [], 0
    for number in range(min(int(MOST_UNLIKE * len(size)), AT_MOST)):
        sums = terms[:, like].sum(axis=1)
        best = np.argmax(_log_likelihood(sums))
        own = int(np.argmax(like * (deviation - sums[1, best] / sums[0, best]) ** 2 / variance[:, best]))
        like[own] = False
        extreme.append(own)
        if abs(_score(terms[:, like].sum(axis=1), spreads, deviation[own], variance[own])) > threshold:
            unlike = number + 1
    like[extreme[unlike:]] = True
    total = terms[:, like].sum(axis=1)
    others = total[:, None] - terms * like[:, None]
    return float(spreads[np.argmax(_log_likelihood(total))]), _score(others, spreads, right, variance)


def _score(sums: NDArray, spreads: NDArray, deviation: NDArray, variance: NDArray) -> NDArray:
    """Probability as a normal z, the mean over all spreads by what the sums of the others' `terms` say of each.

    What they leave open is large before they are seen: flat in the variance, the grid even in the spread's logarithm.
    """
    weight = _log_likelihood(sums) + 2.0 * np.log(spreads)
    weight = weight - logsumexp(weight, axis=-1, keepdims=True)
    normal = (deviation - sums[1] / sums[0]) / np.sqrt(variance + 1.0 / sums[0])
    above, below = (logsumexp(weight + log_ndtr(sign * normal), axis=-1) for sign in (-1.0, 1.0))
    return normal_score(below, above)


def _log_likelihood(sums: NDArray) -> NDArray:
    """Of each spread, the fleet's mean integrated out."""
    weight, first, second, logarithm = sums
    return 0.5 * (logarithm - np.log(weight) - second + first**2 / weight)


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
