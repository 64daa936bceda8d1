"""Test splines with gaps, detection of sample times, and resampling at regular intervals."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import GapSpline, resample, sample_times, stale_rows
from dynid_ros.signals.resampling import judged_times, used_times

TIME_S = np.arange(0, 4, 1 / 250)


def create_vibration(time):
    """Return vibrations (N, 2) at 25 Hz, a tenth of the rate."""
    return np.column_stack([np.sin(2 * np.pi * 25 * time), 3 * np.cos(2 * np.pi * 25 * time)])


def estimate_amplitude(time, values):
    """Return the amplitude of each column at 25 Hz."""
    basis = np.column_stack([np.sin(2 * np.pi * 25 * time), np.cos(2 * np.pi * 25 * time)])
    return np.hypot(*np.linalg.lstsq(basis, values, rcond=None)[0])


@pytest.mark.parametrize("part", [0.1, 0.25, 0.5])
def test_splines_keep_the_amplitude_between_samples(part):
    """Linear interpolation would lose 5 % at a tenth of the rate in the middle of an interval."""
    times = TIME_S[50:-50] + part / 250
    cubic = estimate_amplitude(times, GapSpline(TIME_S, create_vibration(TIME_S))(times)) / [1, 3]
    np.testing.assert_allclose(cubic, 1, atol=1.2e-3)


def test_splines_interpolate_samples_and_leave_gaps():
    values = create_vibration(TIME_S)
    values[100:140, 0] = np.nan
    values[300:302, 1] = np.nan  # short enough to be bridged
    values[:20] = np.nan
    spline = GapSpline(TIME_S, values)
    interpolated = spline(TIME_S)
    recorded = np.isfinite(values)
    np.testing.assert_allclose(interpolated[recorded], values[recorded], atol=1e-9)
    assert np.array_equal(np.isfinite(interpolated[:, 0]), recorded[:, 0])
    np.testing.assert_allclose(interpolated[300:302, 1], create_vibration(TIME_S)[300:302, 1], atol=0.15)
    assert np.isnan(spline([-0.1, TIME_S[-1] + 0.1])).all()
    between = spline((TIME_S[:-1] + TIME_S[1:]) / 2)
    assert np.isnan(between[99:140, 0]).all()
    assert np.isfinite(between[141:, 0]).all()
    assert np.isnan(GapSpline(TIME_S, values, longest_gap=0.004)(TIME_S)[300:302, 1]).all()


def test_splines_have_accurate_derivatives():
    times = TIME_S[100:-100] + 0.001
    slow = GapSpline(TIME_S, np.sin(2 * np.pi * TIME_S)[:, np.newaxis])
    np.testing.assert_allclose(slow(times, 1)[:, 0], 2 * np.pi * np.cos(2 * np.pi * times), atol=1e-4)


def test_splines_accept_columns_without_samples():
    values = np.column_stack([np.full(len(TIME_S), np.nan), TIME_S])
    interpolated = GapSpline(TIME_S, values)(TIME_S)
    assert np.isnan(interpolated[:, 0]).all()
    np.testing.assert_allclose(interpolated[:, 1], TIME_S, atol=1e-12)


RNG = np.random.default_rng(0)
CLOCK_S = 0.005 * np.arange(4000)
JITTERED_S = CLOCK_S + RNG.uniform(-1e-4, 1e-4, 4000)


def create_motion(time, noise=1e-7):
    """Return noisy positions (N, 2)."""
    q = np.column_stack([np.sin(3 * time), 0.3 * np.cos(5 * time)])
    return q + noise * np.random.default_rng(1).normal(size=q.shape)


def test_removes_jitter_of_the_logger():
    times = sample_times(7 + JITTERED_S, create_motion(CLOCK_S))
    assert times.steady
    assert "logger" in times.reason
    np.testing.assert_allclose(times.time, 7 + CLOCK_S, atol=1e-5)


INCOMPLETE_S = np.delete(CLOCK_S, [100, 101, 2000])


@pytest.mark.parametrize(
    ("stamps", "positions", "reason"),
    [
        *((JITTERED_S, create_motion(JITTERED_S, noise), "") for noise in (0.0, 1e-7, 1e-4)),
        (JITTERED_S, create_motion(CLOCK_S, 1e-2), ""),
        (INCOMPLETE_S, create_motion(INCOMPLETE_S), "missing"),
    ],
    ids=["exact", "fine", "noisy", "noise hides the jitter", "missing samples"],
)
def test_keeps_true_stamps(stamps, positions, reason):
    times = sample_times(stamps, positions)
    assert not times.steady
    assert reason in times.reason
    np.testing.assert_array_equal(times.time, stamps)


def create_stamps(n=1500, seed=0):
    """Return stamps like those of a UR: steps of 10 ms with some of 12 ms."""
    rng = np.random.default_rng(seed)
    return 5 + np.cumsum(rng.choice([0.010, 0.012], n, p=[0.7, 0.3]))


def compute_signal(time):
    """Return a signal (N, 2) at 3 and 5 Hz."""
    return np.column_stack([np.sin(2 * np.pi * 3 * time), np.cos(2 * np.pi * 5 * time)])


def test_resampling_beats_linear_interpolation():
    time = create_stamps()
    result = resample(time, compute_signal(time))
    (segment,) = result.segments
    assert result.step == pytest.approx(0.010)
    assert result.gaps.shape == (0, 2)
    np.testing.assert_allclose(np.diff(segment.time), 0.010, atol=1e-9)
    truth = compute_signal(segment.time)
    linear = np.column_stack([np.interp(segment.time, time, column) for column in compute_signal(time).T])
    inner = slice(20, -20)
    assert np.std((segment.values - truth)[inner]) < np.std((linear - truth)[inner]) / 30


def test_resampling_keeps_the_power_of_noise():
    time = create_stamps(20_000)
    noise = np.random.default_rng(4).normal(size=len(time))
    (segment,) = resample(time, noise).segments
    assert np.var(segment.values) == pytest.approx(1, abs=0.15)
    assert np.var(np.interp(segment.time, time, noise)) < 0.75


def test_samples_on_the_grid_stay_unchanged():
    time = 0.01 * np.arange(100)
    values = np.random.default_rng(0).normal(size=(100, 2, 3))
    (segment,) = resample(time, values).segments
    np.testing.assert_allclose(segment.values, values, atol=1e-9)


def test_leaves_and_reports_gaps():
    time = 0.01 * np.arange(1000)
    keep = np.ones(1000, bool)
    keep[300:340] = False
    keep[600:602] = False
    keep[[990, 991, 992, 993]] = False
    keep[[996, 997, 998]] = False
    result = resample(time[keep], compute_signal(time[keep]))
    assert [len(part.time) for part in result.segments] == [300, 650]
    np.testing.assert_allclose(result.gaps, [[2.99, 3.40], [9.89, 9.99]])
    for part in result.segments:
        assert np.max(np.abs(part.values - compute_signal(part.time))) < 5e-3


def test_longest_gap_is_configurable():
    time = np.delete(0.01 * np.arange(100), slice(50, 54))
    assert len(resample(time, compute_signal(time)).segments) == 2
    assert len(resample(time, compute_signal(time), longest_gap=0.05).segments) == 1


def test_missing_values_are_gaps_except_in_empty_columns():
    time = 0.01 * np.arange(100)
    values = np.column_stack([compute_signal(time), np.full(100, np.nan)])
    values[40:50, 0] = np.nan
    result = resample(time, values)
    assert [len(part.time) for part in result.segments] == [40, 50]
    assert all(np.isnan(part.values[:, 2]).all() and np.isfinite(part.values[:, :2]).all() for part in result.segments)


def test_resamples_with_another_step():
    time = create_stamps()
    result = resample(time, compute_signal(time), step=0.004)
    assert result.rate == pytest.approx(250)
    assert result.segments[0].time[-1] <= time[-1] + 1e-9 < result.segments[0].time[-1] + 0.004


@pytest.mark.parametrize("time", [[0, 1, 1, 2, 3], [0, 1, 2], [0, 2, 1, 3, 4], [0, np.nan, 2, 3, 4]])
def test_refuses_invalid_times(time):
    with pytest.raises(RecordingError, match="strictly increasing"):
        resample(time, np.zeros((len(time), 1)))
    with pytest.raises(RecordingError, match="strictly increasing"):
        sample_times(np.array(time), np.zeros((len(time), 1)))
    with pytest.raises(RecordingError, match="strictly increasing"):
        GapSpline(time, np.zeros((len(time), 1)))


def test_refuses_records_of_gaps_only():
    with pytest.raises(RecordingError, match="longer than"):
        resample(np.arange(10.0), np.zeros(10), longest_gap=0.5)


def test_finds_stale_rows_but_not_rest():
    values = np.random.default_rng(0).normal(size=(100, 2))
    values[10] = values[11] = values[9]
    values[20, 0] = values[19, 0]
    values[50:80] = values[49]
    assert np.flatnonzero(stale_rows(values)).tolist() == [10, 11]
    assert stale_rows(values, longest_run=30).sum() == 32


def list_held_messages(period, clock):
    """Return the index of the robot's message that the logger holds in each of its periods."""
    return np.floor((np.arange(400) * clock + 0.3 * period) / period).astype(int)


