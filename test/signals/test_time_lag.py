import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import time_lag

RATE = 200.0
TIME = np.arange(0, 20, 1 / RATE)


def torque(time):
    """(N, 2), with closed form between the samples."""
    return np.column_stack(
        [np.sin(2 * np.pi * 0.7 * time) + 0.3 * np.cos(2 * np.pi * 4.1 * time), np.cos(2 * np.pi * 1.3 * time) ** 3]
    )


@pytest.mark.parametrize("lag", [-0.0781, -0.0037, 0.0, 0.00125, 0.005, 0.0333])
def test_lag_to_a_fraction_of_a_sample(lag):
    found = time_lag(torque(TIME), [3.0, 0.2] * torque(TIME - lag) + [10, -5], RATE)
    assert found.lag == pytest.approx(lag, abs=1e-6)
    np.testing.assert_allclose(found.correlation, 1, atol=1e-9)


def test_single_column():
    assert time_lag(torque(TIME)[:, 0], torque(TIME - 0.0123)[:, 0], RATE).lag == pytest.approx(0.0123, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [False, True])
def test_standard_error_covers_the_truth(correlated):
    rng = np.random.default_rng(5)
    scores = []
    for _ in range(80):
        noise = rng.normal(size=(len(TIME), 2))
        if correlated:
            for k in range(1, len(noise)):
                noise[k] = 0.95 * noise[k - 1] + 0.3 * noise[k]
        found = time_lag(torque(TIME), torque(TIME - 0.0061) + 0.3 * noise, RATE)
        scores.append((found.lag - 0.0061) / found.standard_error)
    assert abs(np.mean(scores)) < 0.5
    assert 0.75 < np.std(scores) < 1.35


def test_noisy_column_counts_less():
    rng = np.random.default_rng(6)
    signal = torque(TIME - 0.004)
    both = [0.01, 3.0] * rng.normal(size=signal.shape) + signal
    found = time_lag(torque(TIME), both, RATE)
    alone = time_lag(torque(TIME)[:, 0], both[:, 0], RATE)
    assert found.lag == pytest.approx(0.004, abs=4 * alone.standard_error)
    assert found.standard_error == pytest.approx(alone.standard_error, rel=0.1)


@pytest.mark.parametrize("signal", [torque(TIME - 0.15), -torque(TIME)], ids=["too late", "wrong sign"])
def test_no_lag_in_reach(signal):
    with pytest.raises(RecordingError, match="no best lag"):
        time_lag(torque(TIME), signal, RATE)


def test_bad_signals():
    with pytest.raises(RecordingError, match="column 1 is constant"):
        time_lag(torque(TIME), torque(TIME) * [1, 0], RATE)
    with pytest.raises(RecordingError, match="same shape"):
        time_lag(torque(TIME), torque(TIME)[:, :1], RATE)
    with pytest.raises(RecordingError, match="at least 88 samples"):
        time_lag(torque(TIME)[:50], torque(TIME)[:50], RATE)
