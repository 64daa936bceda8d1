"""Test restoration of a steady clock from noisy stamps, lost samples and bursts, and its limits."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import sample_times
from dynid_ros.signals.resampling import judged_times, used_times
from dynid_ros.signals.steady_clock import moved_times, stamp_noise

SPEEDS = 2 * np.pi * np.array([0.1, 0.17, 0.23, 0.31])


def create_positions(time, noise=1e-5):
    """Return noisy positions (N, 4) of sinusoidal motion."""
    phase = np.outer(time, SPEEDS) + np.arange(4)
    return 0.6 * np.sin(phase) + 0.3 * np.sin(2.3 * phase) + np.random.default_rng(1).normal(0, noise, phase.shape)


def create_stamps(rate, lost, jitter, seed=0):
    """Return true times and stamps in order of arrival."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(20 * rate)) / rate
    time = time[rng.random(len(time)) >= lost]
    stamps = np.maximum.accumulate(time + jitter * rng.standard_normal(len(time)))
    return time, stamps + 1e-9 * np.arange(len(stamps))


def compute_error(times, time):
    """Return the RMS error after removal of offset and rate."""
    deviation = times - time
    return float(np.std(deviation - np.polyval(np.polyfit(time, deviation, 1), time)))


@pytest.mark.parametrize("lost", [0.0, 0.01, 0.03])
@pytest.mark.parametrize(("rate", "jitter"), [(100, 1e-3), (250, 1e-3), (250, 3e-3), (500, 2e-3), (1000, 3e-3)])
def test_restores_a_steady_clock_despite_lost_samples(rate, jitter, lost):
    time, stamps = create_stamps(rate, lost, jitter)
    times = sample_times(stamps, create_positions(time))
    assert times.steady
    assert not times.fault()
    assert compute_error(times.time, time) < max(0.2 * jitter, 0.4 / rate)


@pytest.mark.parametrize("lost", [0.0, 0.01, 0.03])
@pytest.mark.parametrize(("rate", "delay"), [(100, 1e-3), (250, 3e-3), (500, 2e-3), (1000, 1e-3), (1000, 3e-3)])
def test_restores_a_clock_of_queued_samples(rate, delay, lost):
    """Delays are exponential and samples keep their order, so many stamps nearly coincide."""
    rng = np.random.default_rng(8)
    time = np.arange(int(20 * rate)) / rate
    time = time[rng.random(len(time)) >= lost]
    stamps = np.maximum.accumulate(time + rng.exponential(delay, len(time))) + 1e-6 * np.arange(len(time))
    times = sample_times(stamps, create_positions(time))
    assert times.mended or times.steady
    assert not times.fault()
    assert compute_error(times.time, time) < 0.2 / rate


@pytest.mark.parametrize("lost", [0.0, 0.02])
@pytest.mark.parametrize("burst", [5, 20])
def test_restores_a_clock_of_bursts(burst, lost):
    rng = np.random.default_rng(2)
    index = np.flatnonzero(rng.random(5000) >= lost)
    time = index / 250.0
    stamps = np.ceil((index + 1) / burst) * burst / 250.0 + 2e-5 * (index % burst)
    times = sample_times(stamps, create_positions(time))
    assert times.steady
    assert stamp_noise(times.time, create_positions(time)) < 5e-5


def test_follows_a_clock_whose_rate_changes():
    index = np.arange(5000)
    time = np.cumsum(np.where(index < 2500, 0.004, 0.0042))
    stamps = time + np.random.default_rng(3).uniform(0, 1.5e-3, len(time))
    assert compute_error(moved_times(stamps, create_positions(time)), time) < 3e-4


@pytest.mark.parametrize("encoder_noise", [1e-6, 2e-4])
def test_estimates_stamp_noise_common_to_all_joints(encoder_noise):
    time = np.arange(5000) / 250.0
    stamps = time + np.random.default_rng(4).uniform(0, 1e-3, len(time))
    assert stamp_noise(stamps, create_positions(time, encoder_noise)) == pytest.approx(np.std(stamps - time), rel=0.1)
    assert stamp_noise(time, create_positions(time, encoder_noise)) < 4e-5


def test_keeps_true_stamps_of_irregular_sampling():
    rng = np.random.default_rng(5)
    time = np.cumsum(rng.uniform(0.002, 0.006, 5000))
    times = sample_times(time, create_positions(time))
    assert not times.steady
    assert times.harm < 1e-3


def test_refuses_noisy_stamps_of_irregular_sampling():
    rng = np.random.default_rng(6)
    time = np.cumsum(rng.uniform(0.002, 0.006, 5000))
    stamps = np.sort(time + rng.normal(0, 2e-3, len(time)))
    with pytest.raises(RecordingError, match=r"the clock of its time stamps is wrong by about .* ms"):
        used_times(stamps, *judged_times(stamps, create_positions(time), create_positions(time)))


