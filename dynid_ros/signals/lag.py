"""Lag between two signals, resolved to a fraction of a sample."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar

from dynid_ros.errors import RecordingError
from dynid_ros.signals.spectra import correlate

SMALLEST_POWER = np.finfo(float).tiny
ROUNDING_ERROR = 1e-13
"""Relative rounding error of agreeing signals."""


class ShiftedCopies(NamedTuple):
    """Fit of target_j = gain_j · shifted_j + offset_j + noise, by columns.

    Attributes:
        n_samples: (n,) number of compared samples of each column.
        gain: (n,) gain of each column; may be negative.
        correlation: (n,) correlation of each pair of columns.
        noise: (n,) mean square of the residual.
        score: (N, p) gradient of the log likelihood of each sample with respect to what shifts the reference.
        information: (p, p) Fisher information of the shift, with gains, offsets and noise levels projected out.
    """

    n_samples: NDArray
    gain: NDArray
    correlation: NDArray
    noise: NDArray
    score: NDArray
    information: NDArray

    def standard_errors(self, reach: int = 0) -> NDArray:
        """Return the standard errors (p,) by the sandwich of information and long-run variance (Newey & West 1987).

        They allow for residuals that are correlated in time and between columns.

        Args:
            reach: largest lag of correlated residuals, in samples; at most a tenth of the record, at least √N.
        """
        n = len(self.score)
        reach = min(max(min(reach, n // 10), int(np.sqrt(n))), n - 1)
        # Score along the direction of each parameter.
        scaled = (self.score @ np.linalg.inv(self.information)).T
        moments = np.array([correlate(x, x)[n - 1 : n + reach] for x in scaled])
        weights = 1 - np.arange(1, reach + 1) / (reach + 1)
        # A sum below its first term is chance. Each parameter absorbs the correlated part of the residuals.
        variance = np.maximum(moments[:, 0], moments[:, 0] + 2 * moments[:, 1:] @ weights)
        return np.sqrt(variance / max(1 - len(scaled) * (reach + 1) / n, 0.1))


def compare(shifted: NDArray, slope: NDArray, target: NDArray, factors: NDArray) -> ShiftedCopies:
    """Fit each column by least squares, without the samples that are not finite in one of the first three arrays.

    Args:
        shifted: (N, n) reference at the shifted times.
        slope: (N, n) derivative of the reference at these times.
        target: (N, n) signals.
        factors: (N, p) derivatives of the shifted times with respect to the parameters.
    """
    present = np.isfinite(shifted) & np.isfinite(target) & np.isfinite(slope)
    count = present.sum(axis=0)

    def centred(values: NDArray) -> NDArray:
        values = np.where(present, values, 0.0)
        return np.where(present, values - values.sum(axis=0) / np.maximum(count, 1), 0.0)

    shifted = centred(shifted)
    target = centred(target)
    power, target_power = (np.maximum(np.sum(a**2, axis=0), SMALLEST_POWER) for a in (shifted, target))
    product = np.sum(shifted * target, axis=0)
    gain = product / power
    residual = target - gain * shifted
    # Agreement to the last digit is due to rounding.
    squares = np.maximum(np.sum(residual**2, axis=0), ROUNDING_ERROR**2 * target_power)
    noise = np.maximum(squares / np.maximum(count, 1), SMALLEST_POWER)
    # Only the part that gain and offset cannot imitate shows the shift, above rounding errors.
    changes = []
    for factor in factors.T:
        whole = np.where(present, slope * factor[:, np.newaxis], 0.0)
        change = centred(whole)
        change -= shifted * (np.sum(change * shifted, axis=0) / power)
        counted = np.sum(change**2, axis=0) > ROUNDING_ERROR * np.sum(whole**2, axis=0)
        changes.append(gain * change * counted)
    score = np.stack([np.sum(change * residual / noise, axis=1) for change in changes], axis=1)
    information = np.array([[np.sum(a * b / noise) for b in changes] for a in changes])
    correlation = product / (np.sqrt(power) * np.sqrt(target_power))
    return ShiftedCopies(count, gain, correlation, noise, score, information)


class TimeLag(NamedTuple):
    """Estimated lag of a signal behind its reference.

    Attributes:
        lag: lag, s; positive if the signal comes later.
        standard_error: standard error of the lag, s, for residuals that are correlated in time and between columns.
        correlation: (n,) correlation of each column with the shifted reference.
    """

    lag: float
    standard_error: float
    correlation: NDArray


def time_lag(reference: ArrayLike, signal: ArrayLike, rate: float, longest: float = 0.1) -> TimeLag:
    """Estimate the common lag τ in signal_j(t) = gain_j · reference_j(t − τ) + offset_j + noise, with positive gains.

    Maximum likelihood with the gains, offsets and noise levels of all columns free; between samples the reference is
    a cubic spline, so it should contain little above a third of the sampling rate.

    Args:
        reference: (N,) or (N, n), uniformly sampled, e.g. the torque predicted from positions.
        signal: the same shape, e.g. the torque measured.
        rate: sampling rate, Hz.
        longest: largest lag to consider in either direction, s.

    Raises:
        RecordingError: the signals are too short, constant or uncorrelated, or no lag within `longest` is best.
    """
    reference, signal = (np.asarray(x, dtype=float).reshape(np.shape(x)[0], -1) for x in (reference, signal))
    margin = int(np.ceil(longest * rate)) + 2
    if reference.shape != signal.shape or len(signal) < 4 * margin:
        raise RecordingError(
            f"cannot find a lag of up to {longest:g} s between signals of shapes {reference.shape} and {signal.shape}: "
            f"expected the same shape with at least {4 * margin} samples; record longer, or look for a smaller lag"
        )
    # All lags use the same rows of the signal; otherwise longer overlaps would seem worse fits.
    rows = np.arange(margin, len(signal) - margin)
    target = signal[rows] - signal[rows].mean(axis=0)
    constant = np.flatnonzero((np.ptp(target, axis=0) == 0) | (np.ptp(reference, axis=0) == 0))
    if constant.size:
        raise RecordingError(f"column {constant[0]} is constant: it shows no lag; leave it out")
    whole = _whole_lag(reference, target, margin)
    spline = CubicSpline(np.arange(len(reference)), reference)

    def misfit(lag: float) -> float:
        return _misfit(_correlation(spline(rows - lag), target))

    lag = float(minimize_scalar(misfit, bounds=(whole - 1, whole + 1), method="bounded", options={"xatol": 1e-6}).x)
    copies = compare(spline(rows - lag), spline(rows - lag, 1), target, np.ones((len(rows), 1)))
    return TimeLag(lag / rate, float(copies.standard_errors()[0]) / rate, copies.correlation)


def _whole_lag(reference: NDArray, target: NDArray, margin: int) -> int:
    """Return the best lag in samples, below `margin`, given inner rows `target` with a mean of zero."""
    n = len(target)
    sums, squares = (_sliding_sum(reference**power, n) for power in (1, 2))
    products = np.column_stack([correlate(r, t)[n - 1 : len(r)] for r, t in zip(reference.T, target.T, strict=True)])
    variance = np.maximum(squares - sums**2 / n, np.finfo(float).tiny)
    misfits = [_misfit(rho) for rho in products / np.sqrt(variance * np.sum(target**2, axis=0))]
    best = int(np.argmin(misfits[1:-1])) + 1
    if not misfits[best] < min(misfits[0], misfits[-1]):
        raise RecordingError(
            f"no best lag within {margin - 2} samples: the signals do not correlate, one has the wrong sign, "
            "or the lag is larger"
        )
    return margin - best


def _sliding_sum(values: NDArray, length: int) -> NDArray:
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    return total[length:] - total[:-length]


def _correlation(a: NDArray, b: NDArray) -> NDArray:
    a = a - a.mean(axis=0)
    b = b - b.mean(axis=0)
    return np.sum(a * b, axis=0) / np.sqrt(np.sum(a**2, axis=0) * np.sum(b**2, axis=0))


def _misfit(correlation: NDArray) -> float:
    """Return twice the negative log likelihood per sample, up to a constant."""
    return float(np.sum(np.log(np.maximum(1 - np.maximum(correlation, 0.0) ** 2, 1e-15))))
