"""What a rank-deficient problem determines, against constructions by hand."""

import numpy as np
import pytest

from dynid_ros.estimation.least_squares import LinearFit, decompose, without_rounding


@pytest.fixture(name="fit")
def fixture_fit() -> LinearFit:
    """Of three parameters: the sum of the first two and nothing else, known as 5 ± 0.1; units differ by 1000."""
    scale = np.array([1000.0, 1000.0, 1.0])
    direction = np.array([0.5, 0.5, 0.0])
    return LinearFit(
        solution=np.array([2.5, 2.5, 7.0]),
        covariance=0.1**2 * np.outer(direction, direction),
        determined=np.array([[1.0, 1.0, 0.0]]) / np.sqrt(2),
        scale=scale,
        condition_number=1.0,
        singular_values=np.ones(3),
    )


def test_combinations(fit):
    combinations = [[1, 1, 0], [2, 2, 0], [1, 0, 0], [1, 1, 1e-12], [1, 1, 1e-6], [1, -1, 0], [0, 0, 0]]
    values, errors = fit.combine(combinations)
    np.testing.assert_allclose(values, [5, 10, np.nan, 5, np.nan, np.nan, 0])
    np.testing.assert_allclose(errors, [0.1, 0.2, np.nan, 0.1, np.nan, np.nan, 0])
    assert fit.rank == 1


def test_single_parameters_that_are_open_have_no_value(fit):
    assert np.isnan(fit.values).all()
    assert np.isnan(fit.standard_errors).all()


def test_decomposition_does_not_depend_on_units():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 5))
    for units in (np.ones(5), np.array([1e-6, 1.0, 1e3, 1.0, 1e6])):
        found = decompose(matrix * units, 1e-9)
        assert len(found.right) == 3
        np.testing.assert_allclose(
            (found.left * found.singular[:3]) @ found.right * found.scale / units, matrix, atol=1e-12
        )
        assert found.condition_number == pytest.approx(found.singular[0] / found.singular[2])


def test_rounding_errors_are_no_column():
    matrix = np.column_stack([np.ones(4), [1e-16, -1e-16, 0, 2e-16], [1e-3, 0, 0, 0]])
    np.testing.assert_array_equal(without_rounding(matrix).any(axis=0), [True, False, True])
    assert len(decompose(without_rounding(matrix), 1e-5).right) == 2
