"""Causal derivatives of positions, and the low-pass of equations."""

import numpy as np
import pytest

from dynid_ros.identification.online.online_equations import CausalMotion, RowFilter

STEP = 0.004


def published_derivative(values):
    """Return the derivative at the middle of five samples, by Khosla & Kanade (1987), section 5.1."""
    return (-2 * values[:-4] - values[1:-3] + values[3:-1] + 2 * values[4:]) / (10 * STEP)


def test_motion_has_five_point_derivatives_of_one_instant():
    t = STEP * np.arange(50)
    q = np.column_stack([np.sin(5 * t), t**2])
    torque = np.column_stack([t, -t])
    motion = CausalMotion()
    times = []
    taken = []
    for k in range(50):
        times.append(motion.add(t[k], np.stack([q[k], torque[k]]), STEP))
        if k % 20 == 15:
            taken += motion.take()
    taken += motion.take()
    assert times == [None] * 8 + list(t[4:-4])
    assert motion.take() == []
    position, velocity, acceleration, waited = np.concatenate(taken, axis=1)
    np.testing.assert_array_equal(position, q[4:-4])
    np.testing.assert_array_equal(waited, torque[4:-4])
    expected = published_derivative(q)
    np.testing.assert_allclose(velocity, expected[2:-2], atol=1e-12)
    np.testing.assert_allclose(acceleration, published_derivative(expected), atol=1e-9)
    np.testing.assert_allclose(acceleration[:, 1], 2.0, rtol=1e-6)


def test_half_of_the_power_passes_at_the_cutoff_frequency():
    step = 1e-4
    cutoff = 5.0
    low_pass = RowFilter(cutoff)
    sine = np.sin(2 * np.pi * cutoff * step * np.arange(20000))
    values = []
    done = 0
    for k in range(len(sine)):
        if low_pass.add(step * k):
            new = sine[done : k + 1]
            done = k + 1
            values.append(low_pass.output(lambda weights, new=new: (weights @ new)[:, None, None])[0, 0])
    assert np.sqrt(np.mean(np.square(values[len(values) // 2 :]))) == pytest.approx(0.5, abs=0.01)
    assert len(values) == pytest.approx(2.0 / low_pass.spacing, abs=2)


def test_filter_equals_two_first_order_lags_at_uneven_times():
    rng = np.random.default_rng(0)
    x = np.array([1.0, -2.0, 0.5])
    low_pass = RowFilter(5.0)
    time = 0.0
    used = 0
    waiting = []
    first = second = np.zeros((4, 4))
    for k in range(500):
        step = rng.uniform(0.001, 0.02)
        time += step
        matrix = rng.normal(size=(4, 3))
        waiting.append(np.column_stack([matrix, matrix @ x]))
        share = 1.0 - np.exp(-step / low_pass.time_constant) if k else 0.0
        first = first + share * (waiting[-1] - first)
        second = second + share * (first - second)
        due = low_pass.add(time)
        assert low_pass.waiting == len(waiting)
        # The output may be read between equations.
        if due or k % 7 == 3:
            rows = low_pass.output(lambda weights: np.tensordot(weights, np.array(waiting), axes=1))
            np.testing.assert_allclose(rows, second, atol=1e-14)
            np.testing.assert_allclose(rows[:, -1], rows[:, :-1] @ x, atol=1e-14)
            waiting.clear()
        used += due
    assert used > 50
