"""A steady clock from stamps that jitter and samples that get lost."""

import numpy as np
import pytest

from dynid_ros.signals.steady_samples import LEARNING_SAMPLES, MAX_BRIDGED_S, SteadySamples


def signal(time):
    return np.array([np.sin(5.0 * time), time**2])


def run(steady, rate, size=400, *, kept=lambda k: True, jitter=0.0, seed=0):
    rng, found = np.random.default_rng(seed), []
    for k in range(size):
        late = jitter * rng.standard_normal() / rate
        if kept(k):
            found += steady.add(k / rate + late, signal(k / rate))
    return found


@pytest.mark.parametrize(("rate", "size"), [(100, 1), (250, 1), (270, 1), (300, 2), (500, 2), (1000, 4)])
def test_means_keep_to_the_largest_rate(rate, size):
    steady = SteadySamples(max_rate=250.0)
    found = run(steady, rate)
    assert steady.period == pytest.approx(1 / rate)
    assert len(found) == 400 // size
    assert np.diff([sample.time for sample in found]) == pytest.approx(size / rate)
    assert [sample.starts for sample in found] == [True] + [False] * (len(found) - 1)


@pytest.mark.parametrize("rate", [50, 100, 200, 500, 1000])
@pytest.mark.parametrize("jitter", [0.0, 0.1, 0.2])
def test_lost_samples_are_filled_in_at_every_rate(rate, jitter):
    lost = np.random.default_rng(rate).random(1000) < 0.03
    lost[:LEARNING_SAMPLES:7] = True
    lost[1::2] = False
    longest = round(MAX_BRIDGED_S * rate)
    lost[500 : 500 + longest] = True
    lost[[498, 499, 500 + longest, 501 + longest, 0, 998]] = False
    steady = SteadySamples()
    found = run(steady, rate, 1000, kept=lambda k: not lost[k], jitter=jitter)
    assert steady.missing == lost.sum()
    assert sum(sample.starts for sample in found) == 1
    assert [sample.time for sample in found] == pytest.approx(np.arange(len(found)) / rate, abs=0.3 / rate)
    expected = np.array([signal(k / rate) for k in range(len(found))])
    errors = np.abs(np.array([sample.values for sample in found]) - expected).max(axis=1)
    # A stamp that is half a period off beside a lost sample may be taken for one of the neighbouring slot.
    assert np.mean(errors > 2e-3) <= 0.05 * jitter


def test_a_stamp_that_is_late_is_no_lost_sample():
    steady, found = SteadySamples(), []
    for k in range(200):
        found += steady.add(0.002 * (k + (0.8 if k in (60, 101) else 0.0)), np.array([float(k)]))
    assert steady.missing == 0
    assert np.array([sample.values[0] for sample in found]) == pytest.approx(np.arange(200.0))


def test_after_a_long_gap_samples_start_anew():
    steady = SteadySamples(max_rate=250.0)
    found = run(steady, 1000, kept=lambda k: not 201 <= k < 260)
    assert steady.missing == 59
    assert [round(sample.time, 4) for sample in found if sample.starts] == [0.0015, 0.2615]
    assert all(sample.time < 0.201 or sample.time > 0.26 for sample in found)


@pytest.mark.parametrize("factor", [10, 0.1])
def test_a_clock_of_another_rate_is_learnt_anew(factor):
    steady, found = SteadySamples(), []
    times = np.concatenate([0.01 * np.arange(200), 2.0 + 0.01 * factor * np.arange(200)])
    for time in times:
        found += steady.add(time, signal(time))
    assert steady.period == pytest.approx(0.01 * factor)
    assert np.diff([sample.time for sample in found[-50:]]) == pytest.approx(0.01 * factor)
