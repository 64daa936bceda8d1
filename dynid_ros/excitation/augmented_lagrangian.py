"""Minimisation under many inequalities, for problems with a cheap gradient."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

ITERATIONS = 30
"""Iterations of the quasi-Newton method between two updates of the multipliers."""
MEMORY = 20
FIRST_PENALTY = 10.0
PENALTY_GROWTH = 2.0
ENOUGH = 0.003
"""Excess above which the penalty grows."""


class Problem(Protocol):
    """A smooth objective and inequalities excess <= 0."""

    def evaluate(self, vector: NDArray, sharpness: float) -> tuple[float, NDArray]:
        """Objective, and excess of any shape."""

    def gradient(self, by_excess: NDArray) -> NDArray:
        """Gradient of the last objective plus sum(by_excess * excess)."""


@dataclass(frozen=True)
class Iterate:
    """Where the search is after a round.

    Attributes:
        vector: the variables.
        excess: largest.
    """

    vector: NDArray
    excess: float


class OverError(Exception):
    """The search is to end within a round."""


@dataclass(frozen=True)
class _Lagrangian:
    """Value and gradient of the augmented Lagrangian."""

    problem: Problem
    sharpness: float
    penalty: float
    multipliers: NDArray | float
    over: Callable[[], bool]

    def __call__(self, vector: NDArray) -> tuple[float, NDArray]:
        if self.over():
            raise OverError
        objective, excess = self.problem.evaluate(vector, self.sharpness)
        active = np.maximum(excess + self.multipliers / self.penalty, 0.0)
        value = objective + 0.5 * self.penalty * float(np.sum(active**2))
        return value, self.problem.gradient(self.penalty * active)


def rounds(
    problem: Problem, start: NDArray, sharpness: tuple[float, ...], over: Callable[[], bool] = lambda: False
) -> Iterator[Iterate]:
    """Search by augmented Lagrangian (Nocedal and Wright 2006, section 17.4) and L-BFGS.

    Args:
        problem: what to minimise.
        start: (d,) first vector; it need not be feasible.
        sharpness: of the objective, one for each round.
        over: asked before each evaluation whether to end the search.

    Yields:
        The iterate at the end of each round that was finished.
    """
    vector, penalty = start, FIRST_PENALTY
    multipliers: NDArray | float = 0.0
    options = {"maxiter": ITERATIONS, "maxcor": MEMORY}
    for sharp in sharpness:
        lagrangian = _Lagrangian(problem, sharp, penalty, multipliers, over)
        try:
            vector = minimize(lagrangian, vector, jac=True, method="L-BFGS-B", options=options).x
        except OverError:
            return
        _, excess = problem.evaluate(vector, sharp)
        yield Iterate(vector, float(excess.max()))
        multipliers = np.maximum(multipliers + penalty * excess, 0.0)
        if excess.max() > ENOUGH:
            penalty *= PENALTY_GROWTH
