"""Damped least squares: a curved valley, bounds, and steps that cannot be evaluated."""

import numpy as np
import pytest

from dynid_ros.estimation.least_squares import minimize, search

SIGMA = 1e-4
TOLERANCE = 0.005


def valley(start, lower=(-np.inf, -np.inf), farthest=np.inf, constant=0.0):
    """Return the search and the cost of Rosenbrock's valley.

    Its minimum is at (1, 1), with a residual that no parameter explains.
    """

    def residual(x):
        return np.array([10.0 * (x[1] - x[0] ** 2) / SIGMA, (1.0 - x[0]) / SIGMA, constant])

    def evaluate(x):
        return residual(x), 0.5 * float(residual(x) @ residual(x)) if np.abs(x).max() <= farthest else np.nan

    def normal_equations(x, state):
        columns = np.array([[-20.0 * x[0], 10.0], [-1.0, 0.0], [0.0, 0.0]]) / SIGMA
        return columns.T @ columns, -columns.T @ state

    start = np.array(start, dtype=float)
    state, cost = evaluate(start)
    lower = np.array(lower)
    return search(start, state, cost, lower=lower, tolerance=TOLERANCE, normal_equations=normal_equations), evaluate


def minimum(start, **options):
    steps, evaluate = valley(start, **options)
    (found,) = minimize([steps], lambda trials: [evaluate(trials[0])])
    return found


@pytest.mark.parametrize("farthest", [np.inf, 1.5])
def test_a_curved_valley_is_followed_to_its_end(farthest):
    np.testing.assert_allclose(minimum([-1.2, 1.0], farthest=farthest).values, [1.0, 1.0], atol=3 * SIGMA)


def test_residuals_that_nothing_explains_do_not_end_a_search():
    """A constant cost of 1e9 hides all gains that count in parts of the cost."""
    found = minimum([-1.2, 1.0], constant=np.sqrt(2e9))
    np.testing.assert_allclose(found.values, [1.0, 1.0], atol=3 * SIGMA)


def test_a_step_over_a_wall_is_shortened_until_it_gains():
    """Full steps from 0 towards 1 are refused until their damping exceeds ten, though the search begins with 1e-3."""

    def evaluate(x):
        return x, 0.5 * 100.0 * (x[0] - 1.0) ** 2 if x[0] < 0.05 else np.inf

    steps = search(
        np.zeros(1),
        np.zeros(1),
        50.0,
        lower=np.array([-np.inf]),
        tolerance=TOLERANCE,
        normal_equations=lambda x, _: (np.array([[100.0]]), 100.0 * (1.0 - x)),
    )
    (found,) = minimize([steps], lambda trials: [evaluate(trials[0])])
    assert 0.045 < found.values[0] < 0.05
    assert found.gain == pytest.approx(50.0 - 50.0 * (1.0 - found.values[0]) ** 2)


def test_a_parameter_stays_at_its_bound_while_others_move():
    found = minimum([2.0, 4.0], lower=[1.5, -np.inf])
    np.testing.assert_allclose(found.values, [1.5, 2.25], atol=3 * SIGMA)


def test_no_step_is_taken_from_the_minimum():
    assert minimum([1.0, 1.0]).iterations == 0


def test_searches_together_end_where_each_ends_alone():
    starts = [-1.2, 1.0], [1.0, 1.0], [2.0, 4.0]
    searches, costs = zip(*(valley(start) for start in starts), strict=True)
    evaluated = []

    def evaluate(trials):
        evaluated.append([trial is not None for trial in trials])
        return [None if trial is None else cost(trial) for cost, trial in zip(costs, trials, strict=True)]

    found = minimize(searches, evaluate)
    assert not any(second for _, second, _ in evaluated)
    for together, start in zip(found, starts, strict=True):
        alone = minimum(start)
        np.testing.assert_array_equal(together.values, alone.values)
        assert together.iterations == alone.iterations
