"""Motion from positions as they come: all of one instant."""

import numpy as np

from dynid_ros.identification.online.online_equations import CausalMotion
from dynid_ros.signals.derivatives import five_point_derivative

STEP = 0.004


def test_derivatives_are_the_five_point_ones_and_all_is_of_one_instant():
    t = STEP * np.arange(50)
    q = np.column_stack([np.sin(5 * t), t**2])
    torque = np.column_stack([t, -t])
    motion = CausalMotion(STEP)
    times, taken = [], []
    for k in range(50):
        times.append(motion.add(t[k], np.stack([q[k], torque[k]])))
        if k % 20 == 15:
            taken += motion.take()
    taken += motion.take()
    assert times == [None] * 8 + list(t[4:-4])
    assert motion.take() == []
    position, velocity, acceleration, waited = np.concatenate(taken, axis=1)
    np.testing.assert_array_equal(position, q[4:-4])
    np.testing.assert_array_equal(waited, torque[4:-4])
    expected = five_point_derivative(q, STEP, causal=True)
    np.testing.assert_allclose(velocity, expected[6:-2], atol=1e-12)
    np.testing.assert_allclose(acceleration, five_point_derivative(expected[4:], STEP, causal=True)[4:], atol=1e-9)
    np.testing.assert_allclose(acceleration[:, 1], 2.0, rtol=1e-6)


def test_a_gap_starts_anew_and_jitter_does_not():
    rng, motion = np.random.default_rng(0), CausalMotion()
    for k in range(100):
        time = STEP * (k + 0.3 * rng.random()) + (1.0 if k >= 60 else 0.0)
        motion.add(time, np.array([[2.0 * STEP * k], [0.0]]))
    before, after = motion.take()
    assert before.shape[1] + after.shape[1] == 100 - 2 * 8
    np.testing.assert_allclose(before[1, 30:], 2.0, rtol=0.05)
