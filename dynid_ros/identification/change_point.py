"""Test for a change of the load within recordings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.covariance import clustered_covariance
from dynid_ros.estimation.normal_equations import WeightedProblem
from dynid_ros.estimation.rank import half_inverse
from dynid_ros.identification.equations import Equations
from dynid_ros.model.inertia import STATIC

MAX_P_VALUE = 1e-4
"""Largest p-value of a change at one of the tried times, for residuals that agree with the standard errors."""
MIN_MASS_CHANGE_FRACTION = 0.03
MIN_CENTER_SHIFT_M = 0.004
"""Smallest change of the mass, relative, and of the centre, m: less spoils nothing, and friction and drift feign it."""
MIN_MASS_KG = 0.05
"""Smallest mass of a load, kg."""
MIN_STRETCHES = 5
"""Stretches before and after a change that is looked for: less does not show the load, nor how far parts differ."""
MIN_STRETCH_S = 1.0
"""Shortest stretch, s: unmodelled friction is correlated for about as long."""


@dataclass(frozen=True, eq=False)
class LoadChange:
    """The likeliest moment of a change.

    Attributes:
        recording: which one, counted from 0.
        time: s, on its clock.
        before, after: (4,) mass and mass moments.
        probability: of one that is as clear by chance.
    """

    recording: int
    time: float
    before: NDArray
    after: NDArray
    probability: float

    @property
    def matters(self) -> bool:
        """Whether it would spoil an identification."""
        masses = np.array([self.before[0], self.after[0]])
        if abs(np.diff(masses)[0]) > max(MIN_MASS_CHANGE_FRACTION * masses.max(), MIN_MASS_KG):
            return True
        if masses.min() < MIN_MASS_KG:
            return False
        shift = self.after[1:] / masses[1] - self.before[1:] / masses[0]
        return bool(np.abs(shift).max() > MIN_CENTER_SHIFT_M)


def require_steady(equations: Equations, problem: WeightedProblem, noise: NDArray, source: str) -> None:
    """Refuse recordings whose load has other masses or mass moments later than before.

    Args:
        equations: equations of the load.
        problem: the compressed equations.
        noise: (c,) standard deviation of each channel.
        source: name of the recordings, for messages.

    Raises:
        IdentificationError: gives the time and size of the change.
    """
    change = likeliest_change(equations, problem, noise)
    if change is None or change.probability > MAX_P_VALUE or not change.matters:
        return
    before = _text(change.before)
    after = _text(change.after)
    where = f"recording {change.recording + 1}" if len(equations.sizes) > 1 else source
    raise IdentificationError(
        f"{where}: the load changed at about t = {change.time:.1f} s, from {before} to {after}: it slipped, or was "
        "picked up or dropped, or a sensor was zeroed. Fasten it, or identify the time before and the time after apart"
    )


def likeliest_change(equations: Equations, problem: WeightedProblem, noise: NDArray) -> LoadChange | None:
    """Return the change with the largest difference of the parameters before and after, in standard errors.

    The result is None if no time leaves enough samples on both sides for mass and mass moments. Residuals of a channel
    in a stretch of time may be correlated in any way. They are those of the fits before and after, or a change would
    hide itself in them. A fit follows the residuals of few stretches closely, which `clustered_covariance` allows for.
    That takes time, so it is used only to judge the time that was found without it.
    """
    grams, moments = stretch_grams(equations, problem, noise)
    best: tuple[float, int, _Part, _Part] | None = None
    for s in range(MIN_STRETCHES, len(grams) - MIN_STRETCHES + 1):
        first = _Part.of(grams[:s])
        second = _Part.of(grams[s:])
        if first is None or second is None:
            continue
        difference = second.load - first.load
        covariance = _at_least(first.clustered + second.clustered, first.white + second.white)
        square = float(difference @ np.linalg.solve(covariance, difference))
        if best is None or square > best[0]:
            best = square, s, first, second
    if best is None:
        return None
    _, s, first, second = best
    (before, some), (after, others) = first.judged(grams[:s]), second.judged(grams[s:])
    difference = second.load - first.load
    square = difference @ np.linalg.solve(_at_least(before + after, first.white + second.white), difference)
    # Hotelling's T² of covariances that the stretches have shown.
    seen = some + others
    rest = max(seen - STATIC + 1, 1.0)
    probability = float(fdtrc(STATIC, rest, square * rest / (seen * STATIC)))
    return LoadChange(*moments[s], first.load, second.load, probability)


def stretch_grams(
    equations: Equations, problem: WeightedProblem, noise: NDArray
) -> tuple[NDArray, list[tuple[int, float]]]:
    """Return weighted normal equations (s, c, k, k + 1) of stretches, with recording and start time (s) of each.

    Args:
        equations: equations whose spans the stretches divide.
        problem: the compressed equations.
        noise: (c,) standard deviation of each channel.
    """
    factors = problem.factors
    own = np.array([_normal(problem, noise, [2 * s, 2 * s + 1]) for s in range(len(factors.parts))])
    starts, moments = _stretches(equations, factors.stretches)
    return np.add.reduceat(own, starts), moments


@dataclass(frozen=True, eq=False)
class _Part:
    """Fit of some stretches of time.

    Attributes:
        solution: (k,) mass and mass moments first.
        white: (4, 4) covariance for white noise.
        clustered: (4, 4) covariance that allows for correlation within each stretch, a little too small.
    """

    solution: NDArray
    white: NDArray
    clustered: NDArray

    @property
    def load(self) -> NDArray:
        """(4,) mass and mass moments."""
        return self.solution[:STATIC]

    @classmethod
    def of(cls, grams: NDArray) -> _Part | None:
        """Return the fit of normal equations (s, c, k, k + 1), or None if mass and moments are undetermined."""
        grams = grams.sum(axis=1)
        normal = grams.sum(axis=0)
        half = half_inverse(normal[:, :-1])
        inverse = half @ half.T
        if not np.allclose(inverse[:STATIC] @ normal[:, :STATIC], np.eye(STATIC), atol=1e-6):
            return None
        solution = inverse @ normal[:, -1]
        scores = (grams[:, :, -1] - grams[:, :, :-1] @ solution) @ inverse[:, :STATIC]
        few = len(grams) / max(len(grams) - 1, 1)
        return cls(solution, inverse[:STATIC, :STATIC], few * scores.T @ scores)

    def judged(self, grams: NDArray) -> tuple[NDArray, float]:
        """Return the covariance (4, 4) of a fit to few stretches (s, c, k, k + 1), and its degrees of freedom."""
        pieces = [(j, gram[:, :-1], gram[:, -1]) for stretch in grams for j, gram in enumerate(stretch)]
        covariance, dof = clustered_covariance(pieces, np.ones(grams.shape[1]), self.solution)
        return covariance[:STATIC, :STATIC], float(dof[:STATIC].min())


def _at_least(covariance: NDArray, least: NDArray) -> NDArray:
    """Return a covariance that is not smaller than another one in any direction."""
    root = np.linalg.cholesky(least)
    values, axes = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, covariance).T))
    half = root @ axes * np.sqrt(np.maximum(values, 1.0))
    return half @ half.T


def _normal(problem: WeightedProblem, noise: NDArray, groups: list[int]) -> NDArray:
    """Return the weighted normal equations (c, k, k + 1) of some groups, of each channel."""
    parts = [problem.gram(j, groups) for j in range(problem.n_joints)]
    return np.array([np.column_stack(part[:2]) / sigma**2 for part, sigma in zip(parts, noise, strict=True)])


def _stretches(equations: Equations, counts: list[int]) -> tuple[list[int], list[tuple[int, float]]]:
    """Return the first of the stretches that are merged, and the recording and time (s) at which these start."""
    starts = []
    moments = []
    first = 0
    for recording, (count, (start, end)) in enumerate(zip(counts, equations.spans, strict=True)):
        together = min(count, max(1, round(MIN_STRETCH_S * count / max(end - start, MIN_STRETCH_S))))
        for k in range(0, count - together + 1, together):
            starts.append(first + k)
            moments.append((recording, start + (end - start) * k / count))
        first += count
    return starts, moments


def _text(load: NDArray) -> str:
    if load[0] <= 0:
        return f"{load[0]:.3g} kg"
    center = ", ".join(f"{1000 * value:.0f}" for value in load[1:] / load[0])
    return f"{load[0]:.3g} kg with its centre at ({center}) mm"
