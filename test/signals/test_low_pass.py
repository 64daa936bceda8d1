"""Test the zero-phase low-pass and the choice of its cutoff frequency."""

import numpy as np
import pytest
from scipy.signal import butter, savgol_filter, sosfiltfilt, sosfreqz

from dynid_ros.errors import RecordingError
from dynid_ros.signals import LowPass, choose_cutoff
from dynid_ros.signals.low_pass import local_derivative

RATE_HZ = 500.0


def create_motion(rate, highest, noise, seconds=30.0, seed=0):
    """Return noisy positions (N, 2): harmonics up to `highest` and up to half of it, of equal acceleration."""
    rng = np.random.default_rng(seed)
    time = np.arange(0, seconds, 1 / rate)
    columns = []
    for top in (highest, highest / 2):
        f = np.arange(0.1, top + 0.01, 0.1)
        amplitudes = 1 / (2 * np.pi * f) ** 2
        columns.append(np.sin(2 * np.pi * np.outer(time, f) + rng.uniform(0, 2 * np.pi, len(f))) @ amplitudes)
    q = np.column_stack(columns)
    return q + noise * rng.normal(size=q.shape)


@pytest.mark.parametrize(
    ("rate", "noise"), [(100.0, 0.0), (100.0, 1e-5), (100.0, 1e-4), (1000.0, 1e-5), (1000.0, 1e-4), (5000.0, 0.0)]
)
def test_finds_the_bandwidth_of_the_motion(rate, noise):
    choice = choose_cutoff(create_motion(rate, 5.0, noise), rate)
    assert choice.bands[0] == pytest.approx(5.0, abs=0.4)
    assert choice.bands[1] == pytest.approx(2.5, abs=0.4)
    assert choice.low_pass.gain(choice.bands[0]) == pytest.approx(0.99)
    assert f"{choice.low_pass.cutoff:.3g} Hz" in choice.reason
    assert "number 1" in choice.reason


def test_ignores_joints_at_rest():
    q = create_motion(200.0, 3.0, 1e-5)
    q[:, 1] = 1e-4 * np.random.default_rng(1).normal(size=len(q))
    choice = choose_cutoff(q, 200.0)
    assert np.isnan(choice.bands[1])
    assert choice.bands[0] == pytest.approx(3.0, abs=0.4)


class TestSmoothingCutoffs:
    """A joint with harmonics up to 6 Hz, and a slow one whose noise is two thirds of its acceleration's power."""

    def choose_cutoffs(self, noise, vibration=0.0):
        rng = np.random.default_rng(4)
        time = np.arange(0, 30, 1 / RATE_HZ)
        fast = sum(np.sin(2 * np.pi * f * time + f) / f**2 for f in (0.7, 1.9, 4.1, 6.0))
        slow = 0.01 * np.sin(2 * np.pi * 0.6 * time) + vibration * np.sin(2 * np.pi * 13.0 * time)
        q = np.column_stack([fast, slow]) + np.array([1e-5, noise]) * rng.normal(size=(len(time), 2))
        return choose_cutoff(q, RATE_HZ).smoothing_cutoffs(20.0, 50.0)

    def test_noise_of_slow_joints_is_reduced_to_a_thousandth(self):
        fast, slow = self.choose_cutoffs(4e-5)
        acceleration = 0.01 * (2 * np.pi * 0.6) ** 2 / np.sqrt(2)
        noise = (4e-5) ** 2 * 2 / RATE_HZ * (2 * np.pi) ** 4 * slow**5 / 5
        assert fast == 50.0
        assert noise / acceleration**2 == pytest.approx(1e-3, rel=0.3)

    def test_harmless_noise_is_not_smoothed(self):
        assert (self.choose_cutoffs(5e-7) == 50.0).all()

    def test_vibration_is_not_smoothed(self):
        assert self.choose_cutoffs(4e-5, vibration=1e-4)[1] > 15.0


def test_remarks_on_motion_too_fast_for_the_rate():
    choice = choose_cutoff(create_motion(20.0, 8.5, 1e-6), 20.0)
    assert choice.low_pass.cutoff == pytest.approx(8.0)
    assert "record faster" in choice.reason


def test_motion_in_one_direction_counts():
    """The joint accelerates only at the beginning, so the rest is a trend."""
    time = np.arange(0.0, 4.0, 0.001)
    rising = np.minimum(time, 0.3)
    q = 0.5 * (rising**2 / 0.6 + np.maximum(time - 0.3, 0.0)) + np.random.default_rng(0).normal(0.0, 1e-4, len(time))
    choice = choose_cutoff(q[:, None], 1000.0)
    assert 1.0 < choice.bands[0] < 8.0


def create_tone(frequency, n=5000):
    """Return a sinusoid of unit amplitude."""
    return np.sin(2 * np.pi * frequency * np.arange(n) / RATE_HZ + 0.3)


