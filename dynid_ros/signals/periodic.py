"""Base frequency, average period and finite Fourier series of a periodic record."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.linalg import lstsq, qr
from scipy.optimize import minimize_scalar

from dynid_ros.errors import RecordingError
from dynid_ros.signals.spectra import correlate


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """Offset and harmonics of a base frequency (Swevers et al. 1997; Olsen, Swevers & Verdonck 2002).

    Attributes:
        base_frequency: base frequency, Hz.
        offset: (n,) mean.
        cosines: (H, n) amplitudes of the cosines.
        sines: (H, n) amplitudes of the sines.
        residual: (n,) standard deviation of the residual, with its degrees of freedom.
    """

    base_frequency: float
    offset: NDArray
    cosines: NDArray
    sines: NDArray
    residual: NDArray

    @property
    def n_harmonics(self) -> int:
        """Number of harmonics H."""
        return len(self.cosines)

    @staticmethod
    def fit(time: ArrayLike, values: ArrayLike, base_frequency: float, n_harmonics: int) -> "FourierSeries":
        """Fit the harmonics by least squares; neither uniform times nor whole periods are needed.

        Args:
            time: (N,) times, s.
            values: (N, n) samples.
            base_frequency: base frequency, Hz.
            n_harmonics: number of harmonics H; for friction torque, as many as the low-pass passes.

        Raises:
            RecordingError: less than a period, or a harmonic at or above half the sampling rate.
        """
        time = np.asarray(time, dtype=float)
        values = np.asarray(values, dtype=float)
        check_harmonics(time, base_frequency, n_harmonics)
        basis = harmonic_basis(time, base_frequency, n_harmonics)
        coefficients, *_ = lstsq(basis, values)
        residual = np.linalg.norm(values - basis @ coefficients, axis=0)
        dof = max(1, len(time) - basis.shape[1])
        return FourierSeries(
            float(base_frequency),
            coefficients[0],
            coefficients[1 : n_harmonics + 1],
            coefficients[n_harmonics + 1 :],
            residual / np.sqrt(dof),
        )

    def evaluate(self, time: ArrayLike, derivative: int = 0) -> NDArray:
        """Return the series (N, n), or its `derivative`-th derivative, at times (N,), s."""
        rates = 2 * np.pi * self.base_frequency * np.arange(1, self.n_harmonics + 1)
        amplitudes = (self.cosines - 1j * self.sines) * ((1j * rates) ** derivative)[:, None]
        oscillation = np.exp(1j * np.outer(np.asarray(time), rates)) @ amplitudes
        return oscillation.real + (self.offset if derivative == 0 else 0.0)


def harmonic_basis(time: NDArray, base_frequency: float, n_harmonics: int) -> NDArray:
    """Return ones, cosines and sines (N, 1 + 2H) at times (N,), s."""
    angles = 2 * np.pi * base_frequency * np.outer(time, np.arange(1, n_harmonics + 1))
    return np.hstack([np.ones((len(time), 1)), np.cos(angles), np.sin(angles)])


def check_harmonics(time: NDArray, base_frequency: float, n_harmonics: int) -> None:
    """Refuse harmonics that samples at times (N,), s, cannot distinguish.

    Raises:
        RecordingError: less than a period, or a harmonic at or above half the mean sampling rate.
    """
    duration = (time[-1] - time[0]) * len(time) / max(1, len(time) - 1)
    rate = len(time) / duration if duration > 0 else 0.0
    if n_harmonics < 1 or base_frequency <= 0 or base_frequency * duration < 1 - 1e-6:
        raise RecordingError(
            f"{duration:.4g} s do not hold a period of {base_frequency:g} Hz with {n_harmonics} harmonics: expected "
            "at least one of both; record whole periods"
        )
    if 2 * n_harmonics * base_frequency >= rate:
        raise RecordingError(
            f"harmonic {n_harmonics} of {base_frequency:g} Hz is not below half of the {rate:.4g} samples per second: "
            f"use at most {int(np.ceil(rate / (2 * base_frequency))) - 1} harmonics"
        )


MAX_PERIOD_CHANGE = 0.1
"""Largest mean square of the change after a period, as a fraction of that between unrelated samples."""


def base_frequency(time: ArrayLike, values: ArrayLike, n_harmonics: int, guess: float | None = None) -> float:
    """Estimate the base frequency with which a Fourier series fits best.

    Least squares with the amplitudes projected out (variable projection): for white noise this reaches the Cramér–Rao
    bound, far below the resolution of a spectrum.

    Args:
        time: (N,) increasing times of at least two periods, s.
        values: (N, n) periodic samples, such as positions, weighted by the variance of each column.
        n_harmonics: number of harmonics of the series.
        guess: base frequency, Hz, exact to one sample of the period; None: the shortest lag after which the record
            repeats.

    Raises:
        RecordingError: the record does not repeat, or no joint moves.
    """
    time = np.asarray(time, dtype=float)
    columns = np.asarray(values, dtype=float).reshape(len(time), -1)
    moving = np.ptp(columns, axis=0) > 0
    if not moving.any():
        raise RecordingError("no period: the values are constant; record a periodic motion")
    columns = columns[:, moving] - columns[:, moving].mean(axis=0)
    columns /= columns.std(axis=0)
    step = (time[-1] - time[0]) / (len(time) - 1)
    if guess is None:
        guess = 1 / (step * _repeat(_uniform(time, columns)))
    check_harmonics(time, guess, n_harmonics)

    def unexplained(frequency: float) -> float:
        basis = qr(harmonic_basis(time, frequency, n_harmonics), mode="economic", check_finite=False)[0]
        return float(np.sum(columns**2) - np.sum((basis.T @ columns) ** 2))

    # The guess is good to a sample of the period; the valley is as narrow as the highest harmonic over the record.
    reach = 1.5 * step * guess**2
    valley = 0.25 / (n_harmonics * (time[-1] - time[0]))
    count = int(np.ceil(reach / valley))
    grid = guess + valley * np.arange(-count, count + 1)
    grid = grid[grid > 0]
    best = grid[np.argmin([unexplained(frequency) for frequency in grid])]
    bounds = (best - valley, best + valley)
    return float(minimize_scalar(unexplained, bounds=bounds, method="bounded", options={"xatol": 1e-9 * best}).x)


def _uniform(time: NDArray, values: NDArray) -> NDArray:
    return CubicSpline(time, values)(np.linspace(time[0], time[-1], len(time)))


def _repeat(values: NDArray) -> int:
    """Return the shortest lag, in samples, with a dip of the mean square difference (de Cheveigné & Kawahara 2002)."""
    n = len(values)
    longest = n // 2
    overlap = sum(correlate(column, column)[n - 1 : n + longest] for column in values.T)
    energy = np.concatenate([[0.0], np.cumsum(np.sum(values**2, axis=1))])
    lags = np.arange(longest + 1)
    difference = (energy[n - lags] + energy[n] - energy[lags] - 2 * overlap) / ((n - lags) * 2 * values.shape[1])
    # Around lag 0 every smooth signal resembles itself: the search starts beyond that valley.
    left = np.flatnonzero(difference > 0.5)
    if left.size:
        dips = difference[left[0] :]
        if np.min(dips) < MAX_PERIOD_CHANGE:
            threshold = np.min(dips) + 0.2 * MAX_PERIOD_CHANGE
            first = int(np.argmax(dips < threshold))
            after = np.flatnonzero(dips[first:] >= threshold)
            end = first + int(after[0]) if after.size else len(dips)
            return int(left[0] + first + np.argmin(dips[first:end]))
    raise RecordingError(
        f"no period: the record does not repeat within half of its {n} samples; record at least two periods, "
        "or give the base frequency"
    )
