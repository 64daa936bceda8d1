"""One statistic for all intervals: in results, in files, and on every page."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, f, norm, t

import dynid_ros
from dynid_ros.estimation.estimate import KEY, freedom_of, half_width, interval, region_radius


def test_half_width_is_students():
    freedom = np.array([1.0, 3.5, 40.0, np.inf])
    for level in (0.5, 0.95, 0.997):
        expected = 2.0 * np.append(t.ppf((1 + level) / 2, freedom[:-1]), norm.ppf((1 + level) / 2))
        np.testing.assert_allclose(half_width(2.0, freedom, level), expected, rtol=1e-9)
    np.testing.assert_allclose(interval(1.0, 0.5, 10.0), 1.0 + 0.5 * t.ppf([0.025, 0.975], 10), rtol=1e-9)
    assert np.isnan(half_width(np.nan, 5.0))


def test_a_region_of_several_numbers():
    assert region_radius(2) == pytest.approx(np.sqrt(chi2.ppf(0.95, 2)))
    assert region_radius(2, 7.0) == pytest.approx(np.sqrt(2 * f.ppf(0.95, 2, 7.0)))
    assert region_radius(1, 7.0) == pytest.approx(half_width(1.0, 7.0))


@pytest.mark.parametrize(
    ("document", "entry", "expected"),
    [
        ({KEY: 7}, None, 7.0),
        ({KEY: 7}, {}, 7.0),
        ({KEY: 7}, {KEY: 3.5}, 3.5),
        ({KEY: 7}, {KEY: {"mass": 4}}, 4.0),
        ({KEY: 7}, {KEY: {"n_x": 4}}, np.inf),
        ({}, {}, np.inf),
        ({KEY: None}, None, np.inf),
        ({KEY: "many"}, None, np.inf),
        ({KEY: -1}, None, np.inf),
    ],
)
def test_degrees_of_freedom_of_a_file(document, entry, expected):
    assert freedom_of(document, entry, "mass") == expected


def test_no_interval_is_made_elsewhere():
    own = Path(dynid_ros.__file__).parent
    quantile = re.compile(r"\bppf\(|stdtrit|ndtri|1\.9599|import (norm|t)\b")
    found = [path.relative_to(own) for path in own.rglob("*.py") if quantile.search(path.read_text(encoding="utf-8"))]
    assert found == [Path("estimation/estimate.py")]
