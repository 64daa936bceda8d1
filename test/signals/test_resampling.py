"""test_resampling."""

import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import GapSpline, resample, sample_times, stale_rows
from dynid_ros.signals.resampling import judged_times, used_times

TIME = np.arange(0, 4, 1 / 250)


def shake(time):
    """(N, 2) of 25 Hz, a tenth of the rate."""
    return np.column_stack([np.sin(2 * np.pi * 25 * time), 3 * np.cos(2 * np.pi * 25 * time)])


def amplitude(time, values):
    basis = np.column_stack([np.sin(2 * np.pi * 25 * time), np.cos(2 * np.pi * 25 * time)])
    return np.hypot(*np.linalg.lstsq(basis, values, rcond=None)[0])


@pytest.mark.parametrize("part", [0.1, 0.25, 0.5])
def test_amplitude_lost_at_a_fraction_of_a_sample(part):
    """Linear interpolation would lose 5 % of motion at a tenth of the rate in the middle of an interval."""
    at = TIME[50:-50] + part / 250
    cubic = amplitude(at, GapSpline(TIME, shake(TIME))(at)) / [1, 3]
    np.testing.assert_allclose(cubic, 1, atol=1.2e-3)


def test_passes_through_its_samples_and_stays_open_across_gaps():
    values = shake(TIME)
    values[100:140, 0] = np.nan
    values[300:302, 1] = np.nan  # short enough to bridge
    values[:20] = np.nan
    spline = GapSpline(TIME, values)
    found = spline(TIME)
    known = np.isfinite(values)
    np.testing.assert_allclose(found[known], values[known], atol=1e-9)
    assert np.array_equal(np.isfinite(found[:, 0]), known[:, 0])
    np.testing.assert_allclose(found[300:302, 1], shake(TIME)[300:302, 1], atol=0.15)
    assert np.isnan(spline([-0.1, TIME[-1] + 0.1])).all()
    between = spline((TIME[:-1] + TIME[1:]) / 2)
    assert np.isnan(between[99:140, 0]).all()
    assert np.isfinite(between[141:, 0]).all()
    assert np.isnan(GapSpline(TIME, values, longest_gap=0.004)(TIME)[300:302, 1]).all()


def test_derivative():
    at = TIME[100:-100] + 0.001
    slow = GapSpline(TIME, np.sin(2 * np.pi * TIME)[:, np.newaxis])
    np.testing.assert_allclose(slow(at, 1)[:, 0], 2 * np.pi * np.cos(2 * np.pi * at), atol=1e-4)


def test_column_without_samples():
    values = np.column_stack([np.full(len(TIME), np.nan), TIME])
    found = GapSpline(TIME, values)(TIME)
    assert np.isnan(found[:, 0]).all()
    np.testing.assert_allclose(found[:, 1], TIME, atol=1e-12)


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


GAPPY = np.delete(CLOCK, [100, 101, 2000])


@pytest.mark.parametrize(
    ("stamps", "positions", "reason"),
    [
        *((JITTERED, motion(JITTERED, noise), "") for noise in (0.0, 1e-7, 1e-4)),
        (JITTERED, motion(CLOCK, 1e-2), ""),
        (GAPPY, motion(GAPPY), "missing"),
    ],
    ids=["exact", "fine", "noisy", "noise hides the jitter", "missing samples"],
)
def test_true_stamps_are_kept(stamps, positions, reason):
    times = sample_times(stamps, positions)
    assert not times.steady
    assert reason in times.reason
    np.testing.assert_array_equal(times.time, stamps)


def jittered(n=1500, seed=0):
    """UR-like stamps: 10 ms with 12 ms mixed in."""
    rng = np.random.default_rng(seed)
    return 5 + np.cumsum(rng.choice([0.010, 0.012], n, p=[0.7, 0.3]))


def signal(time):
    return np.column_stack([np.sin(2 * np.pi * 3 * time), np.cos(2 * np.pi * 5 * time)])


def test_jitter_is_undone_far_better_than_by_linear_interpolation():
    time = jittered()
    result = resample(time, signal(time))
    (segment,) = result.segments
    assert result.step == pytest.approx(0.010)
    assert result.gaps.shape == (0, 2)
    np.testing.assert_allclose(np.diff(segment.time), 0.010, atol=1e-9)
    truth = signal(segment.time)
    linear = np.column_stack([np.interp(segment.time, time, column) for column in signal(time).T])
    inner = slice(20, -20)
    assert np.std((segment.values - truth)[inner]) < np.std((linear - truth)[inner]) / 30


def test_no_smear_where_linear_interpolation_loses_power():
    time = jittered(20_000)
    noise = np.random.default_rng(4).normal(size=len(time))
    (segment,) = resample(time, noise).segments
    assert np.var(segment.values) == pytest.approx(1, abs=0.15)
    assert np.var(np.interp(segment.time, time, noise)) < 0.75


def test_samples_on_the_grid_stay_as_they_are():
    time = 0.01 * np.arange(100)
    values = np.random.default_rng(0).normal(size=(100, 2, 3))
    (segment,) = resample(time, values).segments
    np.testing.assert_allclose(segment.values, values, atol=1e-9)


def test_gaps_are_left_open_and_reported():
    time = 0.01 * np.arange(1000)
    keep = np.ones(1000, bool)
    keep[300:340] = False
    keep[600:602] = False
    keep[[990, 991, 992, 993]] = False
    keep[[996, 997, 998]] = False
    result = resample(time[keep], signal(time[keep]))
    assert [len(part.time) for part in result.segments] == [300, 650]
    np.testing.assert_allclose(result.gaps, [[2.99, 3.40], [9.89, 9.99]])
    for part in result.segments:
        assert np.max(np.abs(part.values - signal(part.time))) < 5e-3


