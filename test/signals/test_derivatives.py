import numpy as np
import pytest

from dynid_ros.signals import differentiate


def test_exact_on_quadratics_whatever_the_number_of_columns():
    time = 0.01 * np.arange(200)
    q = np.column_stack([1 + 2 * time + 3 * time**2, -time])
    velocity, acceleration = differentiate(time, q, 0.1)
    np.testing.assert_allclose(velocity, np.column_stack([2 + 6 * time, -np.ones(200)]), atol=1e-9)
    np.testing.assert_allclose(acceleration, np.column_stack([np.full(200, 6.0), np.zeros(200)]), atol=1e-7)


def test_jitter_does_little_harm():
    time = np.cumsum(np.random.default_rng(0).choice([0.010, 0.012], 2000))
    velocity, _ = differentiate(time, np.sin(2 * time)[:, None], 0.1)
    np.testing.assert_allclose(velocity[20:-20, 0], 2 * np.cos(2 * time[20:-20]), atol=0.02)


def test_noise_of_the_velocity_is_that_of_the_least_squares_slope():
    noise = np.random.default_rng(1).normal(size=(100_000, 1))
    velocity, _ = differentiate(0.01 * np.arange(len(noise)), noise, 0.11)
    assert np.std(velocity) == pytest.approx(1 / (0.01 * np.sqrt(110)), rel=0.02)


def test_a_clock_that_was_set_takes_no_memory_and_changes_nothing_elsewhere():
    time = 0.01 * np.arange(400)
    q = np.sin(2 * time)[:, None]
    expected, _ = differentiate(time, q, 0.1)
    velocity, _ = differentiate(np.where(time < 2.0, time, time + 1.7e9), q, 0.1)
    near = np.abs(time - 2.0) < 0.1
    np.testing.assert_allclose(velocity[~near], expected[~near], atol=1e-5)
    assert np.abs(velocity).max() < 2.1
