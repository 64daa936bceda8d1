"""Splines against those of scipy."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline as ScipySpline

from dynid_ros.signals.cubic_spline import CubicSpline


@pytest.mark.parametrize("count", [2, 3, 4, 5, 300])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_values_and_derivatives_are_those_of_scipy(count, order):
    rng = np.random.default_rng(count)
    knots = np.cumsum(rng.uniform(0.1, 2.0, count))
    values = rng.normal(size=(count, 2, 3))
    places = np.concatenate([knots, rng.uniform(knots[0] - 0.5, knots[-1] + 0.5, 1000)])
    expected = ScipySpline(knots, values)(places, order)
    np.testing.assert_allclose(CubicSpline(knots, values)(places, order), expected, rtol=1e-9, atol=1e-9)


def test_shapes_are_those_of_places_and_samples():
    knots = np.arange(5)
    assert CubicSpline(knots, np.zeros(5))(2.5).shape == ()
    assert CubicSpline(knots, np.zeros((5, 2)))(np.zeros((3, 4))).shape == (3, 4, 2)
    np.testing.assert_allclose(CubicSpline(knots, knots**3.0)(np.array([-1.0, 2.5, 6.0])), [-1.0, 15.625, 216.0])
