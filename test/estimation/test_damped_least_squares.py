"""Damped least squares: a curved valley, bounds, and steps that cannot be evaluated."""

import numpy as np
import pytest

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.damped_least_squares import minimize

SIGMA = 1e-4
TOLERANCE = 0.005


def search(start, lower=(-np.inf, -np.inf), farthest=np.inf, constant=0.0):
    """Rosenbrock's valley, whose least is at (1, 1), with a residual that no parameter explains."""

    def residual(x):
        return np.array([10.0 * (x[1] - x[0] ** 2) / SIGMA, (1.0 - x[0]) / SIGMA, constant])

    def evaluate(x):
        if np.abs(x).max() > farthest:
            raise IdentificationError("too far")
        return residual(x), 0.5 * float(residual(x) @ residual(x))

    def normal_equations(x, state):
        columns = np.array([[-20.0 * x[0], 10.0], [-1.0, 0.0], [0.0, 0.0]]) / SIGMA
        return columns.T @ columns, -columns.T @ state

    start = np.array(start, dtype=float)
    state, cost = evaluate(start)
    return minimize(
        start,
        state,
        cost,
        lower=np.array(lower),
        tolerance=TOLERANCE,
        evaluate=evaluate,
        normal_equations=normal_equations,
    )


@pytest.mark.parametrize("farthest", [np.inf, 1.5])
def test_a_curved_valley_is_followed_to_its_end(farthest):
    np.testing.assert_allclose(search([-1.2, 1.0], farthest=farthest).values, [1.0, 1.0], atol=3 * SIGMA)


def test_residuals_that_nothing_explains_do_not_end_a_search():
    """A constant cost of 1e9 hides all gains that count in parts of the cost."""
    found = search([-1.2, 1.0], constant=np.sqrt(2e9))
    np.testing.assert_allclose(found.values, [1.0, 1.0], atol=3 * SIGMA)


def test_a_step_over_a_wall_is_shortened_until_it_gains():
    """Full steps from 0 towards 1 are refused until their damping exceeds ten, though the search begins with 1e-3."""

    def evaluate(x):
        return x, 0.5 * 100.0 * (x[0] - 1.0) ** 2 if x[0] < 0.05 else np.inf

    found = minimize(
        np.zeros(1),
        np.zeros(1),
        50.0,
        lower=np.array([-np.inf]),
        tolerance=TOLERANCE,
        evaluate=evaluate,
        normal_equations=lambda x, _: (np.array([[100.0]]), 100.0 * (1.0 - x)),
    )
    assert 0.045 < found.values[0] < 0.05
    assert found.gain == pytest.approx(50.0 - 50.0 * (1.0 - found.values[0]) ** 2)


def test_a_parameter_stays_at_its_bound_while_others_move():
    found = search([2.0, 4.0], lower=[1.5, -np.inf])
    np.testing.assert_allclose(found.values, [1.5, 2.25], atol=3 * SIGMA)


def test_no_step_is_taken_from_the_minimum():
    assert search([1.0, 1.0]).iterations == 0
