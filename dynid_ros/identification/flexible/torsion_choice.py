"""Which terms torsion is made of: those that predict parts of the recording that were left out.

Parts of time, slow and fast motion, both directions and both halves of the joint's way are left out in turn, as other
motions will differ in all of these. No single set of terms is the right one: all that predict as well as the best,
within the standard error of the difference, are averaged (Hoeting et al. 1999 with equal weights), and what they say of
the compliance differs by what the recording leaves undetermined.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from dynid_ros.estimation.estimate import jackknife, jackknife_variance, time_blocks
from dynid_ros.identification.flexible.spring_fit import Stiffness
from dynid_ros.identification.flexible.torsion_terms import ALWAYS, DRIVE, Term

MOVING = 0.05
"""Speed from which on a direction or a fast motion counts, in parts of the highest."""
FEWEST = 20
"""Samples that a part needs to be judged."""
TINY = 1e-30
MOST_TERMS = 4
"""Optional terms at a time: more fit parts of one recording, and predict none."""


@dataclass(frozen=True, eq=False)
class TorsionRows:
    """Samples of a joint of all runs.

    Attributes:
        columns: (N, k) of all terms.
        torsion: (N,) rad, low-pass filtered.
        runs: (N,) run of each sample.
        position: (N,) rad.
        velocity: (N,) rad/s.
    """

    columns: NDArray
    torsion: NDArray
    runs: NDArray
    position: NDArray
    velocity: NDArray

    @cached_property
    def blocks(self) -> NDArray:
        """(N,) block of time of each sample."""
        return time_blocks(self.runs)

    def gram(self, samples: NDArray) -> NDArray:
        """(k + 1, k + 1) products of columns and torsion over samples (N,) bool, without each run's means."""
        table = np.column_stack([self.columns, self.torsion])
        parts = (table[samples & (self.runs == run)] for run in np.unique(self.runs[samples]))
        centred = np.vstack([part - part.mean(axis=0) for part in parts])
        return centred.T @ centred

    def parts(self) -> Iterator[NDArray]:
        """(N,) bool, samples to leave out and predict."""
        order = np.arange(len(self.runs)) / len(self.runs)
        for count in (2, 3):
            yield from (np.floor(order * count) == part for part in range(count))
        if (several := np.unique(self.runs)).size > 1:
            yield from (self.runs == run for run in several)
        speed = np.abs(self.velocity)
        moving = speed > MOVING * speed.max()
        middle = (self.position.min() + self.position.max()) / 2
        for side in (speed > np.median(speed[moving]), self.position > middle, self.velocity > 0):
            yield from (side, ~side)


@dataclass(frozen=True, eq=False)
class TermSet:
    """One set of terms and how it predicts.

    Attributes:
        terms: names.
        held_out_rms: of torsion in parts that were left out, their means removed, rad.
        coefficients: (k,) of all columns, zero of those that it lacks.
        leave_outs: (B, k) without each block of time.
    """

    terms: tuple[str, ...]
    held_out_rms: float
    coefficients: NDArray
    leave_outs: NDArray


class TermChoice:
    """Sets of terms for one joint.

    Args:
        rows: its samples.
        terms: all that may take part, in the order of the columns.
    """

    def __init__(self, rows: TorsionRows, terms: Sequence[Term]):
        self.rows, self.names = rows, [term.name for term in terms]
        self._owner = np.repeat(self.names, [len(term.labels) for term in terms])
        self._gram = rows.gram(np.ones(len(rows.runs), dtype=bool))
        # Samples of a block are correlated: together they weigh as one against what is expected.
        self._noise = _noise(self._gram, len(rows.runs))
        noise = self._noise * len(rows.runs) / len(np.unique(rows.blocks))
        expected = np.repeat([term.size for term in terms], [len(term.labels) for term in terms])
        squares = np.diag(self._gram)
        whole = np.sqrt(squares[-1] / np.where(squares[:-1] > 0, squares[:-1], np.inf))
        self._expectation = noise / expected**2
        self._caution = noise / np.maximum(np.minimum(expected, whole), TINY) ** 2

    def best(self) -> list[TermSet]:
        """All sets that predict as well as the best, best first.

        No part of the torsion is expected to be larger than all of it: that keeps great ones from cancelling out.
        """
        optional = [name for name in self.names if name not in ALWAYS]
        sets = [(*ALWAYS, *s) for size in range(MOST_TERMS + 1) for s in combinations(optional, size)]
        parts = [p for p in self.rows.parts() if p.sum() >= FEWEST and (~p).sum() >= FEWEST]
        grams = [(self.rows.gram(~part), self.rows.gram(part) / part.sum()) for part in parts]
        inside = [np.isin(self._owner, s) for s in sets]
        losses = np.array([[_error(test, _solve(train, s, self._caution)) for train, test in grams] for s in inside])
        order = np.argsort(losses.mean(axis=1))
        worse = losses - losses[order[0]]
        margin = np.std(worse, axis=1, ddof=1) / np.sqrt(worse.shape[1])
        equal = [i for i in order if worse[i].mean() <= margin[i]]
        return [self._fit(sets[i], float(np.sqrt(losses[i].mean())), self._caution) for i in equal]

    def completed(self, sets: Sequence[TermSet]) -> list[TermSet]:
        """Sets with all that every drive has besides: without its rotor, say, compliance would be biased."""
        names = {frozenset((*s.terms, *DRIVE)): s for s in reversed(sets)}
        return [self._fit(tuple(sorted(name)), s.held_out_rms, self._expectation) for name, s in names.items()]

    def column_rms(self) -> NDArray:
        """(k,) of the columns, without each run's means."""
        return np.sqrt(np.diag(self._gram)[:-1] / len(self.rows.runs))

    def own_share(self, terms: Sequence[str], column: int, error: float) -> float:
        """Part of a column's size that the others of a set cannot make up for, 0 to 1.

        Args:
            terms: of the set.
            column: of the term.
            error: of the torsion per unit of the column, besides its noise: the larger, the more weighs what size is
                expected of the others.
        """
        used = np.isin(self._owner, terms)
        used[column] = False
        others, size = np.append(used, False), self._gram[column, column]
        penalty = self._expectation[used] * (1 + error**2 * size / (self._noise * len(self.rows.runs)))
        square, cross = self._gram[np.ix_(others, others)] + np.diag(penalty), self._gram[others, column]
        left = size - cross @ np.linalg.lstsq(square, cross, rcond=1e-12)[0]
        return float(np.sqrt(max(left, 0.0) / size)) if size > 0 else 0.0

    def _fit(self, names: tuple[str, ...], held_out_rms: float, penalty: NDArray) -> TermSet:
        """One set fitted to everything, and without each block of time."""
        inside = np.isin(self._owner, names)
        found = jackknife(lambda kept: _solve(self.rows.gram(kept), inside, penalty), self.rows.blocks)
        return TermSet(names, held_out_rms, _solve(self._gram, inside, penalty), found.estimates)