def test_gap_limit_can_be_set():
    time = np.delete(0.01 * np.arange(100), slice(50, 54))
    assert len(resample(time, signal(time)).segments) == 2
    assert len(resample(time, signal(time), longest_gap=0.05).segments) == 1


def test_missing_values_are_gaps_but_unrecorded_columns_stay():
    time = 0.01 * np.arange(100)
    values = np.column_stack([signal(time), np.full(100, np.nan)])
    values[40:50, 0] = np.nan
    result = resample(time, values)
    assert [len(part.time) for part in result.segments] == [40, 50]
    assert all(np.isnan(part.values[:, 2]).all() and np.isfinite(part.values[:, :2]).all() for part in result.segments)


def test_other_step():
    time = jittered()
    result = resample(time, signal(time), step=0.004)
    assert result.rate == pytest.approx(250)
    assert result.segments[0].time[-1] <= time[-1] + 1e-9 < result.segments[0].time[-1] + 0.004


@pytest.mark.parametrize("time", [[0, 1, 1, 2, 3], [0, 1, 2], [0, 2, 1, 3, 4], [0, np.nan, 2, 3, 4]])
def test_bad_time(time):
    with pytest.raises(RecordingError, match="strictly increasing"):
        resample(time, np.zeros((len(time), 1)))
    with pytest.raises(RecordingError, match="strictly increasing"):
        sample_times(np.array(time), np.zeros((len(time), 1)))
    with pytest.raises(RecordingError, match="strictly increasing"):
        GapSpline(time, np.zeros((len(time), 1)))


def test_nothing_but_gaps():
    with pytest.raises(RecordingError, match="longer than"):
        resample(np.arange(10.0), np.zeros(10), longest_gap=0.5)


def test_stale_rows_but_not_rest():
    values = np.random.default_rng(0).normal(size=(100, 2))
    values[10] = values[11] = values[9]
    values[20, 0] = values[19, 0]
    values[50:80] = values[49]
    assert np.flatnonzero(stale_rows(values)).tolist() == [10, 11]
    assert stale_rows(values, longest_run=30).sum() == 32


def held_rows(period, clock):
    """Which samples of a robot a logger holds, in whose period it logs."""
    return np.floor((np.arange(400) * clock + 0.3 * period) / period).astype(int)


@pytest.mark.parametrize(("robot", "logger"), [(0.034, 0.0333333), (0.008, 0.0033)])
def test_a_logger_that_holds_the_last_message_is_undone(robot, logger):
    """One row in fifty repeated, or more than half of them: stamps are late by up to a period of the logger."""
    held = held_rows(robot, logger)
    time = logger * np.arange(len(held))
    true = robot * held
    position = np.column_stack([np.sin(3 * true), np.cos(2 * true)])
    found, fresh = used_times(time, *judged_times(time, position, position))
    np.testing.assert_array_equal(fresh, np.diff(held, prepend=-1) > 0)
    late = found - true
    assert np.ptp(time - true) > 0.9 * logger
    assert np.ptp(late) < 0.1 * logger
    np.testing.assert_array_equal(found[1:][~fresh[1:]], found[:-1][~fresh[1:]])


def test_rows_that_repeat_because_a_message_was_lost_keep_their_stamps():
    time = np.arange(400) / 30
    position = np.column_stack([np.sin(3 * time), np.cos(2 * time)])
    for row in (100, 230, 300):
        position[row] = position[row - 1]
    found, fresh = used_times(time, *judged_times(time, position, position))
    assert list(np.flatnonzero(~fresh)) == [100, 230, 300]
    np.testing.assert_array_equal(found, time)


@pytest.mark.parametrize("seed", [0, 1])
def test_splines_do_not_overshoot_between_bunched_stamps(seed):
    rng = np.random.default_rng(seed)
    time = np.arange(2000) / 250.0
    stamps = np.maximum.accumulate(time + rng.normal(0, 3e-3, len(time))) + 1e-7 * np.arange(len(time))
    values = np.sin(time)[:, None]
    late = np.abs(stamps - time).max()
    for segment in resample(stamps, values).segments:
        assert np.abs(segment.values[:, 0] - np.sin(segment.time)).max() < 1.5 * late
    between = np.linspace(stamps[0], stamps[-1], 20000)
    assert np.nanmax(np.abs(GapSpline(stamps, values)(between)[:, 0] - np.sin(between))) < 1.5 * late


def test_even_stamps_keep_their_median_step_while_its_rounding_is_harmless():
    """Counts of samples by a duration follow the step to the last digit, so short recordings keep theirs."""
    time = 1.0 + np.arange(2500) / 250.0
    found = resample(time, np.sin(time))
    assert found.step == np.median(np.diff(time))
    np.testing.assert_allclose(found.segments[0].time, time, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(found.segments[0].values, np.sin(time))


def test_even_stamps_of_an_hour_are_met_to_the_last():
    time = 1e3 + np.arange(3_600_000) / 1000.0
    (segment,) = resample(time, np.sin(time)).segments
    assert len(segment.time) == len(time)
    assert abs(segment.time[-1] - time[-1]) < 1e-9
    np.testing.assert_array_equal(segment.values[-1000:], np.sin(time[-1000:]))


def test_even_samples_are_taken_as_they_are():
    time = 0.001 * np.arange(50_000)
    values = np.random.default_rng(0).normal(size=(50_000, 2))
    (segment,) = resample(time, values).segments
    assert np.shares_memory(segment.values, values)
    values[7, 1] = np.nan
    assert not any(np.isnan(part.values).any() for part in resample(time, values).segments)
