"""Finite Fourier series of periodic motion: noise off, derivatives exact."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lstsq

from dynid_ros.errors import RecordingError


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """Offset and harmonics of a base frequency (Swevers et al. 1997; Olsen, Swevers & Verdonck 2002).

    Attributes:
        base_frequency: Hz.
        offset: (n,).
        cosines: (H, n).
        sines: (H, n).
        residual: (n,) standard deviation of what the series does not explain, freedoms counted.

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
        freedom = max(1, len(time) - basis.shape[1])
        return FourierSeries(
            float(base_frequency),
            coefficients[0],
            coefficients[1 : n_harmonics + 1],
            coefficients[n_harmonics + 1 :],
            residual / np.sqrt(freedom),
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
    """Refuse what samples at `time` (N,) s cannot tell apart.

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
