"""Compare derivatives, spectra and peaks with scipy.signal."""

import numpy as np
import pytest
from scipy import signal

from dynid_ros.signals import spectra

RNG = np.random.default_rng(0)
VALUES = np.cumsum(RNG.standard_normal((700, 3)), axis=0) + 50.0


def assert_close(computed, expected):
    """Check equality except for rounding."""
    np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("corner", [0.2, 5.0, 45.0])
def test_butterworth_poles_match_scipy(order, corner):
    poles = signal.butter(order, corner, fs=100.0, output="zpk")[1]
    assert_close(np.sort(np.abs(spectra.butterworth_poles(order, corner, 100.0))), np.sort(np.abs(poles)))


@pytest.mark.parametrize(("length", "degree", "order"), [(5, 2, 1), (7, 6, 1), (7, 6, 2), (51, 2, 2)])
def test_derivative_weights_match_scipy(length, degree, order):
    for position in (0, length // 2, length - 1):
        expected = signal.savgol_coeffs(length, degree, deriv=order, delta=0.004, pos=position, use="dot")
        assert_close(spectra.derivative_weights(length, degree, order, 0.004, position), expected)


@pytest.mark.parametrize("length", [128, 129, 700])
def test_power_density_matches_scipy(length):
    window = signal.windows.hann(length, sym=False) ** 2
    assert_close(spectra.squared_hann(length), window)
    frequency, density = spectra.power_density(VALUES, 100.0, window)
    expected = signal.welch(VALUES, 100.0, window, axis=0, detrend="linear")
    assert_close(frequency, expected[0])
    assert_close(density, expected[1])
    frequency, density = spectra.power_density(VALUES[:length], 100.0, np.ones(length), degree=0)
    assert_close(density, signal.periodogram(VALUES[:length], 100.0, axis=0)[1])


def test_correlation_and_peaks_match_scipy():
    a = VALUES[:, 0]
    b = VALUES[:333, 1]
    assert_close(spectra.correlate(a, b), signal.correlate(a, b))
    rough = np.round(VALUES[:, 2])
    np.testing.assert_array_equal(spectra.peaks(rough), signal.find_peaks(rough)[0])


@pytest.mark.parametrize(
    ("mask", "runs", "longest"),
    [("", [], (0, 0)), ("....", [], (0, 0)), ("#.##", [(0, 1), (2, 4)], (2, 2)), (".##.#", [(1, 3), (4, 5)], (1, 2))],
)
def test_finds_runs_of_true_values(mask, runs, longest):
    values = np.array([sign == "#" for sign in mask], dtype=bool)
    assert [tuple(run) for run in spectra.true_runs(values)] == runs
    assert spectra.longest_run(values) == longest


@pytest.mark.parametrize(("samples", "frequencies"), [(50, 5), (2000, 300)])
def test_fourier_sums_match_their_definition(samples, frequencies):
    phases = np.random.default_rng(samples).uniform(0.0, 2 * np.pi, samples)
    values = np.random.default_rng(1).standard_normal((samples, 2))
    expected = np.exp(-1j * np.outer(np.arange(frequencies), phases)) @ values
    sums = spectra.FourierSums(phases, frequencies)
    np.testing.assert_allclose(sums.sums(values), expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(sums.sums(values[:, 0]), expected[:, 0], rtol=0, atol=1e-10 * np.abs(expected).max())
