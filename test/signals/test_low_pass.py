import numpy as np
import pytest
from scipy.signal import butter, sosfreqz

from dynid_ros.errors import RecordingError
from dynid_ros.signals import LowPass

RATE = 500.0


def tone(frequency, n=5000):
    return np.sin(2 * np.pi * frequency * np.arange(n) / RATE + 0.3)


@pytest.mark.parametrize("frequency", [2, 10, 14, 20, 30])
def test_gain_without_phase(frequency):
    low_pass = LowPass(10, RATE)
    values = tone(frequency)
    inner = slice(1000, 4000)
    expected = low_pass.gain(frequency) * values
    np.testing.assert_allclose(low_pass.filter(values)[inner], expected[inner], atol=1e-5)


@pytest.mark.parametrize("order", [1, 2, 4, 6])
@pytest.mark.parametrize("cutoff", [1.0, 40.0, 200.0])
def test_gain_at_the_cutoff_and_of_scipy(order, cutoff):
    low_pass = LowPass(cutoff, RATE, order)
    assert low_pass.gain(cutoff) == pytest.approx(1 / np.sqrt(2))
    frequencies = np.array([0.3, 5.0, 50.0, 180.0])
    corner = low_pass._warped_corner
    sections = butter(order, np.arctan(corner) / np.pi * RATE, fs=RATE, output="sos")
    _, response = sosfreqz(sections, frequencies, fs=RATE)
    np.testing.assert_allclose(low_pass.gain(frequencies), np.abs(response) ** 2, rtol=1e-6, atol=1e-12)


def test_any_shape_along_any_axis_like_a_single_column():
    low_pass = LowPass(20, RATE)
    values = np.random.default_rng(0).normal(size=(400, 2, 5))
    single = low_pass.filter(values[:, 1, 3])
    np.testing.assert_allclose(low_pass.filter(values)[:, 1, 3], single, atol=1e-12)
    np.testing.assert_allclose(low_pass.filter(np.moveaxis(values, 0, 2), axis=2)[1, 3], single, atol=1e-12)
    assert low_pass.reduce(np.moveaxis(values, 0, 1), axis=1).shape == (2, len(single[low_pass.kept(400)]), 5)


def test_a_linear_model_survives():
    rng = np.random.default_rng(1)
    regressor, parameters = rng.normal(size=(2000, 3, 7)), rng.normal(size=7)
    low_pass = LowPass(30, RATE)
    np.testing.assert_allclose(
        low_pass.reduce(regressor @ parameters), low_pass.reduce(regressor) @ parameters, atol=1e-10
    )


@pytest.mark.parametrize("cutoff", [0.5, 5.0, 40.0])
def test_what_is_kept_does_not_know_the_rest_of_the_world(cutoff):
    """A record cut out of a longer one gives the same samples but for 1 % of the disturbance at the cut."""
    low_pass = LowPass(cutoff, RATE)
    long = np.cumsum(np.random.default_rng(2).normal(size=20_000))
    whole, part = low_pass.filter(long), low_pass.filter(long[8000:14_000])
    error = np.abs(part - whole[8000:14_000])
    assert np.max(error[low_pass.edge : -low_pass.edge]) < 0.03 * np.max(error)


def test_decimation_has_no_aliases():
    low_pass = LowPass(10, RATE)
    kept = low_pass.kept(20_000)
    assert kept.step == low_pass.decimation == 12
    assert low_pass.gain(RATE / 24) <= 0.01 < low_pass.gain(RATE / 26)
    new_nyquist = RATE / low_pass.decimation / 2
    aliased = low_pass.reduce(tone(new_nyquist * 1.02, 20_000))
    assert np.max(np.abs(aliased)) < 0.01
    passed = low_pass.reduce(tone(3, 20_000))
    np.testing.assert_allclose(passed, tone(3, 20_000)[kept], atol=2e-3)


def test_no_decimation_when_there_is_no_room():
    assert LowPass(200, RATE).decimation == 1


@pytest.mark.parametrize("cutoff", [0, -1, 250, 300, np.nan])
def test_impossible_cutoff(cutoff):
    with pytest.raises(RecordingError, match="between 0 and 250 Hz"):
        LowPass(cutoff, RATE)


def test_bad_values():
    low_pass = LowPass(10, RATE)
    with pytest.raises(RecordingError, match="1 values that are not finite"):
        low_pass.filter(np.r_[np.zeros(50), np.nan])
    with pytest.raises(RecordingError, match="too short for a low-pass at 10 Hz"):
        low_pass.reduce(np.zeros(100))
