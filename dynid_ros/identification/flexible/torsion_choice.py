"""Choice of the terms of torsion by prediction of held-out parts of the recording.

Parts of time, slow and fast motion, both directions and both halves of the joint's range are held out in turn, because
other motions will differ in all of these. All sets of terms that predict as well as the best, within the standard error
of the difference, are averaged (Hoeting et al. 1999 with equal weights). The difference between their compliances is
the part that the recording leaves undetermined.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from dynid_ros.estimation.jackknife import jackknife, jackknife_variance, time_blocks
from dynid_ros.identification.flexible.spring_fit import Stiffness
from dynid_ros.identification.flexible.torsion_terms import ALWAYS, DRIVE, Term

MIN_SPEED_FRACTION = 0.05
"""Smallest speed at which a direction or a fast motion counts, in parts of the highest."""
MIN_PART_SAMPLES = 20
"""Smallest number of samples of a part that is judged."""
MIN_MEAN_SQUARE = 1e-30
MAX_OPTIONAL_TERMS = 4
"""Largest number of optional terms: more of them fit the parts of one recording and predict badly."""


@dataclass(frozen=True, eq=False)
class TorsionRows:
    """Samples of a joint from all runs.

    Attributes:
        columns: Columns (N, k) of all terms.
        torsion: Torsion (N,), low-pass filtered, rad or m.
        runs: Run (N,) of each sample.
        position: Positions (N,).
        velocity: Velocities (N,).
    """

    columns: NDArray
    torsion: NDArray
    runs: NDArray
    position: NDArray
    velocity: NDArray

    @cached_property
    def blocks(self) -> NDArray:
        """Block of time (N,) of each sample."""
        return time_blocks(self.runs)

    def gram(self, samples: NDArray) -> NDArray:
        """Return the products (k + 1, k + 1) of columns and torsion over a mask (N,), without each run's means."""
        table = np.column_stack([self.columns, self.torsion])
        parts = (table[samples & (self.runs == run)] for run in np.unique(self.runs[samples]))
        centred = np.vstack([part - part.mean(axis=0) for part in parts])
        return centred.T @ centred

    def parts(self) -> Iterator[NDArray]:
        """Yield masks (N,) of the samples to hold out and predict."""
        order = np.arange(len(self.runs)) / len(self.runs)
        for count in (2, 3):
            yield from (np.floor(order * count) == part for part in range(count))
        if (several := np.unique(self.runs)).size > 1:
            yield from (self.runs == run for run in several)
        speed = np.abs(self.velocity)
        moving = speed > MIN_SPEED_FRACTION * speed.max()
        middle = (self.position.min() + self.position.max()) / 2
        for side in (speed > np.median(speed[moving]), self.position > middle, self.velocity > 0):
            yield from (side, ~side)


@dataclass(frozen=True, eq=False)
class TermSet:
    """Set of terms and its prediction error.

    Attributes:
        terms: Names of the terms.
        held_out_rms: RMS error of the torsion in held-out parts, their means removed, rad or m.
        coefficients: Coefficients (k,) of all columns; zero for the columns of absent terms.
        leave_outs: Coefficients (B, k) without each block of time.
    """

    terms: tuple[str, ...]
    held_out_rms: float
    coefficients: NDArray
    leave_outs: NDArray


class TermChoice:
    """Sets of terms for one joint.

    Args:
        rows: Samples of the joint.
        terms: All available terms in the order of their columns.
    """

    def __init__(self, rows: TorsionRows, terms: Sequence[Term]):
        self.rows = rows
        self.names = [term.name for term in terms]
        self._owner = np.repeat(self.names, [len(term.labels) for term in terms])
        self._gram = rows.gram(np.ones(len(rows.runs), dtype=bool))
        # Samples of a block are correlated: together they weigh as one against what is expected.
        self._noise = _noise(self._gram, len(rows.runs))
        noise = self._noise * len(rows.runs) / len(np.unique(rows.blocks))
        expected = np.repeat([term.size for term in terms], [len(term.labels) for term in terms])
        squares = np.diag(self._gram)
        whole = np.sqrt(squares[-1] / np.where(squares[:-1] > 0, squares[:-1], np.inf))
        self._expectation = noise / expected**2
        self._caution = noise / np.maximum(np.minimum(expected, whole), MIN_MEAN_SQUARE) ** 2

    def best(self) -> list[TermSet]:
        """Return all sets that predict as well as the best, best first.

        No part of the torsion is expected to exceed the whole, which keeps large parts from cancelling each other.
        """
        optional = [name for name in self.names if name not in ALWAYS]
        sets = [(*ALWAYS, *s) for size in range(MAX_OPTIONAL_TERMS + 1) for s in combinations(optional, size)]
        parts = [p for p in self.rows.parts() if p.sum() >= MIN_PART_SAMPLES and (~p).sum() >= MIN_PART_SAMPLES]
        grams = [(self.rows.gram(~part), self.rows.gram(part) / part.sum()) for part in parts]
        inside = [np.isin(self._owner, s) for s in sets]
        losses = np.array([[_error(test, _solve(train, s, self._caution)) for train, test in grams] for s in inside])
        order = np.argsort(losses.mean(axis=1))
        worse = losses - losses[order[0]]
        margin = np.std(worse, axis=1, ddof=1) / np.sqrt(worse.shape[1])
        equal = [i for i in order if worse[i].mean() <= margin[i]]
        return [self._fit(sets[i], float(np.sqrt(losses[i].mean())), self._caution) for i in equal]

    def completed(self, sets: Sequence[TermSet]) -> list[TermSet]:
        """Return the sets with all terms of a drive: without its rotor, for instance, compliance would be biased."""
        names = {frozenset((*s.terms, *DRIVE)): s for s in reversed(sets)}
        return [self._fit(tuple(sorted(name)), s.held_out_rms, self._expectation) for name, s in names.items()]

    def column_rms(self) -> NDArray:
        """Return the RMS (k,) of the columns, without each run's means."""
        return np.sqrt(np.diag(self._gram)[:-1] / len(self.rows.runs))

    def own_share(self, terms: Sequence[str], column: int, error: float) -> float:
        """Return the part of a column's size that the other columns of a set cannot reproduce, 0 to 1.

        Args:
            terms: Terms of the set.
            column: Number of the column.
            error: Error of the torsion per unit of the column in addition to noise. The larger it is, the more the
                expected sizes of the other terms count.
        """
        used = np.isin(self._owner, terms)
        used[column] = False
        others = np.append(used, False)
        size = self._gram[column, column]
        penalty = self._expectation[used] * (1 + error**2 * size / (self._noise * len(self.rows.runs)))
        square = self._gram[np.ix_(others, others)] + np.diag(penalty)
        cross = self._gram[others, column]
        left = size - cross @ np.linalg.lstsq(square, cross, rcond=1e-12)[0]
        return float(np.sqrt(max(left, 0.0) / size)) if size > 0 else 0.0

    def _fit(self, names: tuple[str, ...], held_out_rms: float, penalty: NDArray) -> TermSet:
        """Return one set fitted to all samples, and without each block of time."""
        inside = np.isin(self._owner, names)
        found = jackknife(lambda kept: _solve(self.rows.gram(kept), inside, penalty), self.rows.blocks)
        return TermSet(names, held_out_rms, _solve(self._gram, inside, penalty), found.estimates)


