"""Test the online reconstruction of a steady clock from jittering stamps and lost samples."""

import numpy as np
import pytest

from dynid_ros.signals.steady_samples import LEARNING_SAMPLES, MAX_BRIDGED_S, SteadySamples


def compute_signal(time):
    """Return two values at a time."""
    return np.array([np.sin(5.0 * time), time**2])


def add_samples(steady, rate, size=400, *, kept=lambda k: True, jitter=0.0, seed=0):
    """Return the samples that the reconstruction yields for `size` stamps."""
    rng = np.random.default_rng(seed)
    samples = []
    for k in range(size):
        delay = jitter * rng.standard_normal() / rate
        if kept(k):
            samples += steady.add(k / rate + delay, compute_signal(k / rate))
    return samples


@pytest.mark.parametrize(("rate", "size"), [(100, 1), (250, 1), (270, 1), (300, 2), (500, 2), (1000, 4)])
def test_averages_samples_above_the_maximum_rate(rate, size):
    steady = SteadySamples(max_rate=250.0)
    samples = add_samples(steady, rate)
    assert steady.period == pytest.approx(1 / rate)
    assert len(samples) == 400 // size
    assert np.diff([sample.time for sample in samples]) == pytest.approx(size / rate)
    assert [sample.starts for sample in samples] == [True] + [False] * (len(samples) - 1)


@pytest.mark.parametrize("rate", [50, 100, 200, 500, 1000])
@pytest.mark.parametrize("jitter", [0.0, 0.1, 0.2])
def test_fills_in_lost_samples_at_all_rates(rate, jitter):
    lost = np.random.default_rng(rate).random(1000) < 0.03
    lost[:LEARNING_SAMPLES:7] = True
    lost[1::2] = False
    longest = round(MAX_BRIDGED_S * rate)
    lost[500 : 500 + longest] = True
    lost[[498, 499, 500 + longest, 501 + longest, 0, 998]] = False
    steady = SteadySamples()
    samples = add_samples(steady, rate, 1000, kept=lambda k: not lost[k], jitter=jitter)
    assert steady.missing == lost.sum()
    assert sum(sample.starts for sample in samples) == 1
    assert [sample.time for sample in samples] == pytest.approx(np.arange(len(samples)) / rate, abs=0.3 / rate)
    expected = np.array([compute_signal(k / rate) for k in range(len(samples))])
    errors = np.abs(np.array([sample.values for sample in samples]) - expected).max(axis=1)
    # A stamp half a period off next to a lost sample may be assigned to the neighbouring period.
    assert np.mean(errors > 2e-3) <= 0.05 * jitter


def test_late_stamps_are_not_lost_samples():
    steady = SteadySamples()
    samples = []
    for k in range(200):
        samples += steady.add(0.002 * (k + (0.8 if k in (60, 101) else 0.0)), np.array([float(k)]))
    assert steady.missing == 0
    assert np.array([sample.values[0] for sample in samples]) == pytest.approx(np.arange(200.0))


def test_restarts_after_a_long_gap():
    steady = SteadySamples(max_rate=250.0)
    samples = add_samples(steady, 1000, kept=lambda k: not 201 <= k < 260)
    assert steady.missing == 59
    assert [round(sample.time, 4) for sample in samples if sample.starts] == [0.0015, 0.2615]
    assert all(sample.time < 0.201 or sample.time > 0.26 for sample in samples)


@pytest.mark.parametrize("factor", [10, 0.1])
def test_learns_another_rate(factor):
    steady = SteadySamples()
    samples = []
    times = np.concatenate([0.01 * np.arange(200), 2.0 + 0.01 * factor * np.arange(200)])
    for time in times:
        samples += steady.add(time, compute_signal(time))
    assert steady.period == pytest.approx(0.01 * factor)
    assert np.diff([sample.time for sample in samples[-50:]]) == pytest.approx(0.01 * factor)