@pytest.mark.parametrize("frequency", [2, 10, 14, 20, 30])
def test_filter_has_gain_and_no_phase(frequency):
    low_pass = LowPass(10, RATE_HZ)
    values = create_tone(frequency)
    inner = slice(1000, 4000)
    expected = low_pass.gain(frequency) * values
    np.testing.assert_allclose(low_pass.filter(values)[inner], expected[inner], atol=1e-5)


@pytest.mark.parametrize("order", [1, 2, 4, 6])
@pytest.mark.parametrize("cutoff", [1.0, 40.0, 200.0])
def test_gain_matches_scipy(order, cutoff):
    low_pass = LowPass(cutoff, RATE_HZ, order)
    assert low_pass.gain(cutoff) == pytest.approx(1 / np.sqrt(2))
    frequencies = np.array([0.3, 5.0, 50.0, 180.0])
    corner = low_pass._warped_corner
    sections = butter(order, np.arctan(corner) / np.pi * RATE_HZ, fs=RATE_HZ, output="sos")
    _, response = sosfreqz(sections, frequencies, fs=RATE_HZ)
    np.testing.assert_allclose(low_pass.gain(frequencies), np.abs(response) ** 2, rtol=1e-6, atol=1e-12)


def test_filters_any_shape_along_any_axis():
    low_pass = LowPass(20, RATE_HZ)
    values = np.random.default_rng(0).normal(size=(400, 2, 5))
    single = low_pass.filter(values[:, 1, 3])
    np.testing.assert_allclose(low_pass.filter(values)[:, 1, 3], single, atol=1e-12)
    np.testing.assert_allclose(low_pass.filter(np.moveaxis(values, 0, 2), axis=2)[1, 3], single, atol=1e-12)
    assert low_pass.reduce(np.moveaxis(values, 0, 1), axis=1).shape == (2, len(single[low_pass.kept(400)]), 5)


@pytest.mark.parametrize("cutoff", [0.5, 5.0, 40.0])
def test_kept_samples_do_not_depend_on_the_rest_of_the_record(cutoff):
    """A section of a longer record gives the same samples except for 1 % of the disturbance at the cut."""
    low_pass = LowPass(cutoff, RATE_HZ)
    long = np.cumsum(np.random.default_rng(2).normal(size=20_000))
    complete = low_pass.filter(long)
    section = low_pass.filter(long[8000:14_000])
    error = np.abs(section - complete[8000:14_000])
    assert np.max(error[low_pass.edge : -low_pass.edge]) < 0.03 * np.max(error)


def test_decimation_suppresses_aliases():
    low_pass = LowPass(10, RATE_HZ)
    kept = low_pass.kept(20_000)
    assert kept.step == low_pass.decimation == 12
    assert low_pass.gain(RATE_HZ / 24) <= 0.01 < low_pass.gain(RATE_HZ / 26)
    new_nyquist = RATE_HZ / low_pass.decimation / 2
    aliased = low_pass.reduce(create_tone(new_nyquist * 1.02, 20_000))
    assert np.max(np.abs(aliased)) < 0.01
    passed = low_pass.reduce(create_tone(3, 20_000))
    np.testing.assert_allclose(passed, create_tone(3, 20_000)[kept], atol=2e-3)


def test_does_not_decimate_near_the_nyquist_frequency():
    assert LowPass(200, RATE_HZ).decimation == 1


@pytest.mark.parametrize("cutoff", [0, -1, 250, 300, np.nan])
def test_refuses_invalid_cutoffs(cutoff):
    with pytest.raises(RecordingError, match="between 0 and 250 Hz"):
        LowPass(cutoff, RATE_HZ)


def test_refuses_invalid_values():
    low_pass = LowPass(10, RATE_HZ)
    with pytest.raises(RecordingError, match="1 values that are not finite"):
        low_pass.filter(np.r_[np.zeros(50), np.nan])
    with pytest.raises(RecordingError, match="too short for a low-pass at 10 Hz"):
        low_pass.reduce(np.zeros(100))


def create_two_valleys(depth, rate=100.0, seconds=32.0):
    """Return positions (N, 1) up to 4 Hz whose power of acceleration has minima near 10 and 20 Hz."""
    frequency = np.arange(0.125, 45, 0.125)
    corners = [0, 4, 9, 11, 13, 15, 19, 21, 30, 45]
    power = np.interp(frequency, corners, np.log([1, 1, 1e-6, 1e-6, 3e-3, 3e-3, 1e-6 * depth, 1e-6 * depth, 1e-2, 0.1]))
    phase = np.random.default_rng(0).uniform(0, 2 * np.pi, len(frequency))
    angle = 2 * np.pi * np.outer(np.arange(0, seconds, 1 / rate), frequency) + phase
    return np.sin(angle) @ (np.exp(power / 2) / (2 * np.pi * frequency) ** 2)[:, None]


