"""Sobol's sequence is that of SciPy."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import qmc

from dynid_ros.trajectories.sobol import POLYNOMIALS, sobol


@pytest.mark.parametrize("n", [1, 2, 7, len(POLYNOMIALS), len(POLYNOMIALS) + 1])
def test_points_are_those_of_scipy(n):
    points = qmc.Sobol(n, scramble=False).random(1024)
    for count in (1, 2, 4, 1024):
        np.testing.assert_array_equal(sobol(count, n), points[:count])


def test_no_points():
    assert sobol(0, 3).shape == (0, 3)


def test_it_does_without_scipy_stats():
    code = "import sys, dynid_ros.trajectories.sobol as s; s.sobol(9, 7); print('scipy.stats' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.strip() == "False"
