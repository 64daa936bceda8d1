"""Spectra, correlation, peaks and runs of sampled signals, along the first axis; scipy.signal takes 0.4 s to import."""

from collections.abc import Callable
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from dynid_ros.files.disk_arrays import release_pages

COUNT_TOLERANCE = 1e-6
"""Tolerance of a number of samples, periods or bins that is a whole number up to rounding."""
ROUNDING = 1e-16
"""Relative size of an impulse response that is neglected."""
MAX_SETTLING_RATIO = 16
"""Largest length of the impulse responses that are computed, as a multiple of the length of the values."""


def butterworth_poles(order: int, corner: float, rate: float) -> NDArray:
    """Return the (order,) poles in the z plane of a Butterworth low-pass; corner frequency and rate in Hz."""
    analog = np.tan(np.pi * corner / rate) * analog_poles(order)
    return (1 + analog) / (1 - analog)


def analog_poles(order: int) -> NDArray:
    """Return the (order,) poles in the s plane of a Butterworth low-pass of 1 rad/s."""
    angles = np.pi * (2 * np.arange(order) + order + 1) / (2 * order)
    return np.cos(angles) + 1j * np.sin(angles)


def derivative_weights(length: int, degree: int, order: int, step: float, position: int) -> NDArray:
    """Return the (length,) weights of samples in the derivative of their least-squares polynomial at one of them.

    Args:
        length: number of samples.
        degree: of the polynomial.
        order: of the derivative.
        step: between samples, s.
        position: of the sample, from 0.
    """
    powers = (np.arange(length) - position) ** np.arange(degree + 1.0)[:, None]
    wanted = np.zeros(degree + 1)
    wanted[order] = factorial(order) / step**order
    return np.linalg.lstsq(powers, wanted, rcond=None)[0]


@lru_cache(maxsize=64)
def derivative_matrix(length: int, degree: int, order: int, step: float) -> NDArray:
    """Return the matrix (length, length) of the `derivative_weights` at each of the samples."""
    return np.stack([derivative_weights(length, degree, order, step, position) for position in range(length)])


def apply_gain(values: NDArray, gain: Callable[[NDArray], NDArray], settling: int) -> NDArray:
    """Return values (N, …) after a linear filter that starts at rest at zero.

    The product with the gain in the frequency domain is a convolution with the impulse response, without its rounding
    through poles near one and without a loop over samples.

    Args:
        values: (N, …).
        gain: function of frequencies (K,), in cycles per sample, that returns the filter's complex gain.
        settling: number of samples after which the impulse response has decayed to rounding. Where it is much longer
            than the values, they are taken as periodic: all of them depend on what was before them.
    """
    size = next_fast_len(len(values) + min(settling, MAX_SETTLING_RATIO * len(values)), real=True)
    spectrum = rfft(values, size, axis=0)
    spectrum *= gain(np.fft.rfftfreq(size)).reshape(-1, *[1] * (values.ndim - 1))
    return irfft(spectrum, size, axis=0)[: len(values)]


def power_density(values: NDArray, rate: float, window: NDArray, degree: int = 1) -> tuple[NDArray, NDArray]:
    """Return frequencies (K,), Hz, and one-sided power densities (K, n) of values (N, n), by Welch's average.

    Args:
        values: (N, n).
        rate: Hz.
        window: (L,), L <= N, of the parts, which overlap by half.
        degree: of the polynomial that is taken off each part.
    """
    length = len(window)
    trend = np.linalg.qr(np.vander(np.linspace(-1, 1, length), degree + 1))[0]

    total = np.zeros((length // 2 + 1, values.shape[1]))
    starts = range(0, len(values) - length + 1, length - length // 2)
    for start in starts:
        part = values[start : start + length] - values[start]  # rounding must not look like motion at standstill
        total += np.abs(np.fft.rfft(window[:, None] * (part - trend @ (trend.T @ part)), axis=0)) ** 2
        release_pages()
    density = total / (len(starts) * rate * np.sum(window**2))
    density[1 : (length + 1) // 2] *= 2
    return np.fft.rfftfreq(length, 1 / rate), density


def squared_hann(length: int) -> NDArray:
    """Return a (length,) window of which slow motion leaks into high frequencies as ω⁻¹⁰ in power."""
    return (0.5 + 0.5 * np.cos(np.linspace(-np.pi, np.pi, length + 1)[:-1])) ** 2


def correlate(first: NDArray, second: NDArray) -> NDArray:
    """Return the (N + M − 1,) sums of products of the first (N,) with the second (M,) at lags 1 − M to N − 1."""
    length = len(first) + len(second) - 1
    size = 1 << (length - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(first, size) * np.fft.rfft(second[::-1], size), size)[:length]


def peaks(values: NDArray) -> NDArray:
    """Return the indices of values (N,) above both neighbours; of a plateau, its middle."""
    starts = np.flatnonzero(np.concatenate([[True], np.diff(values) != 0]))
    ends = np.append(starts[1:], len(values)) - 1
    level = values[starts]
    tops = 1 + np.flatnonzero((level[1:-1] > level[:-2]) & (level[1:-1] > level[2:]))
    return (starts[tops] + ends[tops]) // 2


def true_runs(mask: NDArray) -> NDArray:
    """Return (K, 2) of each run of True in a mask (N,): its first index and one past its last."""
    return np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2)


def longest_run(mask: NDArray) -> tuple[int, int]:
    """Return first index and length of the longest run of True in a mask (N,); zeros where there is none."""
    found = true_runs(mask)
    if not len(found):
        return 0, 0
    first, end = found[np.argmax(np.diff(found, axis=1))]
    return int(first), int(end - first)


SPREAD_CELLS = 12
"""Cells of the grid to either side over which `FourierSums` spreads a sample: errors are 1e-12."""
MIN_FREQUENCIES = SPREAD_CELLS
"""Smallest number of frequencies, for a grid that is wider than a spread sample."""


class FourierSums:
    """Sums of samples x times exp(-i k phase) for k from 0 to K - 1, at M phases that need not be uniform.

    Each sample is spread over a uniform grid by a Gaussian. One fast transform of the grid, divided by that of the
    Gaussian, gives the sums (Greengard and Lee 2004, equation 9 ff.). Memory and time grow with M and K, not with M K.

    Args:
        phases: Phases (M,), 0 to 2 π.
        count: Number K of frequencies.
    """

    def __init__(self, phases: NDArray, count: int) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415  # only fits of flexible joints need it

        self._count = count
        modes = 2 * max(count, MIN_FREQUENCIES)
        self._cells = 2 * modes
        width = np.pi * SPREAD_CELLS / (3.0 * modes**2)
        place = phases * self._cells / (2 * np.pi)
        cells = np.floor(place).astype(int)[:, None] + np.arange(1 - SPREAD_CELLS, SPREAD_CELLS + 1)
        distance = (place[:, None] - cells) * (2 * np.pi / self._cells)
        ends = np.arange(0, cells.size + 1, cells.shape[1])
        weights = np.exp(-(distance**2) / (4 * width)).ravel()
        shape = (len(phases), self._cells)
        self._spread = csr_array((weights, cells.ravel() % self._cells, ends), shape=shape).T.tocsr()
        self._scale = np.sqrt(np.pi / width) * np.exp(width * np.arange(count) ** 2.0) / self._cells

    def sums(self, samples: NDArray) -> NDArray:
        """Return the complex sums (K, ...) of real samples (M,) or (M, p)."""
        spectrum = np.fft.rfft(self._spread @ samples, axis=0)[: self._count]
        return spectrum * self._scale.reshape(-1, *[1] * (samples.ndim - 1))
