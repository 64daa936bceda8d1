"""Noisy stamps of a steady clock, with lost samples and in bursts; and stamps that no clock mends."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import sample_times
from dynid_ros.signals.resampling import judged_times, used_times
from dynid_ros.signals.steady_clock import moved_times, stamp_noise

SPEEDS = 2 * np.pi * np.array([0.1, 0.17, 0.23, 0.31])


def positions(time, noise=1e-5):
    phase = np.outer(time, SPEEDS) + np.arange(4)
    return 0.6 * np.sin(phase) + 0.3 * np.sin(2.3 * phase) + np.random.default_rng(1).normal(0, noise, phase.shape)


def sampled(rate, lost, jitter, seed=0):
    """True times and stamps in order of arrival."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(20 * rate)) / rate
    time = time[rng.random(len(time)) >= lost]
    stamps = np.maximum.accumulate(time + jitter * rng.standard_normal(len(time)))
    return time, stamps + 1e-9 * np.arange(len(stamps))


def error(times, time):
    """RMS of the error but for offset and rate."""
    wrong = times - time
    return float(np.std(wrong - np.polyval(np.polyfit(time, wrong, 1), time)))


@pytest.mark.parametrize("lost", [0.0, 0.01, 0.03])
@pytest.mark.parametrize(("rate", "jitter"), [(100, 1e-3), (250, 1e-3), (250, 3e-3), (500, 2e-3), (1000, 3e-3)])
def test_a_steady_clock_is_found_through_lost_samples(rate, jitter, lost):
    time, stamps = sampled(rate, lost, jitter)
    times = sample_times(stamps, positions(time))
    assert times.steady
    assert not times.fault()
    assert error(times.time, time) < max(0.2 * jitter, 0.4 / rate)


@pytest.mark.parametrize("lost", [0.0, 0.01, 0.03])
@pytest.mark.parametrize(("rate", "delay"), [(100, 1e-3), (250, 3e-3), (500, 2e-3), (1000, 1e-3), (1000, 3e-3)])
def test_samples_that_wait_for_one_another(rate, delay, lost):
    """Delays are exponential, and no sample overtakes another: many stamps nearly coincide."""
    rng = np.random.default_rng(8)
    time = np.arange(int(20 * rate)) / rate
    time = time[rng.random(len(time)) >= lost]
    stamps = np.maximum.accumulate(time + rng.exponential(delay, len(time))) + 1e-6 * np.arange(len(time))
    times = sample_times(stamps, positions(time))
    assert times.mended or times.steady
    assert not times.fault()
    assert error(times.time, time) < 0.2 / rate


@pytest.mark.parametrize("lost", [0.0, 0.02])
@pytest.mark.parametrize("burst", [5, 20])
def test_samples_that_arrive_in_bursts(burst, lost):
    rng = np.random.default_rng(2)
    index = np.flatnonzero(rng.random(5000) >= lost)
    time = index / 250.0
    stamps = np.ceil((index + 1) / burst) * burst / 250.0 + 2e-5 * (index % burst)
    times = sample_times(stamps, positions(time))
    assert times.steady
    assert stamp_noise(times.time, positions(time)) < 5e-5


def test_a_clock_whose_rate_changes():
    index = np.arange(5000)
    time = np.cumsum(np.where(index < 2500, 0.004, 0.0042))
    stamps = time + np.random.default_rng(3).uniform(0, 1.5e-3, len(time))
    assert error(moved_times(stamps, positions(time)), time) < 3e-4


@pytest.mark.parametrize("encoder_noise", [1e-6, 2e-4])
def test_noise_of_the_stamps_shows_in_all_joints_at_once(encoder_noise):
    time = np.arange(5000) / 250.0
    stamps = time + np.random.default_rng(4).uniform(0, 1e-3, len(time))
    assert stamp_noise(stamps, positions(time, encoder_noise)) == pytest.approx(np.std(stamps - time), rel=0.1)
    assert stamp_noise(time, positions(time, encoder_noise)) < 4e-5


def test_uneven_sampling_with_the_right_stamps_is_left_alone():
    rng = np.random.default_rng(5)
    time = np.cumsum(rng.uniform(0.002, 0.006, 5000))
    times = sample_times(time, positions(time))
    assert not times.steady
    assert times.harm < 1e-3


def test_noisy_stamps_of_uneven_sampling_are_refused_by_their_clock():
    rng = np.random.default_rng(6)
    time = np.cumsum(rng.uniform(0.002, 0.006, 5000))
    stamps = np.sort(time + rng.normal(0, 2e-3, len(time)))
    with pytest.raises(RecordingError, match=r"the clock of its time stamps is wrong by about .* ms"):
        used_times(stamps, *judged_times(stamps, positions(time), positions(time)))


