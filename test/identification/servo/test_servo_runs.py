"""What a joint was told, integrated."""

import numpy as np
import pytest
from scipy.integrate import quad

from dynid_ros.recording import CommandSeries

TIME = np.array([0.0, 0.3, 0.5, 1.1])
SERIES = CommandSeries(TIME, np.column_stack([[1.0, -2.0, np.nan, 4.0], np.zeros(4)]))


@pytest.mark.parametrize("linear", [False, True])
def test_the_integral_is_that_of_what_is_told(linear):
    told = SERIES.path(0, linear=linear)
    assert len(told.time) == 3
    for end in (-0.2, 0.1, 0.3, 0.7, 1.1, 2.0):
        exact = quad(lambda t: told.at(np.array([t]))[0], 0.0, end, points=[0.3, 1.1], limit=400)[0]
        assert told.integral(np.array([end]))[0] == pytest.approx(exact, abs=1e-6)


def test_steps_hold_and_lines_go_on():
    at = np.array([-1.0, 0.0, 0.7, 3.0])
    assert SERIES.path(0, linear=False).at(at).tolist() == [1.0, 1.0, -2.0, 4.0]
    assert SERIES.path(0, linear=True).at(at) == pytest.approx([1.0, 1.0, 1.0, 4.0])
