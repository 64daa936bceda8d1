"""Banded derivatives beside polynomials, and beside the same differences by Savitzky and Golay."""

import numpy as np
import pytest

from dynid_ros.identification.flexible.link_response import Differences
from dynid_ros.signals.derivatives import central_differences


def test_polynomials_of_sixth_degree_are_exact_up_to_the_ends():
    time = 0.05 * np.arange(30)
    polynomial = np.polynomial.Polynomial([1.0, -2.0, 0.5, 3.0, -1.0, 0.4, 0.2])
    differences = Differences(len(time), 0.05)
    for order in (1, 2):
        np.testing.assert_allclose(differences.of(polynomial(time), order), polynomial.deriv(order)(time), atol=1e-9)


def test_of_sixth_order():
    errors = []
    for step in (0.04, 0.02):
        time = step * np.arange(round(2 / step))
        inner = slice(3, -3)
        error = Differences(len(time), step).of(np.sin(6 * time), 1) - 6 * np.cos(6 * time)
        errors.append(np.abs(error[inner]).max())
    assert errors[0] / errors[1] == pytest.approx(2**6, rel=0.1)


def test_the_same_as_of_the_motors_and_for_many_columns():
    values = np.random.default_rng(0).standard_normal((40, 2, 3))
    differences = Differences(40, 0.1)
    for order, expected in enumerate(central_differences(values, 0.1), start=1):
        np.testing.assert_allclose(differences.of(values, order), expected, atol=1e-9)


def test_weights_are_the_matrix_of_the_derivative():
    differences = Differences(12, 0.1)
    values = np.random.default_rng(1).standard_normal(12)
    for order in range(3):
        matrix = np.zeros((12, 12))
        for row, first in enumerate(differences.first):
            matrix[row, first : first + 7] = differences.weights[order, row]
        np.testing.assert_allclose(matrix @ values, differences.of(values, order), atol=1e-9)
    np.testing.assert_allclose(differences.of(values, 0), values, atol=1e-12)
