import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import LowPass, central_differences, filtered_motion


def test_exact_on_sixth_degree_polynomials_to_the_ends():
    time = np.linspace(0, 1, 50)
    polynomial = np.polynomial.Polynomial([1, -2, 3, 1, -4, 2, 1])
    velocity, acceleration = central_differences(polynomial(time), time[1])
    np.testing.assert_allclose(velocity, polynomial.deriv()(time), atol=1e-9)
    np.testing.assert_allclose(acceleration, polynomial.deriv(2)(time), atol=1e-6)


def test_equals_the_central_difference_formula():
    x = np.random.default_rng(0).normal(size=20)
    velocity, acceleration = central_differences(x, 0.1)
    first = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60 / 0.1
    second = np.array([2, -27, 270, -490, 270, -27, 2]) / 180 / 0.01
    assert velocity[7] == pytest.approx(first @ x[4:11])
    assert acceleration[7] == pytest.approx(second @ x[4:11])


def test_filtered_motion_is_without_phase_and_cleaner_than_plain_differences():
    rate, omega = 500.0, 2 * np.pi * 1.5
    time = np.arange(0, 20, 1 / rate)
    noise = 1e-4 * np.random.default_rng(1).normal(size=(len(time), 1))
    q = np.sin(omega * time)[:, None] + noise
    low_pass = LowPass(6.0, rate)
    motion = filtered_motion(q, low_pass)
    kept = low_pass.kept(len(q))
    assert motion.position.shape == motion.velocity.shape == motion.acceleration.shape == q.shape
    assert np.max(np.abs(motion.velocity[kept, 0] - omega * np.cos(omega * time[kept]))) < 2e-3 * omega
    error = motion.acceleration[kept, 0] + omega**2 * np.sin(omega * time[kept])
    assert np.std(error) < 0.002 * omega**2
    assert np.std(error) < 1e-3 * np.std(np.diff(q[:, 0], 2) * rate**2)


def test_too_short():
    with pytest.raises(RecordingError, match="7 samples, there are 6"):
        central_differences(np.zeros(6), 0.01)
