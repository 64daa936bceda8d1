"""How well signals are copies of a reference shifted in time, whatever their gains, offsets and noise levels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import correlate

TINY, ROUNDING = np.finfo(float).tiny, 1e-13


class ShiftedCopies(NamedTuple):
    """Fit of target_j = gain_j · shifted_j + offset_j + noise, by columns.

    Attributes:
        n_samples: (n,) samples of each column that were compared.
        gain: (n,) of each column; may be negative.
        correlation: (n,) between the columns.
        noise: (n,) mean square of the residual.
        score: (N, p) gradient of the log likelihood of each sample with respect to what shifts the reference.
        information: (p, p) Fisher's, of the same, with gains, offsets and noise levels projected out.

    """

    n_samples: NDArray
    gain: NDArray
    correlation: NDArray
    noise: NDArray
    score: NDArray
    information: NDArray

    def standard_errors(self, reach: int = 0) -> NDArray:
        """(p,) by the sandwich of the information and the long-run variance of the score (Newey & West 1987).

        So they allow for residuals that are correlated in time and between columns.

        Args:
            reach: lags up to which the residuals may correlate, in samples; at most a tenth of the record, at least √N.

        """
        n = len(self.score)
        reach = min(max(min(reach, n // 10), int(np.sqrt(n))), n - 1)
        # Along each parameter's own direction of the score.
        scaled = (self.score @ np.linalg.inv(self.information)).T
        moments = np.array([correlate(x, x, method="fft")[n - 1 : n + reach] for x in scaled])
        weights = 1 - np.arange(1, reach + 1) / (reach + 1)
        # A sum below its first term is chance; each parameter fits as much as is alike of the residuals.
        variance = np.maximum(moments[:, 0], moments[:, 0] + 2 * moments[:, 1:] @ weights)
        return np.sqrt(variance / max(1 - len(scaled) * (reach + 1) / n, 0.1))


def compare(shifted: NDArray, slope: NDArray, target: NDArray, factors: NDArray) -> ShiftedCopies:
    """Least squares by columns; a value that is not finite in any of the first three leaves its cell out.

    Args:
        shifted: (N, n) reference at the shifted times.
        slope: (N, n) its derivative there.
        target: (N, n) signals.
        factors: (N, p) derivatives of the shifted times with respect to the parameters.

    """
    present = np.isfinite(shifted) & np.isfinite(target) & np.isfinite(slope)
    count = present.sum(axis=0)

    def centred(values: NDArray) -> NDArray:
        values = np.where(present, values, 0.0)
        return np.where(present, values - values.sum(axis=0) / np.maximum(count, 1), 0.0)

    shifted, target = centred(shifted), centred(target)
    power, target_power = (np.maximum(np.sum(a**2, axis=0), TINY) for a in (shifted, target))
    product = np.sum(shifted * target, axis=0)
    gain = product / power
    residual = target - gain * shifted
    # Agreement to the last digit is rounding, not certainty.
    squares = np.maximum(np.sum(residual**2, axis=0), ROUNDING**2 * target_power)
    noise = np.maximum(squares / np.maximum(count, 1), TINY)
    # Only what gain and offset cannot imitate tells of the shift, and what rounding leaves of that is nothing.
    changes = []
    for factor in factors.T:
        whole = np.where(present, slope * factor[:, np.newaxis], 0.0)
        change = centred(whole)
        change -= shifted * (np.sum(change * shifted, axis=0) / power)
        told = np.sum(change**2, axis=0) > ROUNDING * np.sum(whole**2, axis=0)
        changes.append(gain * change * told)
    score = np.stack([np.sum(change * residual / noise, axis=1) for change in changes], axis=1)
    information = np.array([[np.sum(a * b / noise) for b in changes] for a in changes])
    correlation = product / (np.sqrt(power) * np.sqrt(target_power))
    return ShiftedCopies(count, gain, correlation, noise, score, information)
