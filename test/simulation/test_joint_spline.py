import numpy as np
import pytest
from scipy.interpolate import BPoly

from dynid_ros.simulation.trajectory_points import JointSpline, SetPoint


@pytest.mark.parametrize("derivatives", [1, 2, 3])
def test_equals_scipy(derivatives):
    rng = np.random.default_rng(derivatives)
    time = 5.0 + np.cumsum(rng.uniform(0.1, 1.0, 20))
    values = rng.normal(size=(20, derivatives, 3))
    expected = BPoly.from_derivatives(time, values)
    spline = JointSpline(time, values)
    for t in rng.uniform(time[0], time[-1], 100):
        assert spline.at(t) == pytest.approx(np.array([expected(t, k) for k in range(3)]), rel=1e-9, abs=1e-9)


def test_rests_after_the_last_point():
    spline = JointSpline(np.array([0.0, 1.0]), np.array([[[0.0, 0.0]], [[1.0, 2.0]]]))
    assert spline.at(3.0).tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


def test_one_point_is_a_rest():
    assert JointSpline(np.zeros(1), np.array([[[0.4]]])).at(2.0).tolist() == [[0.4], [0.0], [0.0]]


def test_a_set_point_is_in_motion_at_its_time_however_it_is_summed_and_rests_after_it():
    state = np.array([[1.0], [2.0], [3.0]])
    for step in range(1, 5000):
        point = SetPoint((step - 1) * 0.001 + 0.001, state)
        assert point.at(step * 0.001) == pytest.approx(state)
    point = SetPoint(1.0, state)
    assert point.at(0.9).ravel() == pytest.approx([1.0 - 0.2 + 0.015, 2.0 - 0.3, 3.0])
    assert point.at(1.001).ravel().tolist() == [1.0, 0.0, 0.0]
