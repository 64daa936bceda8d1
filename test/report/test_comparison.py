"""Checks against bounds, and estimates beside their true values."""

import numpy as np
import pytest

from dynid_ros.report.comparison import Check, Comparison, coverage_check


@pytest.mark.parametrize(
    ("check", "passed", "bound"),
    [
        (Check("Mass", 0.5, 1.0, "%"), True, "at most 1 %"),
        (Check("Mass", 1.5, 1.0, "%"), False, "at most 1 %"),
        (Check("Lead", 20.0, 15.0, "cm", at_least=True), True, "at least 15 cm"),
        (Check("Lead", 10.0, 15.0, "cm", at_least=True), False, "at least 15 cm"),
        (Check("Mass", np.nan, 1.0), False, "at most 1"),
        (Check("Mass", np.inf, 1.0), False, "at most 1"),
    ],
)
def test_a_value_is_checked_against_its_bound(check, passed, bound):
    assert check.passed is passed
    assert check.bound == bound
    assert ("FAILED" in str(check)) is not passed


@pytest.mark.parametrize(
    ("value", "half", "covered", "cells"),
    [
        (2.01, 0.02, True, ("2.0000", "2.0100", "0.020", "0.010")),
        (1.95, 0.02, False, ("2.0000", "1.9500", "0.020", "−0.050")),
        (np.nan, np.nan, False, ("2.00", "–", "–", "–")),
    ],
)
def test_an_estimate_beside_the_truth(value, half, covered, cells):
    row = Comparison("Mass", "kg", 2.0, value, half)
    assert row.is_covered is covered
    assert row.cells[:4] == cells


def test_coverage_counts_determined_estimates_only():
    rows = [Comparison("m", "kg", 2.0, value, 0.02) for value in (2.01, 1.95, np.nan)]
    assert coverage_check(rows, 40.0).value == 50.0
    assert not coverage_check(rows[2:], 40.0).passed
