"""Damped least squares (Levenberg 1944, Marquardt 1963) with lower bounds, for costs that need not be smooth.

An example is the cost of simulated links with dry friction, which is uneven because the links stick and slip.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid_ros.progress import advance

State = TypeVar("State")

MAX_ITERATIONS = 30
MAX_SMALL_GAINS = 2
"""Successive decreases of the cost below the tolerance that end a search: where the cost is not smooth, predicted
decreases are too large."""
FIRST_DAMPING = 1e-3
"""Damping of the first trial step, relative to the diagonal of the information matrix."""
DAMPING_FACTOR = 10.0
"""Factor by which damping falls after a step, and rises after the first refused one; every further one is ten times as
large, so that few trial steps lead from a full step to a short one along the gradient."""
MIN_DAMPING = 1e-8


@dataclass(frozen=True)
class Minimum(Generic[State]):
    """Result of a search.

    Attributes:
        values: Parameters (p,) with the smallest cost found.
        state: State of the evaluation at these parameters.
        iterations: Number of steps taken.
        gain: Decrease of the cost.
    """

    values: NDArray
    state: State
    iterations: int
    gain: float


class Trial(NamedTuple):
    """Parameters (p,) whose cost a search needs next, and the finished part of the search, 0 to 1."""

    values: NDArray
    progress: float


Search = Generator[Trial, tuple[State, float], Minimum[State]]
"""Search that yields trials, receives the state and the cost of each, and returns its minimum."""


def minimize(
    searches: Sequence[Search[State]], evaluate: Callable[[Sequence[NDArray]], Sequence[tuple[State, float]]]
) -> list[Minimum[State]]:
    """Return the minima of independent searches whose trials are evaluated together.

    Args:
        searches: See `search`.
        evaluate: Returns the state and the cost of parameters (p,) for each search, in order; a search that has ended
            repeats its minimum, whose outcome is ignored. A cost that is not finite rejects the step.
    """
    minima: dict[int, Minimum[State]] = {}
    trials = [Trial(np.empty(0), 0.0)] * len(searches)
    outcomes: Sequence[tuple[State, float] | None] = [None] * len(searches)
    while True:
        for k, (steps, outcome) in enumerate(zip(searches, outcomes, strict=True)):
            if k in minima:
                continue
            try:
                trials[k] = next(steps) if outcome is None else steps.send(outcome)
            except StopIteration as end:
                minima[k] = end.value
                trials[k] = Trial(end.value.values, 1.0)
        if len(minima) == len(searches):
            return [minima[k] for k in range(len(searches))]
        advance(min(trial.progress for trial in trials))
        outcomes = evaluate([trial.values for trial in trials])


def search(
    start: NDArray,
    state: State,
    cost: float,
    *,
    lower: NDArray,
    tolerance: float,
    normal_equations: Callable[[NDArray, State], tuple[NDArray, NDArray]],
    accept: Callable[[], None] = lambda: None,
) -> Search[State]:
    """Search the minimum of a cost: a negative log-likelihood, as half the sum of squared whitened residuals is one.

    The search ends when the predicted decrease is small, no trial step that predicts more reduces the cost, gains stay
    small, or after `MAX_ITERATIONS` steps.

    Args:
        start: Parameters (p,).
        state: State at the start.
        cost: Cost at the start.
        lower: Lower bounds (p,) of the parameters.
        tolerance: Predicted decrease of the cost below which no step is tried. With a decrease of x, the minimum is the
            root of 2 x standard errors away.
        normal_equations: Returns the information matrix (p, p) and the negative gradient (p,) of the cost at parameters
            and state.
        accept: Called after each step that is taken.

    Returns:
        The parameters with the smallest cost found, their state, and the number of steps.
    """
    values = start
    first_cost = cost
    damping = FIRST_DAMPING
    largest_promise = np.nan
    small_gains = 0
    for iteration in range(MAX_ITERATIONS):
        information, gradient = normal_equations(values, state)
        scale = np.sqrt(np.diagonal(information))
        scale[scale == 0] = 1.0
        scaled = information / np.outer(scale, scale)
        at_bound = values <= lower
        # Decrease of the cost that the quadratic model predicts for a step with almost no damping.
        promise = 0.5 * gradient @ _step(scaled, scale, gradient, MIN_DAMPING, at_bound)
        if promise < tolerance or small_gains == MAX_SMALL_GAINS:
            return Minimum(values, state, iteration, first_cost - cost)
        largest_promise = np.fmax(largest_promise, promise)
        # The predicted decrease falls by about the same factor in each step, so its logarithm measures the progress
        # from the largest one (0) to the tolerance (1).
        log_range = np.log(largest_promise / tolerance)
        progress = float(np.log(largest_promise / promise) / log_range) if log_range > 0.0 else 0.0
        growth = DAMPING_FACTOR
        while True:
            step = _step(scaled, scale, gradient, damping, at_bound)
            # A damped step d predicts a decrease between gᵀd / 2 and gᵀd.
            if gradient @ step < tolerance:
                return Minimum(values, state, iteration, first_cost - cost)
            trial = np.maximum(values + step, lower)
            trial_state, trial_cost = yield Trial(trial, progress)
            if trial_cost < cost:
                break
            damping *= growth
            growth *= DAMPING_FACTOR
        small_gains = small_gains + 1 if cost - trial_cost < tolerance else 0
        values = trial
        state = trial_state
        cost = trial_cost
        damping = max(damping / DAMPING_FACTOR, MIN_DAMPING)
        accept()
    return Minimum(values, state, MAX_ITERATIONS, first_cost - cost)


def _step(scaled: NDArray, scale: NDArray, gradient: NDArray, damping: float, at_bound: NDArray) -> NDArray:
    """Return the damped step (p,) for an information matrix that is scaled to a unit diagonal.

    A parameter that would step below its lower bound is held there, and the step of the other parameters is solved
    again without it.
    """
    matrix = scaled + damping * np.eye(len(scale))
    free = np.ones(len(scale), dtype=bool)
    while True:
        step = np.zeros(len(scale))
        step[free] = np.linalg.solve(matrix[np.ix_(free, free)], (gradient / scale)[free]) / scale[free]
        held = free & at_bound & (step < 0.0)
        if not held.any():
            return step
        free &= ~held
