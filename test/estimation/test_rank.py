"""Test rank, decompositions and factors of small matrices."""

import numpy as np
import pytest

from dynid_ros.estimation.rank import (
    Identifiability,
    decompose,
    gram_factor,
    half_inverse,
    null_space,
    without_rounding,
)


def test_decomposition_does_not_depend_on_units():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 5))
    for units in (np.ones(5), np.array([1e-6, 1.0, 1e3, 1.0, 1e6])):
        decomposition = decompose(matrix * units, 1e-9)
        assert len(decomposition.right) == 3
        product = (decomposition.left * decomposition.singular[:3]) @ decomposition.right
        np.testing.assert_allclose(product * decomposition.scale / units, matrix, atol=1e-12)
        condition_number = decomposition.singular[0] / decomposition.singular[2]
        assert decomposition.condition_number == pytest.approx(condition_number)


def test_removes_columns_of_rounding_errors():
    matrix = np.column_stack([np.ones(4), [1e-16, -1e-16, 0, 2e-16], [1e-3, 0, 0, 0]])
    np.testing.assert_array_equal(without_rounding(matrix).any(axis=0), [True, False, True])
    assert len(decompose(without_rounding(matrix), 1e-5).right) == 2


def test_gram_factor_has_zeros_for_columns_without_effect():
    rng = np.random.default_rng(2)
    independent = rng.normal(size=(100, 2)) * [1e4, 1e-3]
    matrix = np.column_stack([independent, independent @ [1.0, 1e7], np.zeros(100)])
    factor = gram_factor(matrix.T @ matrix)
    assert factor.shape == (2, 4)
    assert (factor[:, 3] == 0.0).all()
    np.testing.assert_allclose(factor[:, :2] @ [1.0, 1e7], factor[:, 2], rtol=1e-6)


def test_null_space_contains_the_undetermined_directions():
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 5)) * [1.0, 1e3, 1e-3, 1.0, 0.0]
    directions = null_space(matrix)
    assert directions.shape == (5, 3)
    assert np.linalg.matrix_rank(directions) == 3
    np.testing.assert_allclose(matrix @ directions, 0.0, atol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_partner_has_the_largest_absolute_correlation(sign):
    covariance = np.array([[1.0, 0.9 * sign, 0.3], [0.9 * sign, 1.0, 0.2 * sign], [0.3, 0.2 * sign, 1.0]])
    information = np.linalg.inv(covariance)
    assert Identifiability.of(information, information).partner(0) == (1, pytest.approx(0.9 * sign))


@pytest.mark.parametrize(("independent", "rank"), [(1e-9, 1), (1e-7, 2)])
def test_half_inverse_covers_the_determined_space(independent, rank):
    normal = np.array([[1.0, 1.0 - independent], [1.0 - independent, 1.0]])
    factor = half_inverse(normal)
    assert factor.shape == (2, rank)
    np.testing.assert_allclose(factor.T @ normal @ factor, np.eye(rank), atol=1e-6)