def stepped(time, seed):
    """Moves of one joint after another, while all make room, with rests in between."""
    rng = np.random.default_rng(seed)
    q, start, joint = rng.normal(0, 3e-5, (len(time), 4)), 0.0, 0
    while start < time[-1]:
        duration = rng.uniform(0.8, 1.2)
        s = np.clip((time - start) / duration, 0.0, 1.0)
        step = np.where(np.arange(4) == joint % 4, 0.2, 0.0)
        q += np.outer(s**3 * (10 - 15 * s + 6 * s**2), step) + np.outer(3.2 * (s * (1 - s)) ** 3, 1 - 5 * step)
        start += duration + 0.5
        joint += 1
    return q


@pytest.mark.parametrize("seed", [1, 2])
def test_even_stamps_are_not_mended(seed):
    """Few samples of quick moves look like samples at noisy times."""
    time = np.arange(1180) / 10.0
    times = sample_times(time, stepped(time, seed))
    assert not times.mended
    np.testing.assert_array_equal(times.time, time)


@pytest.mark.parametrize("speed", [0.0, 0.02])
def test_noisy_stamps_do_no_harm_where_next_to_nothing_moves(speed):
    rng = np.random.default_rng(6)
    time = np.cumsum(rng.uniform(0.002, 0.006, 5000))
    stamps = np.sort(time + rng.normal(0, 2e-3, len(time)))
    slow = positions(speed * time)
    assert not sample_times(stamps, slow).fault()


def test_one_moving_joint_shows_the_clock():
    """No other joint confirms the noise of the stamps, but the steady clock makes the motion smooth."""
    time, stamps = sampled(250, 0.01, 1e-3)
    one = positions(time) * [1.0, 0.0, 0.0, 0.0]
    times = sample_times(stamps, one)
    assert times.mended
    assert error(times.time, time) < 1e-4


@pytest.mark.parametrize(("rate", "jitter"), [(100, 2e-4), (250, 1e-3), (500, 3e-3)])
def test_losses_of_many_samples_in_a_row(rate, jitter):
    rng = np.random.default_rng(9)
    time = np.arange(int(20 * rate)) / rate
    kept = np.ones(len(time), bool)
    for first in np.flatnonzero(rng.random(len(time)) < 0.005):
        kept[first : first + rng.integers(2, 12)] = False
    time = time[kept]
    stamps = np.maximum.accumulate(time + jitter * rng.standard_normal(len(time))) + 1e-9 * np.arange(len(time))
    times = sample_times(stamps, positions(time))
    assert times.mended
    assert error(times.time, time) < 0.01 / rate


@pytest.mark.parametrize("jitter", [2e-4, 1e-3])
def test_losses_at_rest_are_counted_by_the_stamps(jitter):
    time, stamps = sampled(250, 0.03, jitter)
    times = sample_times(stamps, stepped(time, 1))
    assert times.mended
    assert error(times.time, time) < 2e-3


def poses(time, move, rest, n=6):
    """Minimum-jerk moves between random poses, where the arm rests."""
    rng = np.random.default_rng(3)
    ends = np.cumsum(rng.uniform(-0.6, 0.6, (100, n)), axis=0)
    s = np.clip((time % (move + rest) - rest) / move, 0.0, 1.0)[:, None]
    k = (time // (move + rest)).astype(int)
    position = ends[k] + (ends[k + 1] - ends[k]) * (10 * s**3 - 15 * s**4 + 6 * s**5)
    return position + rng.normal(0, 2e-5, position.shape)


@pytest.mark.parametrize(("move", "rest"), [(1.0, 1.5), (1.0, 4.0), (2.0, 0.6)])
@pytest.mark.parametrize(("rate", "jitter"), [(100, 3e-4), (250, 1e-3), (500, 3e-4)])
def test_rests_between_moves_tell_nothing_else_of_the_clock(rate, jitter, move, rest):
    time, stamps = sampled(rate, 0.03, jitter, seed=6)
    clock = moved_times(stamps, poses(time, move, rest))
    assert np.std(stamps - clock) < 1.1 * jitter
    assert error(clock, time) < 0.2 * jitter


def test_few_late_stamps_among_even_ones():
    rng = np.random.default_rng(10)
    time, _ = sampled(100, 0.01, 0.0)
    stamps = np.maximum.accumulate(time + np.where(rng.random(len(time)) < 0.02, rng.exponential(2e-3, len(time)), 0.0))
    times = sample_times(stamps + 1e-9 * np.arange(len(time)), positions(time))
    assert times.mended
    assert error(times.time, time) < 1e-4


def test_a_clock_that_is_set_while_joints_move():
    time, stamps = sampled(250, 0.01, 2e-4)
    later = time > 10.0
    stamps[later] += 0.02
    times = sample_times(stamps, positions(time)).time
    assert times[np.argmax(later)] - times[np.argmax(later) - 1] == pytest.approx(0.004, abs=5e-4)
    assert error(times, time) < 5e-4