def move_stepwise(time, seed):
    """Return positions (N, 4): joints move one after another with rests, while all others yield."""
    rng = np.random.default_rng(seed)
    q = rng.normal(0, 3e-5, (len(time), 4))
    start = 0.0
    joint = 0
    while start < time[-1]:
        duration = rng.uniform(0.8, 1.2)
        s = np.clip((time - start) / duration, 0.0, 1.0)
        step = np.where(np.arange(4) == joint % 4, 0.2, 0.0)
        q += np.outer(s**3 * (10 - 15 * s + 6 * s**2), step) + np.outer(3.2 * (s * (1 - s)) ** 3, 1 - 5 * step)
        start += duration + 0.5
        joint += 1
    return q


@pytest.mark.parametrize("seed", [1, 2])
def test_keeps_regular_stamps(seed):
    """Quick moves of few samples resemble samples with noisy stamps."""
    time = np.arange(1180) / 10.0
    times = sample_times(time, move_stepwise(time, seed))
    assert not times.mended
    np.testing.assert_array_equal(times.time, time)


@pytest.mark.parametrize("speed", [0.0, 0.02])
def test_accepts_noisy_stamps_of_slow_motion(speed):
    rng = np.random.default_rng(6)
    time = np.cumsum(rng.uniform(0.002, 0.006, 5000))
    stamps = np.sort(time + rng.normal(0, 2e-3, len(time)))
    slow = create_positions(speed * time)
    assert not sample_times(stamps, slow).fault()


def test_restores_a_clock_from_one_moving_joint():
    """No other joint confirms the noise of the stamps, but the steady clock makes the motion smooth."""
    time, stamps = create_stamps(250, 0.01, 1e-3)
    times = sample_times(stamps, create_positions(time) * [1.0, 0.0, 0.0, 0.0])
    assert times.mended
    assert compute_error(times.time, time) < 1e-4


@pytest.mark.parametrize(("rate", "jitter"), [(100, 2e-4), (250, 1e-3), (500, 3e-3)])
def test_restores_a_clock_despite_runs_of_lost_samples(rate, jitter):
    rng = np.random.default_rng(9)
    time = np.arange(int(20 * rate)) / rate
    kept = np.ones(len(time), bool)
    for first in np.flatnonzero(rng.random(len(time)) < 0.005):
        kept[first : first + rng.integers(2, 12)] = False
    time = time[kept]
    stamps = np.maximum.accumulate(time + jitter * rng.standard_normal(len(time))) + 1e-9 * np.arange(len(time))
    times = sample_times(stamps, create_positions(time))
    assert times.mended
    assert compute_error(times.time, time) < 0.01 / rate


@pytest.mark.parametrize("jitter", [2e-4, 1e-3])
def test_counts_samples_lost_at_rest_by_their_stamps(jitter):
    time, stamps = create_stamps(250, 0.03, jitter)
    times = sample_times(stamps, move_stepwise(time, 1))
    assert times.mended
    assert compute_error(times.time, time) < 2e-3


def move_between_poses(time, move, rest, n=6):
    """Return positions (N, n) of minimum-jerk moves between random poses, with rests."""
    rng = np.random.default_rng(3)
    ends = np.cumsum(rng.uniform(-0.6, 0.6, (100, n)), axis=0)
    s = np.clip((time % (move + rest) - rest) / move, 0.0, 1.0)[:, None]
    k = (time // (move + rest)).astype(int)
    position = ends[k] + (ends[k + 1] - ends[k]) * (10 * s**3 - 15 * s**4 + 6 * s**5)
    return position + rng.normal(0, 2e-5, position.shape)


@pytest.mark.parametrize(("move", "rest"), [(1.0, 1.5), (1.0, 4.0), (2.0, 0.6)])
@pytest.mark.parametrize(("rate", "jitter"), [(100, 3e-4), (250, 1e-3), (500, 3e-4)])
def test_rests_between_moves_do_not_bias_the_clock(rate, jitter, move, rest):
    time, stamps = create_stamps(rate, 0.03, jitter, seed=6)
    clock = moved_times(stamps, move_between_poses(time, move, rest))
    assert np.std(stamps - clock) < 1.1 * jitter
    assert compute_error(clock, time) < 0.2 * jitter


def test_corrects_few_late_stamps():
    rng = np.random.default_rng(10)
    time, _ = create_stamps(100, 0.01, 0.0)
    stamps = np.maximum.accumulate(time + np.where(rng.random(len(time)) < 0.02, rng.exponential(2e-3, len(time)), 0.0))
    times = sample_times(stamps + 1e-9 * np.arange(len(time)), create_positions(time))
    assert times.mended
    assert compute_error(times.time, time) < 1e-4


def test_restores_a_clock_set_during_motion():
    time, stamps = create_stamps(250, 0.01, 2e-4)
    later = time > 10.0
    stamps[later] += 0.02
    times = sample_times(stamps, create_positions(time)).time
    assert times[np.argmax(later)] - times[np.argmax(later) - 1] == pytest.approx(0.004, abs=5e-4)
    assert compute_error(times, time) < 5e-4
