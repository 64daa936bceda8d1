"""Test Fourier series of periodic signals and the estimate of their base frequency."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import FourierSeries, base_frequency

BASE_HZ = 0.2


def compute_signal(time, derivative=0):
    """Return harmonics 1 and 3 or their derivatives in closed form, an array (N, 2)."""
    w = 2 * np.pi * BASE_HZ
    a = {0: 0.5 + 2 * np.cos(w * time), 1: -2 * w * np.sin(w * time), 2: -2 * w**2 * np.cos(w * time)}[derivative]
    b = {0: np.sin(3 * w * time) - 1, 1: 3 * w * np.cos(3 * w * time), 2: -9 * w**2 * np.sin(3 * w * time)}[derivative]
    return np.column_stack([a, b])


@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_series_are_exact_for_jittered_incomplete_periods(derivative):
    time = np.sort(np.random.default_rng(0).uniform(3, 11.7, 600))
    series = FourierSeries.fit(time, compute_signal(time), BASE_HZ, 5)
    times = np.linspace(0, 20, 333)
    np.testing.assert_allclose(series.evaluate(times, derivative), compute_signal(times, derivative), atol=1e-9)
    assert np.max(series.residual) < 1e-10


def test_series_reduce_and_estimate_noise():
    rng = np.random.default_rng(1)
    time = np.arange(0, 25, 0.005)
    sigma = np.array([0.01, 0.1])
    n_harmonics = 5
    errors = []
    for _ in range(40):
        noisy = compute_signal(time) + sigma * rng.normal(size=(len(time), 2))
        series = FourierSeries.fit(time, noisy, BASE_HZ, n_harmonics)
        np.testing.assert_allclose(series.residual, sigma, rtol=0.05)
        errors.append(series.evaluate(time) - compute_signal(time))
    expected = sigma * np.sqrt((2 * n_harmonics + 1) / len(time))
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(errors), axis=(0, 1))), expected, rtol=0.2)


def test_refuses_harmonics_that_cannot_be_distinguished():
    time = np.arange(0, 10, 0.01)
    with pytest.raises(RecordingError, match="do not hold a period"):
        FourierSeries.fit(time, compute_signal(time), 0.09, 3)
    with pytest.raises(RecordingError, match="use at most 49 harmonics"):
        FourierSeries.fit(time, compute_signal(time), 1.0, 50)
    assert FourierSeries.fit(time, compute_signal(time), 1.0, 49).n_harmonics == 49


def create_harmonics(time, base, n_harmonics, seed=0):
    """Return two periodic signals (N, 2) with random phases."""
    rng = np.random.default_rng(seed)
    k = np.arange(1, n_harmonics + 1)
    phases = rng.uniform(0, 2 * np.pi, (2, n_harmonics))
    return np.column_stack([np.sin(2 * np.pi * base * np.outer(time, k) + phase) @ (1 / k) for phase in phases])


@pytest.mark.parametrize("base", [0.1, 0.0973, 0.234567])
def test_finds_the_base_frequency_without_a_guess(base):
    time = np.arange(0, 47.3, 0.01)
    assert base_frequency(time, create_harmonics(time, base, 8), 8) == pytest.approx(base, rel=1e-7)


def test_base_frequency_reaches_the_cramer_rao_bound():
    time = np.arange(0, 30, 0.02)
    base = 0.2
    sigma = 0.05
    n_harmonics = 3
    clean = create_harmonics(time, base, n_harmonics)
    rng = np.random.default_rng(1)
    estimates = [
        base_frequency(time, clean + sigma * rng.normal(size=clean.shape), n_harmonics, guess=0.2) for _ in range(40)
    ]
    k = np.arange(1, n_harmonics + 1)
    angles = 2 * np.pi * base * np.outer(time, k)
    linear = np.hstack([np.ones((len(time), 1)), np.cos(angles), np.sin(angles)])
    slope = (create_harmonics(time, base * (1 + 1e-6), n_harmonics) - clean) / (base * 1e-6)
    slope -= linear @ np.linalg.lstsq(linear, slope, rcond=None)[0]
    information = np.sum(slope**2) / sigma**2
    assert np.mean(estimates) == pytest.approx(base, abs=4 / np.sqrt(40 * information))
    assert np.std(estimates) == pytest.approx(1 / np.sqrt(information), rel=0.3)


def test_finds_the_period_although_parts_nearly_repeat():
    time = np.arange(0, 30, 0.03)
    q = np.sin(2 * np.pi * time)[:, None] + 0.6 * np.sin(2 * np.pi * 0.25 * time)[:, None]
    assert base_frequency(time, q, 8) == pytest.approx(0.25, rel=1e-7)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.linspace(0, 1, 500), "does not repeat"),
        (np.sin(np.linspace(0, 1.5, 500) ** 3), "does not repeat"),
        (np.ones((500, 2)), "constant"),
    ],
)
def test_refuses_signals_without_a_period(q, message):
    with pytest.raises(RecordingError, match=message):
        base_frequency(0.01 * np.arange(500), q, 3)
