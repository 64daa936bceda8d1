import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import sample_times

RNG = np.random.default_rng(0)
CLOCK = 0.005 * np.arange(4000)
JITTERED = CLOCK + RNG.uniform(-1e-4, 1e-4, 4000)


def motion(time, noise=1e-7):
    q = np.column_stack([np.sin(3 * time), 0.3 * np.cos(5 * time)])
    return q + noise * np.random.default_rng(1).normal(size=q.shape)


def test_a_loggers_jitter_is_undone():
    times = sample_times(7 + JITTERED, motion(CLOCK))
    assert times.steady
    assert "logger" in times.reason
    np.testing.assert_allclose(times.time, 7 + CLOCK, atol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-4])
def test_true_stamps_are_kept(noise):
    times = sample_times(JITTERED, motion(JITTERED, noise))
    assert not times.steady
    np.testing.assert_array_equal(times.time, JITTERED)


def test_noise_that_hides_the_jitter_keeps_the_stamps():
    assert not sample_times(JITTERED, motion(CLOCK, 1e-2)).steady


def test_missing_samples_keep_the_stamps():
    kept = np.delete(np.arange(4000), [100, 101, 2000])
    times = sample_times(CLOCK[kept], motion(CLOCK[kept]))
    assert not times.steady
    assert "missing" in times.reason


def test_bad_time():
    with pytest.raises(RecordingError, match="strictly increasing"):
        sample_times(np.zeros(10), np.zeros((10, 1)))
