"""Test derivatives of position by central differences, low-pass and local polynomials."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import LowPass, central_differences, differentiate, filtered_motion
from dynid_ros.signals.low_pass import differentiate_at


def test_differences_are_exact_for_polynomials_of_degree_six():
    time = np.linspace(0, 1, 50)
    polynomial = np.polynomial.Polynomial([1, -2, 3, 1, -4, 2, 1])
    velocity, acceleration = central_differences(polynomial(time), time[1])
    np.testing.assert_allclose(velocity, polynomial.deriv()(time), atol=1e-9)
    np.testing.assert_allclose(acceleration, polynomial.deriv(2)(time), atol=1e-6)


def test_filtered_motion_has_no_phase_lag_and_little_noise():
    rate = 500.0
    omega = 2 * np.pi * 1.5
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


def test_refuses_motions_of_six_samples():
    with pytest.raises(RecordingError, match="7 samples, there are 6"):
        central_differences(np.zeros(6), 0.01)


def test_local_fits_are_exact_for_quadratics():
    time = 0.01 * np.arange(200)
    q = np.column_stack([1 + 2 * time + 3 * time**2, -time])
    velocity, acceleration = differentiate(time, q, 0.1)
    np.testing.assert_allclose(velocity, np.column_stack([2 + 6 * time, -np.ones(200)]), atol=1e-9)
    np.testing.assert_allclose(acceleration, np.column_stack([np.full(200, 6.0), np.zeros(200)]), atol=1e-7)


def test_local_fits_tolerate_jitter():
    time = np.cumsum(np.random.default_rng(0).choice([0.010, 0.012], 2000))
    velocity, _ = differentiate(time, np.sin(2 * time)[:, None], 0.1)
    np.testing.assert_allclose(velocity[20:-20, 0], 2 * np.cos(2 * time[20:-20]), atol=0.02)


def test_derivatives_at_rows_match_those_of_the_recording():
    rng = np.random.default_rng(3)
    time = np.cumsum(rng.choice([0.010, 0.012], 2000))
    q = np.cumsum(rng.normal(size=(2000, 2)), axis=0)
    rows = np.array([0, 1, 4, 700, 1301, 1997, 1999])
    for complete, selected in zip(differentiate(time, q, 0.1), differentiate_at(rows, time, q, 0.1), strict=True):
        np.testing.assert_allclose(selected, complete[rows], rtol=1e-9, atol=1e-7)


def test_velocity_noise_matches_least_squares_slopes():
    noise = np.random.default_rng(1).normal(size=(100_000, 1))
    velocity, _ = differentiate(0.01 * np.arange(len(noise)), noise, 0.11)
    assert np.std(velocity) == pytest.approx(1 / (0.01 * np.sqrt(110)), rel=0.02)


def test_clock_steps_affect_only_their_neighbourhood():
    time = 0.01 * np.arange(400)
    q = np.sin(2 * time)[:, None]
    expected, _ = differentiate(time, q, 0.1)
    velocity, _ = differentiate(np.where(time < 2.0, time, time + 1.7e9), q, 0.1)
    near = np.abs(time - 2.0) < 0.1
    np.testing.assert_allclose(velocity[~near], expected[~near], atol=1e-5)
    assert np.abs(velocity).max() < 2.1
