import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.signals import GapSpline

TIME = np.arange(0, 4, 1 / 250)


def shake(time):
    """(N, 2) of 25 Hz, a tenth of the rate."""
    return np.column_stack([np.sin(2 * np.pi * 25 * time), 3 * np.cos(2 * np.pi * 25 * time)])


def amplitude(time, values):
    basis = np.column_stack([np.sin(2 * np.pi * 25 * time), np.cos(2 * np.pi * 25 * time)])
    return np.hypot(*np.linalg.lstsq(basis, values, rcond=None)[0])


@pytest.mark.parametrize("part", [0.1, 0.25, 0.5])
def test_amplitude_lost_at_a_fraction_of_a_sample(part):
    """Of motion at a tenth of the rate: 5 % by linear interpolation in the middle of an interval, 0.1 % by a cubic."""
    at = TIME[50:-50] + part / 250
    cubic = amplitude(at, GapSpline(TIME, shake(TIME))(at)) / [1, 3]
    linear = amplitude(at, np.column_stack([np.interp(at, TIME, column) for column in shake(TIME).T])) / [1, 3]
    # Between samples a and b, (1 − part) a + part b of a tone is exact arithmetic.
    np.testing.assert_allclose(linear, np.abs(1 - part + part * np.exp(2j * np.pi * 0.1)), rtol=1e-3)
    np.testing.assert_allclose(cubic, 1, atol=1.2e-3)
    if part == 0.5:
        assert np.all(linear < 0.952)


def test_noise_keeps_three_quarters_of_its_power_in_the_middle_of_an_interval_and_half_by_linear_interpolation():
    noise = np.random.default_rng(0).normal(size=(100_000, 1))
    time = np.arange(len(noise)) / 250
    at = time[10:-10] + 0.5 / 250
    assert np.var(GapSpline(time, noise)(at)) == pytest.approx(0.76, abs=0.02)
    assert np.var(np.interp(at, time, noise[:, 0])) == pytest.approx(0.5, abs=0.01)


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


@pytest.mark.parametrize(("time", "shape"), [([0, 1, 1, 2], (4, 1)), ([0, 1, 2], (3, 1)), ([0, 1, 2, 3], (4,))])
def test_bad_samples(time, shape):
    with pytest.raises(RecordingError, match="strictly increasing"):
        GapSpline(time, np.zeros(shape))
