"""Damped least squares (Levenberg 1944, Marquardt 1963) with lower bounds, for costs that may be uneven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.progress import advance

State = TypeVar("State")

MAX_ITERATIONS = 30
MAX_REFUSALS = 5
"""Trial steps of one iteration."""
MIN_PROMISED_GAIN = 0.02
"""Gain of the logarithm of the likelihood that a step must promise to be taken."""
MIN_RELATIVE_GAIN = 1e-3
MAX_SMALL_GAINS = 2
"""A search ends after so many steps in succession that gain less than this part of the cost. An uneven cost, as of
links that stick, promises more than it holds."""
FIRST_DAMPING = 1e-3
DAMPING_FACTOR = 10.0
MIN_DAMPING = 1e-9


@dataclass(frozen=True)
class Minimum(Generic[State]):
    """End of a search.

    Attributes:
        values: Parameters (p,).
        state: Whatever the evaluation returned with their cost.
        iterations: Steps taken.
    """

    values: NDArray
    state: State
    iterations: int


def minimize(
    start: NDArray,
    state: State,
    cost: float,
    *,
    lower: NDArray,
    evaluate: Callable[[NDArray], tuple[State, float]],
    normal_equations: Callable[[NDArray, State], tuple[NDArray, NDArray]],
    accept: Callable[[], None] = lambda: None,
) -> Minimum[State]:
    """Search the least cost, half the sum of squared white residuals.

    Args:
        start: Parameters (p,).
        state: State at the start, as `evaluate` returns it.
        cost: Cost at the start.
        lower: Lower bounds (p,) of the parameters.
        evaluate: Returns state and cost at parameters; an `IdentificationError` refuses a step.
        normal_equations: Returns information (p, p) and gradient (p,) towards a smaller cost at parameters and state.
        accept: Called after each step that is taken.
    """
    values = start
    damping = FIRST_DAMPING
    first_promise = np.nan
    small_gains = 0
    for iteration in range(MAX_ITERATIONS):
        information, gradient = normal_equations(values, state)
        scale = np.sqrt(np.diagonal(information))
        scale[scale == 0] = 1.0
        scaled = information / np.outer(scale, scale)
        at_bound = values <= lower
        promise = 0.5 * gradient @ _step(scaled, scale, gradient, MIN_DAMPING, at_bound)
        if promise < MIN_PROMISED_GAIN:
            return Minimum(values, state, iteration)
        first_promise = np.fmax(first_promise, promise)
        # The promised gain falls by about the same factor in each step, down to the smallest that is taken.
        far = first_promise > MIN_PROMISED_GAIN
        advance(float(np.log(first_promise / promise) / np.log(first_promise / MIN_PROMISED_GAIN)) if far else 0.0)
        for _ in range(MAX_REFUSALS):
            trial = np.maximum(values + _step(scaled, scale, gradient, damping, at_bound), lower)
            try:
                trial_state, trial_cost = evaluate(trial)
            except IdentificationError:
                trial_cost = np.inf
            if trial_cost < cost:
                break
            damping *= DAMPING_FACTOR
        else:
            return Minimum(values, state, iteration)
        small_gains = small_gains + 1 if cost - trial_cost < MIN_RELATIVE_GAIN * cost else 0
        values = trial
        state = trial_state
        cost = trial_cost
        damping = max(damping / DAMPING_FACTOR, MIN_DAMPING)
        accept()
        if small_gains == MAX_SMALL_GAINS:
            return Minimum(values, state, iteration + 1)
    return Minimum(values, state, MAX_ITERATIONS)


def _step(scaled: NDArray, scale: NDArray, gradient: NDArray, damping: float, at_bound: NDArray) -> NDArray:
    """Return the damped step (p,) from the information scaled to ones on its diagonal.

    Parameters at their bounds that would fall below it stay there, and the others move as they do without them.
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