@pytest.mark.parametrize(("robot", "logger"), [(0.034, 0.0333333), (0.008, 0.0033)])
def test_restores_times_of_a_logger_that_holds_messages(robot, logger):
    """Repeated rows are one in fifty or more than half of all; stamps lag by up to a period of the logger."""
    held = list_held_messages(robot, logger)
    time = logger * np.arange(len(held))
    true = robot * held
    position = np.column_stack([np.sin(3 * true), np.cos(2 * true)])
    times, fresh = used_times(time, *judged_times(time, position, position))
    np.testing.assert_array_equal(fresh, np.diff(held, prepend=-1) > 0)
    delay = times - true
    assert np.ptp(time - true) > 0.9 * logger
    assert np.ptp(delay) < 0.1 * logger
    np.testing.assert_array_equal(times[1:][~fresh[1:]], times[:-1][~fresh[1:]])


def test_rows_repeated_for_lost_messages_keep_their_stamps():
    time = np.arange(400) / 30
    position = np.column_stack([np.sin(3 * time), np.cos(2 * time)])
    for row in (100, 230, 300):
        position[row] = position[row - 1]
    times, fresh = used_times(time, *judged_times(time, position, position))
    assert list(np.flatnonzero(~fresh)) == [100, 230, 300]
    np.testing.assert_array_equal(times, time)


