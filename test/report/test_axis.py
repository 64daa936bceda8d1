"""Numbers along an axis against those by hand."""

import numpy as np
import pytest

from dynid_ros.report.axis import DEGREE_STEPS, TICK_STEPS, Axis, tick_labels, tick_places


@pytest.mark.parametrize(
    ("ends", "count", "steps", "expected"),
    [
        ((-0.072, 0.093), 3, TICK_STEPS, "−0.06 0.00 0.06"),
        ((-131.0, 138.0), 5, TICK_STEPS, "−120 −60 0 60 120"),
        ((7.6, 19.1), 6, TICK_STEPS, "8 10 12 14 16 18"),
        ((-170.0, 170.0), 6, DEGREE_STEPS, "−120 −60 0 60 120"),
        ((2.0e7, 4.0e7), 2, TICK_STEPS, "2e+07 3e+07 4e+07"),
    ],
)
def test_numbers_are_round_and_few(ends, count, steps, expected):
    assert " ".join(tick_labels(tick_places(*ends, count, steps))) == expected


def test_whole_numbers_have_no_fractions():
    assert tick_labels(tick_places(0.5, 3.5, 8, TICK_STEPS, whole=True)) == ["1", "2", "3"]


def test_range_is_that_of_known_data_with_a_margin():
    axis = Axis()
    axis.include([1.0, np.nan, 3.0])
    axis.include(np.inf)
    np.testing.assert_allclose(axis.range(), (0.9, 3.1))
    np.testing.assert_allclose(axis.fractions([0.9, 2.0, 3.1]), [0.0, 0.5, 1.0])


@pytest.mark.parametrize("values", [[], [np.nan], [0.0], [2.5, 2.5], [-1e-300]])
def test_data_without_a_range_have_an_axis(values):
    axis = Axis()
    axis.include(values)
    low, high = axis.range()
    assert low < high
    assert axis.ticks(100.0)[1]


def test_equal_ratios_have_equal_lengths_on_a_logarithmic_axis():
    axis = Axis()
    axis.is_logarithmic = True
    axis.limits = (0.5, 500.0)
    np.testing.assert_allclose(np.diff(axis.fractions([0.5, 5.0, 50.0, 500.0])), 1 / 3)
    assert axis.ticks(200.0)[1] == ["1", "10", "100"]
    axis.limits = (0.9, 11.0)
    assert axis.ticks(200.0)[1] == ["1", "2", "5", "10"]
