"""Test the estimate of the lag between two signals."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import time_lag

RATE_HZ = 200.0
TIME_S = np.arange(0, 20, 1 / RATE_HZ)


def compute_torque(time):
    """Return torques (N, 2) in closed form."""
    first = np.sin(2 * np.pi * 0.7 * time) + 0.3 * np.cos(2 * np.pi * 4.1 * time)
    return np.column_stack([first, np.cos(2 * np.pi * 1.3 * time) ** 3])


@pytest.mark.parametrize("lag", [-0.0781, -0.0037, 0.0, 0.00125, 0.005, 0.0333])
def test_estimates_lags_to_a_fraction_of_a_sample(lag):
    estimate = time_lag(compute_torque(TIME_S), [3.0, 0.2] * compute_torque(TIME_S - lag) + [10, -5], RATE_HZ)
    assert estimate.lag == pytest.approx(lag, abs=1e-6)
    np.testing.assert_allclose(estimate.correlation, 1, atol=1e-9)


def test_estimates_the_lag_of_one_column():
    assert time_lag(compute_torque(TIME_S)[:, 0], compute_torque(TIME_S - 0.0123)[:, 0], RATE_HZ).lag == pytest.approx(
        0.0123, abs=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [False, True])
def test_standard_error_of_the_lag_covers_the_truth(correlated):
    rng = np.random.default_rng(5)
    scores = []
    for _ in range(80):
        noise = rng.normal(size=(len(TIME_S), 2))
        if correlated:
            for k in range(1, len(noise)):
                noise[k] = 0.95 * noise[k - 1] + 0.3 * noise[k]
        estimate = time_lag(compute_torque(TIME_S), compute_torque(TIME_S - 0.0061) + 0.3 * noise, RATE_HZ)
        scores.append((estimate.lag - 0.0061) / estimate.standard_error)
    assert abs(np.mean(scores)) < 0.5
    assert 0.75 < np.std(scores) < 1.35


def test_noisy_columns_have_less_weight():
    rng = np.random.default_rng(6)
    signal = compute_torque(TIME_S - 0.004)
    both = [0.01, 3.0] * rng.normal(size=signal.shape) + signal
    estimate = time_lag(compute_torque(TIME_S), both, RATE_HZ)
    single = time_lag(compute_torque(TIME_S)[:, 0], both[:, 0], RATE_HZ)
    assert estimate.lag == pytest.approx(0.004, abs=4 * single.standard_error)
    assert estimate.standard_error == pytest.approx(single.standard_error, rel=0.1)


@pytest.mark.parametrize(
    "signal", [compute_torque(TIME_S - 0.15), -compute_torque(TIME_S)], ids=["too late", "wrong sign"]
)
def test_refuses_signals_without_a_matching_lag(signal):
    with pytest.raises(RecordingError, match="no best lag"):
        time_lag(compute_torque(TIME_S), signal, RATE_HZ)


def test_refuses_invalid_signals():
    with pytest.raises(RecordingError, match="column 1 is constant"):
        time_lag(compute_torque(TIME_S), compute_torque(TIME_S) * [1, 0], RATE_HZ)
    with pytest.raises(RecordingError, match="same shape"):
        time_lag(compute_torque(TIME_S), compute_torque(TIME_S)[:, :1], RATE_HZ)
    with pytest.raises(RecordingError, match="at least 88 samples"):
        time_lag(compute_torque(TIME_S)[:50], compute_torque(TIME_S)[:50], RATE_HZ)