@pytest.mark.parametrize("seed", [0, 1])
def test_splines_do_not_overshoot_between_close_stamps(seed):
    rng = np.random.default_rng(seed)
    time = np.arange(2000) / 250.0
    stamps = np.maximum.accumulate(time + rng.normal(0, 3e-3, len(time))) + 1e-7 * np.arange(len(time))
    values = np.sin(time)[:, None]
    delay = np.abs(stamps - time).max()
    for segment in resample(stamps, values).segments:
        assert np.abs(segment.values[:, 0] - np.sin(segment.time)).max() < 1.5 * delay
    between = np.linspace(stamps[0], stamps[-1], 20000)
    assert np.nanmax(np.abs(GapSpline(stamps, values)(between)[:, 0] - np.sin(between))) < 1.5 * delay


def test_regular_stamps_keep_their_median_step():
    """Conversions of durations to samples depend on the last digit of the step, so short recordings keep it."""
    time = 1.0 + np.arange(2500) / 250.0
    result = resample(time, np.sin(time))
    assert result.step == np.median(np.diff(time))
    np.testing.assert_allclose(result.segments[0].time, time, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(result.segments[0].values, np.sin(time))


def test_regular_stamps_of_an_hour_are_met_to_the_end():
    time = 1e3 + np.arange(3_600_000) / 1000.0
    (segment,) = resample(time, np.sin(time)).segments
    assert len(segment.time) == len(time)
    assert abs(segment.time[-1] - time[-1]) < 1e-9
    np.testing.assert_array_equal(segment.values[-1000:], np.sin(time[-1000:]))


def test_regular_samples_are_not_copied():
    time = 0.001 * np.arange(50_000)
    values = np.random.default_rng(0).normal(size=(50_000, 2))
    (segment,) = resample(time, values).segments
    assert np.shares_memory(segment.values, values)
    values[7, 1] = np.nan
    assert not any(np.isnan(part.values).any() for part in resample(time, values).segments)
