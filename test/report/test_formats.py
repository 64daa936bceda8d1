"""Test how reports format numbers, percentages and units."""

import numpy as np
import pytest

from dynid_ros.report import formats
from dynid_ros.report.formats import PRISMATIC, REVOLUTE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-1.23456, "−1.23"),
        (1234.6, "1235"),
        (0.00012345, "0.000123"),
        (0.99999, "1.00"),
        (1.2e-9, "1.20·10⁻⁹"),
        (3e8, "3.00·10⁸"),
        (np.nan, "–"),
        (np.inf, "–"),
    ],
)
def test_significant_digits(value, text):
    assert formats.significant(value) == text


@pytest.mark.parametrize(
    ("value", "half_width", "text"),
    [
        (1.23456, 0.0123, "1.235"),
        (-7.9, 0.5, "−7.90"),
        (12.3, 40.0, "12"),
        (1.23456, np.nan, "1.2346"),
        (2.0, 0.0, "2.0000"),
    ],
)
def test_decimals_follow_the_interval(value, half_width, text):
    assert formats.as_fine_as(value, half_width) == text


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.00123, "0.12 %"), (1.5, "150 %"), (0.0, "< 0.01 %"), (-0.2, "−20 %"), (np.nan, "–")]
)
def test_percent(fraction, text):
    assert formats.percent(fraction) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (np.pi / 4, REVOLUTE, "45.0°"),
        (1e-5, REVOLUTE, "< 0.01°"),
        (0.0123, PRISMATIC, "12.3 mm"),
        (0.0, PRISMATIC, "< 0.01 mm"),
    ],
)
def test_distance_in_degrees_or_millimetres(value, unit, text):
    assert formats.distance(value, unit) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.414, "41 %"),
        (0.98, "98 %"),
        (0.991, "99.1 %"),
        (0.99996, "99.9 %"),
        (0.0, "0 %"),
        (-3.0, "0 %"),
        (np.nan, "–"),
    ],
)
def test_share_is_never_rounded_up_to_100_percent(fraction, text):
    assert formats.share(fraction) == text


def test_numbers_stay_with_their_units():
    raw = "off by 99.4 %: of its 4.2 N m, < 0.01 % in 3 sensors; 2 kg m after 67.9 s."
    expected = "off by 99.4~%: of its 4.2~N~m, <~0.01~% in 3 sensors; 2~kg~m after 67.9~s."
    assert formats.unbroken(raw) == expected.replace("~", "\N{NO-BREAK SPACE}")