def _error(gram: NDArray, coefficients: NDArray) -> float:
    """Return the sum of squared residuals of coefficients."""
    x = np.append(-coefficients, 1.0)
    return max(float(x @ gram @ x), 0.0)


def _solve(gram: NDArray, inside: NDArray, penalty: NDArray) -> NDArray:
    """Return the least-squares coefficients (k,) with the columns of a mask `inside` (k,)."""
    x = np.zeros(len(inside))
    used = np.flatnonzero(inside)
    normal = gram[np.ix_(used, used)] + np.diag(penalty[used])
    scale = np.sqrt(np.where(np.diag(normal) > 0, np.diag(normal), 1.0))
    x[used] = np.linalg.lstsq(normal / np.outer(scale, scale), gram[used, -1] / scale, rcond=1e-12)[0] / scale
    return x


def _noise(gram: NDArray, count: int) -> float:
    """Return the mean square of the residual of all terms together, rad²."""
    size = len(gram) - 1
    return max(_error(gram, _solve(gram, np.ones(size, dtype=bool), np.zeros(size))) / count, MIN_MEAN_SQUARE)


def average_coefficients(sets: Sequence[TermSet]) -> tuple[NDArray, NDArray, int]:
    """Return the mean coefficients (k,) of sets of terms, their standard errors, and the degrees of freedom.

    The variance is the sum of that over blocks of time and that over the sets.
    """
    coefficients = np.array([s.coefficients for s in sets])
    variances = np.array([jackknife_variance(s.leave_outs - s.leave_outs.mean(axis=0)) for s in sets])
    errors = np.sqrt(variances.mean(axis=0) + coefficients.var(axis=0))
    return coefficients.mean(axis=0), errors, len(sets[0].leave_outs) - 1


# Stiffness of a joint from its torsion, with an interval that allows for what the model lacks.


def torsion_stiffness(
    choice: TermChoice, sets: Sequence[TermSet], column: int, torque_error: float, unit: str
) -> Stiffness:
    """Return the stiffness by sets of terms that predict equally well, each completed to a whole drive.

    The variance is the sum of three: over blocks of time, over the sets, and by the error of the torque. Only the part
    of the torque that acceleration, velocity, friction and eccentricity cannot reproduce determines the compliance.
    Where this part is a twentieth, an error of the torque of the same size may account for all of it.

    Args:
        choice: Terms of the joint.
        sets: Sets that predict equally well.
        column: Column of the torque.
        torque_error: Relative error of the motor's torque.
        unit: Unit of the stiffness.
    """
    whole = choice.completed(sets)
    compliances = np.array([s.coefficients[column] for s in whole])
    blocks = np.array([s.leave_outs[:, column] for s in whole])
    dof = blocks.shape[1] - 1
    by_torque = torque_error * np.abs(compliances)
    shares = np.array([choice.own_share(s.terms, column, e) for s, e in zip(whole, by_torque, strict=True)])
    variances = dof * np.var(blocks, axis=1) + (by_torque / np.maximum(shares, 1e-6)) ** 2
    error = float(np.sqrt(variances.mean() + compliances.var()))
    return Stiffness.from_error(float(compliances.mean()), error, dof, unit)


CONTRADICTION_PROBABILITY = 0.01
"""Probability of the scatter between recordings of one joint below which they contradict each other."""


def combine_recordings(together: Stiffness, alone: Mapping[str, Stiffness]) -> Stiffness:
    """Return the stiffness from all recordings together, or the mean over them where it is undetermined.

    A recording with little information must not undo another one. Where recordings contradict each other, the stiffness
    is undetermined: the errors are not those of the intervals.

    Args:
        together: Stiffness from one fit to all recordings.
        alone: Stiffness by name of the recording.
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
    if dof and chi2.sf(scatter, dof) < CONTRADICTION_PROBABILITY:
        said = "; ".join(f"{name}: {one}" for name, one in known.items())
        return replace(together, reason=f"{together.reason}; the recordings contradict each other: {said}")
    wider = half * max(1.0, math.sqrt(scatter / dof)) if dof else half
    return Stiffness.from_interval(mean, (mean - wider, mean + wider), together.unit)
