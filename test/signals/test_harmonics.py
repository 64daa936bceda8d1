import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import FourierSeries

BASE = 0.2


def truth(time, derivative=0):
    """(N, 2): closed forms of harmonics 1 and 3."""
    w = 2 * np.pi * BASE
    a = {0: 0.5 + 2 * np.cos(w * time), 1: -2 * w * np.sin(w * time), 2: -2 * w**2 * np.cos(w * time)}[derivative]
    b = {0: np.sin(3 * w * time) - 1, 1: 3 * w * np.cos(3 * w * time), 2: -9 * w**2 * np.sin(3 * w * time)}[derivative]
    return np.column_stack([a, b])


@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_derivatives_are_exact_on_jittered_broken_periods(derivative):
    time = np.sort(np.random.default_rng(0).uniform(3, 11.7, 600))
    series = FourierSeries.fit(time, truth(time), BASE, 5)
    elsewhere = np.linspace(0, 20, 333)
    np.testing.assert_allclose(series.evaluate(elsewhere, derivative), truth(elsewhere, derivative), atol=1e-9)
    assert np.max(series.residual) < 1e-10


def test_noise_shrinks_with_the_record_and_is_estimated():
    rng = np.random.default_rng(1)
    time, sigma, n_harmonics = np.arange(0, 25, 0.005), np.array([0.01, 0.1]), 5
    errors = []
    for _ in range(40):
        series = FourierSeries.fit(time, truth(time) + sigma * rng.normal(size=(len(time), 2)), BASE, n_harmonics)
        np.testing.assert_allclose(series.residual, sigma, rtol=0.05)
        errors.append(series.evaluate(time) - truth(time))
    expected = sigma * np.sqrt((2 * n_harmonics + 1) / len(time))
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(errors), axis=(0, 1))), expected, rtol=0.2)


def test_what_cannot_be_told_apart():
    time = np.arange(0, 10, 0.01)
    with pytest.raises(RecordingError, match="do not hold a period"):
        FourierSeries.fit(time, truth(time), 0.09, 3)
    with pytest.raises(RecordingError, match="use at most 49 harmonics"):
        FourierSeries.fit(time, truth(time), 1.0, 50)
    assert FourierSeries.fit(time, truth(time), 1.0, 49).n_harmonics == 49
