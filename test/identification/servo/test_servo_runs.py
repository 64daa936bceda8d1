"""Integrals of commanded positions."""

import numpy as np
import pytest
from scipy.integrate import quad

from dynid_ros.recording import CommandSeries

TIME = np.array([0.0, 0.3, 0.5, 1.1])
SERIES = CommandSeries(TIME, np.column_stack([[1.0, -2.0, np.nan, 4.0], np.zeros(4)]))


@pytest.mark.parametrize("linear", [False, True])
def test_integral_of_the_command(linear):
    command = SERIES.path(0, linear=linear)
    assert len(command.time) == 3
    for end in (-0.2, 0.1, 0.3, 0.7, 1.1, 2.0):
        exact = quad(lambda t: command.at(np.array([t]))[0], 0.0, end, points=[0.3, 1.1], limit=400)[0]
        assert command.integral(np.array([end]))[0] == pytest.approx(exact, abs=1e-6)


def test_commands_are_held_or_interpolated():
    times = np.array([-1.0, 0.0, 0.7, 3.0])
    assert SERIES.path(0, linear=False).at(times).tolist() == [1.0, 1.0, -2.0, 4.0]
    assert SERIES.path(0, linear=True).at(times) == pytest.approx([1.0, 1.0, 1.0, 4.0])
