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
        base_frequency: Hz.
        offset: (n,).
        cosines: (H, n).
        sines: (H, n).
        residual: (n,) standard deviation of what the series leaves, with its degrees of freedom.
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
        """Least-squares projection on the harmonics; time need not be uniform, nor the number of periods whole.

        Args:
            time: (N,) s.
            values: (N, n).
            base_frequency: Hz.
            n_harmonics: H; of friction torque, take as many as the low-pass leaves.

        Raises:
            RecordingError: less than a period, or a harmonic at or above half the sampling rate.
        """
        time, values = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
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
        """(N, n) value of the series, or of its `derivative`-th derivative, at `time` (N,) s."""
        rates = 2 * np.pi * self.base_frequency * np.arange(1, self.n_harmonics + 1)
        amplitudes = (self.cosines - 1j * self.sines) * ((1j * rates) ** derivative)[:, None]
        oscillation = np.exp(1j * np.outer(np.asarray(time), rates)) @ amplitudes
        return oscillation.real + (self.offset if derivative == 0 else 0.0)


def harmonic_basis(time: NDArray, base_frequency: float, n_harmonics: int) -> NDArray:
    """(N, 1 + 2H): one, cosines and sines at `time` (N,) s."""
    angles = 2 * np.pi * base_frequency * np.outer(time, np.arange(1, n_harmonics + 1))
    return np.hstack([np.ones((len(time), 1)), np.cos(angles), np.sin(angles)])


def check_harmonics(time: NDArray, base_frequency: float, n_harmonics: int) -> None:
    """Refuse what samples at `time` (N,) s cannot distinguish.

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


PERIODIC = 0.1
"""Mean square of the change after a period, in parts of that between unrelated samples, below which it is one."""


@dataclass(frozen=True, eq=False)
class PeriodAverage:
    """Mean of P periods.

    Attributes:
        time: (M,) s from the start of the period.
        mean: (M, ...).
        standard_error: (M, ...) of the mean, from the spread between periods.
        n_periods: P >= 2.
    """

    time: NDArray
    mean: NDArray
    standard_error: NDArray
    n_periods: int


def average_periods(time: ArrayLike, values: ArrayLike, base_frequency: float) -> PeriodAverage:
    """Average over all whole periods from the first sample on; leave out the run-in before.

    Args:
        time: (N,) s, increasing, without gaps.
        values: (N, ...); all that repeats: positions, torques.
        base_frequency: Hz, exact enough that the last period is in phase with the first (`base_frequency`).

    Raises:
        RecordingError: fewer than two whole periods.
    """
    time, values = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
    step = float(np.median(np.diff(time)))
    # The last sample of a period is one step before the next one: it need not be recorded twice.
    n_periods = int((time[-1] - time[0] + step) * base_frequency + 1e-6)
    if n_periods < 2:
        raise RecordingError(
            f"{time[-1] - time[0]:.4g} s hold {n_periods} whole period(s) of {base_frequency:g} Hz: "
            "expected at least 2 for an average; record longer"
        )
    n_phases = max(1, round(1 / (base_frequency * step)))
    phases = np.arange(n_periods * n_phases) / (n_phases * base_frequency)
    at = np.minimum(time[0] + phases, time[-1])
    periods = CubicSpline(time, values)(at).reshape(n_periods, n_phases, *values.shape[1:])
    spread = periods.std(axis=0, ddof=1)
    return PeriodAverage(phases[:n_phases], periods.mean(axis=0), spread / np.sqrt(n_periods), n_periods)


def base_frequency(time: ArrayLike, values: ArrayLike, n_harmonics: int, guess: float | None = None) -> float:
    """Base frequency at which a Fourier series of so many harmonics fits best.

    Least squares with the amplitudes projected out (variable projection): for white noise this reaches the Cramér–Rao
    bound, far below the resolution of a spectrum.

    Args:
        time: (N,) s, increasing; two periods at least.
        values: (N, n) that repeat, e.g. positions; each joint counts by its own variance.
        n_harmonics: of the series.
        guess: Hz, to within a sample of the period; None: the shortest lag after which the record repeats.

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
    reach, valley = 1.5 * step * guess**2, 0.25 / (n_harmonics * (time[-1] - time[0]))
    count = int(np.ceil(reach / valley))
    grid = guess + valley * np.arange(-count, count + 1)
    grid = grid[grid > 0]
    best = grid[np.argmin([unexplained(frequency) for frequency in grid])]
    bounds = (best - valley, best + valley)
    return float(minimize_scalar(unexplained, bounds=bounds, method="bounded", options={"xatol": 1e-9 * best}).x)


def _uniform(time: NDArray, values: NDArray) -> NDArray:
    return CubicSpline(time, values)(np.linspace(time[0], time[-1], len(time)))


def _repeat(values: NDArray) -> int:
    """Shortest lag, in samples, at which the mean square difference (de Cheveigné & Kawahara 2002) has its dip."""
    n, longest = len(values), len(values) // 2
    overlap = sum(correlate(column, column)[n - 1 : n + longest] for column in values.T)
    energy = np.concatenate([[0.0], np.cumsum(np.sum(values**2, axis=1))])
    lags = np.arange(longest + 1)
    difference = (energy[n - lags] + energy[n] - energy[lags] - 2 * overlap) / ((n - lags) * 2 * values.shape[1])
    # Around lag 0 every smooth signal resembles itself: first leave that valley.
    left = np.flatnonzero(difference > 0.5)
    if left.size:
        dips = difference[left[0] :]
        if np.min(dips) < PERIODIC:
            threshold = np.min(dips) + 0.2 * PERIODIC
            first = int(np.argmax(dips < threshold))
            after = np.flatnonzero(dips[first:] >= threshold)
            end = first + int(after[0]) if after.size else len(dips)
            return int(left[0] + first + np.argmin(dips[first:end]))
    raise RecordingError(
        f"no period: the record does not repeat within half of its {n} samples; record at least two periods, "
        "or give the base frequency"
    )
