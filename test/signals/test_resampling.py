import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import resample, stale_rows


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
