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
"""Probability of any report for a fleet of equal arms that do not change."""
MIN_ARMS = 20
"""Smallest number of arms among which an outlier can be detected."""
MOST_UNLIKE = 0.25
AT_MOST = 50
"""Largest share and number of arms that can be unlike the others in one parameter."""
SPREAD_GRID = (1e-3, 30.0, 200)
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
    """Compare the last runs of all arms, and return the entries by how unusual they are, largest score first.

    A badly identified arm does not count as an outlier: its standard error enters the score, and so does the
    uncertainty
    of the spread among few or badly known arms. The threshold accounts for the number of parameters.
    """
    last = {
        (*entry.group, entry.arm, entry.parameter): entry for entry in sorted(entries, key=lambda entry: entry.time)
    }
    sets: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in last.values():
        key = (*entry.group, entry.parameter)
        sets[key].append(entry)
    many = [each for each in sets.values() if len(each) >= MIN_ARMS]
    threshold = float(half_width(1.0, level=1.0 - FALSE_ALARM / max(sum(map(len, many)), 1)))
    found = []
    for each in many:
        value = np.array([e.value for e in each])
        std = np.array([e.std for e in each])
        median = float(np.median(value))
        spread, z = _scores(value - median, std, threshold)
        found += [Compared(e, median, spread, float(own), threshold) for e, own in zip(each, z, strict=True)]
    return sorted(found, key=lambda one: -abs(one.z))


def _scores(deviation: NDArray, std: NDArray, threshold: float) -> tuple[float, NDArray]:
    """Return the spread among the arms, and the score z (n,) of each arm as a further sample of the others.

    Outliers must not widen the spread: the most extreme arms are removed one by one, and all up to the last one
    beyond the threshold stay removed (Rosner 1983, "Percentage points for a generalized ESD procedure").
    """
    size = np.abs(deviation)
    smallest, largest, count = SPREAD_GRID
    count = max(count, int(10 * np.sqrt(len(size))))  # the more arms, the narrower the spreads that are possible
    spreads = (np.median(size) or size.mean() or 1.0) * np.geomspace(smallest, largest, count)
    variance = spreads**2 + std[:, None] ** 2
    right = deviation[:, None]
    terms = np.stack([1.0 / variance, right / variance, right**2 / variance, -np.log(variance)])
    like = np.ones(len(size), dtype=bool)
    extreme = []
    unlike = 0
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
    """Return the probability as a normal z, averaged over all spreads by their likelihood from the others' sums.

    The prior of the spread is flat in the variance; the grid is even in the spread's logarithm.
    """
    weight = _log_likelihood(sums) + 2.0 * np.log(spreads)
    weight = weight - logsumexp(weight, axis=-1, keepdims=True)
    normal = (deviation - sums[1] / sums[0]) / np.sqrt(variance + 1.0 / sums[0])
    above, below = (logsumexp(weight + log_ndtr(sign * normal), axis=-1) for sign in (-1.0, 1.0))
    return normal_score(below, above)


def _log_likelihood(sums: NDArray) -> NDArray:
    """Return the log likelihood of each spread, with the fleet's mean integrated out."""
    weight, first, second, logarithm = sums
    return 0.5 * (logarithm - np.log(weight) - second + first**2 / weight)


# Arms that change.


@dataclass(frozen=True)
class Drift:
    """Rate of change of an arm's parameter with its 95 % interval, per day or per unit of the runs' numbers.

    `entry` belongs to the last run; `sure` means that the rate differs from zero, corrected for the number of
    parameters.
    """

    entry: Entry
    runs: int
    rate: float
    interval: list[float]
    sure: bool


def drifts(entries: Iterable[Entry]) -> list[Drift]:
    """Return the rates of all parameters of arms with two or more runs at known times, by weighted least squares.

    If three or more runs scatter more about the line than their standard errors predict, the interval follows
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