def test_chooses_the_lower_of_two_similar_minima():
    """The lowest minimum changes between these depths and would give cutoffs of 22 or 10 Hz."""
    cutoffs = [choose_cutoff(create_two_valleys(depth), 100.0).low_pass.cutoff for depth in (0.59, 0.6, 0.61, 0.63)]
    assert max(cutoffs) < 11.0
    assert choose_cutoff(create_two_valleys(0.5), 100.0).low_pass.cutoff > 20.0


@pytest.mark.parametrize("rate", [100.0, 125.0, 200.0, 1000.0])
@pytest.mark.parametrize("change", [-1e-12, 1e-12])
def test_rounding_of_the_rate_does_not_change_the_cutoff(rate, change):
    """Lengths of 8 s and half widths of 0.15 f are whole numbers of samples and bins at usual rates."""
    for seed in range(8):
        q = create_motion(rate, 5.0, 1e-5, seed=seed)
        moved = q * (1 + 1e-9 * np.random.default_rng(seed).uniform(-1, 1, q.shape))
        first = choose_cutoff(q, rate)
        second = choose_cutoff(moved, rate * (1 + change))
        np.testing.assert_allclose(second.valleys, first.valleys, rtol=1e-9)
        assert second.low_pass.cutoff == pytest.approx(first.low_pass.cutoff, rel=1e-9)


@pytest.mark.parametrize(
    ("q", "rate", "message"),
    [
        (np.zeros((1000, 3)), 100.0, "no joint moves"),
        (1e-4 * np.random.default_rng(0).normal(size=(1000, 3)), 100.0, "no joint moves"),
        (np.zeros((63, 1)), 100.0, "at least 64"),
        (np.full((100, 1), np.nan), 100.0, "all finite"),
        (np.sin(np.arange(200.0))[:, None], 1 / 8, r"positions that are 8 s apart.*time must be in s"),
    ],
)
def test_refuses_signals_without_a_spectrum(q, rate, message):
    with pytest.raises(RecordingError, match=message):
        choose_cutoff(q, rate)


@pytest.mark.parametrize(("cutoff", "rate", "length"), [(7.0, 1000.0, 3000), (7.0, 125.0, 450), (20.0, 400.0, 500)])
def test_selected_rows_match_the_filter(cutoff, rate, length):
    low_pass = LowPass(cutoff, rate)
    values = np.cumsum(np.random.default_rng(0).normal(size=(length, 3)), axis=0)
    kept = np.arange(length)[low_pass.kept(length)]
    filtered = low_pass.filter(values)[kept]
    assert np.abs(low_pass.select(values, kept) - filtered).max() < 1e-8 * np.abs(filtered).max()


def test_smooth_signals_may_be_subsampled():
    low_pass = LowPass(7.0, 1000.0)
    time = np.arange(4001) / 1000.0
    values = np.sin(2 * np.pi * 3.0 * time)[:, None]
    kept = np.arange(len(time))[low_pass.kept(len(time))][10:-10]
    assert np.abs(low_pass.select(values[::4], kept, 4) - low_pass.filter(values)[kept]).max() < 1e-8


def test_filters_long_signals_in_blocks():
    low_pass = LowPass(20.0, 1000.0)
    values = np.cumsum(np.random.default_rng(0).normal(size=(50_000, 1)), axis=0)
    corner = np.arctan(np.tan(np.pi * 20.0 / 1000.0) / (np.sqrt(2) - 1) ** (1 / 8)) / np.pi * 1000.0
    sections = butter(4, corner, fs=1000.0, output="sos")
    complete = sosfiltfilt(sections, values, axis=0, padlen=3 * low_pass.edge)
    error = np.abs(low_pass.filter(values) - complete)
    # Forward and backward passes start from steady states of different values.
    assert error[low_pass.edge : -low_pass.edge].max() < 1e-9 * np.abs(complete).max()
    assert error.max() < 1e-6 * np.abs(complete).max()


@pytest.mark.parametrize(("length", "degree", "order"), [(7, 6, 1), (7, 6, 2), (51, 2, 1), (51, 2, 2)])
def test_local_derivatives_match_savitzky_golay(length, degree, order):
    values = np.cumsum(np.random.default_rng(0).normal(size=(120, 2)), axis=0)
    expected = savgol_filter(values, length, degree, deriv=order, delta=0.01, axis=0)
    derivative = local_derivative(values, length, degree, order, 0.01)
    assert np.abs(derivative - expected).max() < 1e-9 * np.abs(expected).max()


def test_constants_stay_exactly_constant():
    values = np.cumsum(np.random.default_rng(0).normal(size=(400, 2)), axis=0)
    values[:, 1] = 1.2345
    assert np.ptp(LowPass(3.0, 100.0).filter(values)[:, 1]) == 0