def _error(gram: NDArray, coefficients: NDArray) -> float:
    """Sum of squares that coefficients leave."""
    x = np.append(-coefficients, 1.0)
    return max(float(x @ gram @ x), 0.0)


def _solve(gram: NDArray, inside: NDArray, penalty: NDArray) -> NDArray:
    """Coefficients (k,) of least squares with the columns `inside` (k,) bool."""
    x = np.zeros(len(inside))
    used = np.flatnonzero(inside)
    normal = gram[np.ix_(used, used)] + np.diag(penalty[used])
    scale = np.sqrt(np.where(np.diag(normal) > 0, np.diag(normal), 1.0))
    x[used] = np.linalg.lstsq(normal / np.outer(scale, scale), gram[used, -1] / scale, rcond=1e-12)[0] / scale
    return x


def _noise(gram: NDArray, count: int) -> float:
    """Mean square of what no term explains, rad^2."""
    size = len(gram) - 1
    return max(_error(gram, _solve(gram, np.ones(size, dtype=bool), np.zeros(size))) / count, TINY)


def mean_of(sets: Sequence[TermSet]) -> tuple[NDArray, NDArray, int]:
    """Coefficients (k,) that sets of terms give on average, their standard errors, and the degrees of freedom of these.

    Two errors add up: what single blocks of time change, and how much the sets differ.
    """
    said = np.array([s.coefficients for s in sets])
    own = np.array([jackknife_variance(s.leave_outs - s.leave_outs.mean(axis=0)) for s in sets])
    return said.mean(axis=0), np.sqrt(own.mean(axis=0) + said.var(axis=0)), len(sets[0].leave_outs) - 1


# Stiffness of a joint from its torsion, with an interval that allows for what the model lacks.


def torsion_stiffness(
    choice: TermChoice, sets: Sequence[TermSet], column: int, torque_error: float, unit: str
) -> Stiffness:
    """What sets of terms that predict equally well say together, each completed to a whole drive.

    Three errors add up: what single blocks of time change, how much the sets differ, and an error of the torque. Of the
    torque only that part determines the compliance which acceleration, velocity, friction and eccentricity cannot make
    up for. Where it is a twentieth, an error of the torque of that size may be all that is seen.

    Args:
        choice: of the joint's terms.
        sets: that predict equally well.
        column: of the torque.
        torque_error: of the motor's torque, relative.
        unit: of the stiffness.
    """
    whole = choice.completed(sets)
    said = np.array([s.coefficients[column] for s in whole])
    blocks = np.array([s.leave_outs[:, column] for s in whole])
    dof = blocks.shape[1] - 1
    wrong = torque_error * np.abs(said)
    shares = np.array([choice.own_share(s.terms, column, e) for s, e in zip(whole, wrong, strict=True)])
    own = dof * np.var(blocks, axis=1) + (wrong / np.maximum(shares, 1e-6)) ** 2
    return Stiffness.from_error(float(said.mean()), float(np.sqrt(own.mean() + said.var())), dof, unit)


CHANCE = 0.01
"""Chance with which recordings of one joint differ as much, below which they contradict each other."""


def of_all(together: Stiffness, alone: Mapping[str, Stiffness]) -> Stiffness:
    """The stiffness from all recordings; where their common fit leaves it open, the mean of what each of them says.

    A recording that says little must not take away what another one knows. Where they contradict each other, none of
    them is believed: their errors are not those of the intervals.

    Args:
        together: from one fit to all recordings.
        alone: by name, from each of them.
    """
    known = {name: one for name, one in alone.items() if math.isfinite(sum(map(abs, one.compliance_interval)))}
    if together.determined or not any(one.determined for one in known.values()):
        return together
    values = np.array([one.compliance for one in known.values()])
    halves = np.array([np.ptp(one.compliance_interval) / 2 for one in known.values()])
    weights = 1 / halves**2
    mean = float(weights @ values / weights.sum())
    half = float(1 / np.sqrt(weights.sum()))
    # An interval of 95 % reaches two standard errors, or a little more.
    scatter = float(np.sum((2 * (values - mean) / halves) ** 2))
    dof = len(known) - 1
    if dof and chi2.sf(scatter, dof) < CHANCE:
        said = "; ".join(f"{name}: {one}" for name, one in known.items())
        return replace(together, reason=f"{together.reason}; the recordings contradict each other: {said}")
    wider = half * max(1.0, math.sqrt(scatter / dof)) if dof else half
    return Stiffness.from_interval(mean, (mean - wider, mean + wider), together.unit)
