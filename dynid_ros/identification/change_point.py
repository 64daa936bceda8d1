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
"""Smallest relative change of the mass, and smallest shift of the centre, that matter: friction and drift can imitate
smaller changes."""
MIN_MASS_KG = 0.05
"""Smallest mass that counts as a load, kg."""
MIN_STRETCHES = 5
"""Smallest number of stretches of time on each side of a change: fewer determine neither the load nor its scatter."""
MIN_STRETCH_S = 1.0
"""Shortest stretch, s: unmodelled friction is correlated for about as long."""


@dataclass(frozen=True, eq=False)
class LoadChange:
    """Most likely change of a load.

    Attributes:
        recording: index of the recording.
        time: time of the change on the recording's clock, s.
        before, after: (4,) mass and mass moments, kg and kg m.
        probability: p-value, the probability of a change at least as clear by chance.
    """

    recording: int
    time: float
    before: NDArray
    after: NDArray
    probability: float

    @property
    def matters(self) -> bool:
        """Whether the change is large enough to falsify an identification."""
        masses = np.array([self.before[0], self.after[0]])
        if abs(np.diff(masses)[0]) > max(MIN_MASS_CHANGE_FRACTION * masses.max(), MIN_MASS_KG):
            return True
        if masses.min() < MIN_MASS_KG:
            return False
        shift = self.after[1:] / masses[1] - self.before[1:] / masses[0]
        return bool(np.abs(shift).max() > MIN_CENTER_SHIFT_M)


def require_steady(equations: Equations, problem: WeightedProblem, noise: NDArray, source: str) -> None:
    """Refuse recordings in which mass or mass moments of the load change.

    Args:
        equations: equations of the load.
        problem: the compressed equations.
        noise: (c,) standard deviation of each channel.
        source: name of the recordings, for messages.

    Raises:
        IdentificationError: the load changed; the message gives time and size of the change.
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

    The result is None if no time leaves enough samples on both sides to determine mass and mass moments. Residuals of a
    channel within a stretch of time may have any correlation. They are those of separate fits before and after, as a
    change would enlarge the residuals of a common fit. A fit follows the residuals of few stretches closely, which
    `clustered_covariance` allows for. That takes time, so it is applied only to the best time of a search without it.
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
    before, dof_before = first.judged(grams[:s])
    after, dof_after = second.judged(grams[s:])
    difference = second.load - first.load
    square = difference @ np.linalg.solve(_at_least(before + after, first.white + second.white), difference)
    # Hotelling's T², as the covariances are estimated from the stretches.
    dof = dof_before + dof_after
    second_dof = max(dof - STATIC + 1, 1.0)
    probability = float(fdtrc(STATIC, second_dof, square * second_dof / (dof * STATIC)))
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
    # The slow and the fast samples of stretch s are groups 2 s and 2 s + 1.
    grams = np.array([_normal(problem, noise, [2 * s, 2 * s + 1]) for s in range(len(factors.parts))])
    starts, moments = _stretches(equations, factors.stretches)
    return np.add.reduceat(grams, starts), moments


@dataclass(frozen=True, eq=False)
class _Part:
    """Fit of consecutive stretches of time.

    Attributes:
        solution: (k,) parameters; mass and mass moments come first.
        white: (4, 4) covariance of mass and mass moments for white noise.
        clustered: (4, 4) covariance that allows for correlation within each stretch; slightly too small.
    """

    solution: NDArray
    white: NDArray
    clustered: NDArray

    @property
    def load(self) -> NDArray:
        """Mass and mass moments (4,), kg and kg m."""
        return self.solution[:STATIC]

    @classmethod
    def of(cls, grams: NDArray) -> _Part | None:
        """Return the fit of normal equations (s, c, k, k + 1); None if mass or mass moments are undetermined."""
        grams = grams.sum(axis=1)
        normal = grams.sum(axis=0)
        half = half_inverse(normal[:, :-1])
        inverse = half @ half.T
        if not np.allclose(inverse[:STATIC] @ normal[:, :STATIC], np.eye(STATIC), atol=1e-6):
            return None
        solution = inverse @ normal[:, -1]
        scores = (grams[:, :, -1] - grams[:, :, :-1] @ solution) @ inverse[:, :STATIC]
        small_sample_factor = len(grams) / max(len(grams) - 1, 1)
        return cls(solution, inverse[:STATIC, :STATIC], small_sample_factor * scores.T @ scores)

    def judged(self, grams: NDArray) -> tuple[NDArray, float]:
        """Return the covariance (4, 4) of a fit to few stretches (s, c, k, k + 1), and its degrees of freedom."""
        pieces = [(j, gram[:, :-1], gram[:, -1]) for stretch in grams for j, gram in enumerate(stretch)]
        covariance, dof = clustered_covariance(pieces, np.ones(grams.shape[1]), self.solution)
        return covariance[:STATIC, :STATIC], float(dof[:STATIC].min())


def _at_least(covariance: NDArray, least: NDArray) -> NDArray:
    """Return `covariance`, enlarged where needed so that no direction has a smaller variance than with `least`."""
    root = np.linalg.cholesky(least)
    values, axes = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, covariance).T))
    half = root @ axes * np.sqrt(np.maximum(values, 1.0))
    return half @ half.T


def _normal(problem: WeightedProblem, noise: NDArray, groups: list[int]) -> NDArray:
    """Return the weighted normal equations (c, k, k + 1) of some groups, of each channel."""
    parts = [problem.gram(j, groups) for j in range(problem.n_joints)]
    return np.array([np.column_stack(part[:2]) / sigma**2 for part, sigma in zip(parts, noise, strict=True)])


def _stretches(equations: Equations, counts: list[int]) -> tuple[list[int], list[tuple[int, float]]]:
    """Merge short stretches; return the index of the first of each merger, and its recording and start time (s)."""
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
