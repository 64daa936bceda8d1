"""Test damped least squares in a curved valley, at bounds, and with steps that cannot be evaluated."""

import numpy as np
import pytest

from dynid_ros.estimation.least_squares import minimize, search

SIGMA = 1e-4
TOLERANCE = 0.005


def create_valley(start, lower=(-np.inf, -np.inf), farthest=np.inf, constant=0.0):
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


def find_minimum(start, **options):
    """Return the result of the search in Rosenbrock's valley."""
    steps, evaluate = create_valley(start, **options)
    (result,) = minimize([steps], lambda trials: [evaluate(trials[0])])
    return result


@pytest.mark.parametrize("farthest", [np.inf, 1.5])
def test_follows_a_curved_valley_to_its_minimum(farthest):
    np.testing.assert_allclose(find_minimum([-1.2, 1.0], farthest=farthest).values, [1.0, 1.0], atol=3 * SIGMA)


def test_constant_residuals_do_not_end_the_search():
    """A constant cost of 1e9 hides all gains that are compared with the total cost."""
    result = find_minimum([-1.2, 1.0], constant=np.sqrt(2e9))
    np.testing.assert_allclose(result.values, [1.0, 1.0], atol=3 * SIGMA)


def test_shortens_steps_that_cannot_be_evaluated():
    """Full steps from 0 towards 1 are refused until their damping increases from 1e-3 to ten."""

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
    (result,) = minimize([steps], lambda trials: [evaluate(trials[0])])
    assert 0.045 < result.values[0] < 0.05
    assert result.gain == pytest.approx(50.0 - 50.0 * (1.0 - result.values[0]) ** 2)


def test_parameters_at_a_bound_do_not_stop_the_others():
    result = find_minimum([2.0, 4.0], lower=[1.5, -np.inf])
    np.testing.assert_allclose(result.values, [1.5, 2.25], atol=3 * SIGMA)


def test_takes_no_step_from_the_minimum():
    assert find_minimum([1.0, 1.0]).iterations == 0


def test_joint_searches_equal_separate_searches():
    starts = [-1.2, 1.0], [1.0, 1.0], [2.0, 4.0]
    searches, costs = zip(*(create_valley(start) for start in starts), strict=True)
    evaluated = []

    def evaluate(trials):
        evaluated.append([trial is not None for trial in trials])
        return [None if trial is None else cost(trial) for cost, trial in zip(costs, trials, strict=True)]

    results = minimize(searches, evaluate)
    assert not any(second for _, second, _ in evaluated)
    for joint, start in zip(results, starts, strict=True):
        separate = find_minimum(start)
        np.testing.assert_array_equal(joint.values, separate.values)
        assert joint.iterations == separate.iterations
