"""Velocity and acceleration of sampled positions."""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter

LONGEST_GAP = 100.0
"""Of window or median step, whichever is longer: what is longer counts as this, as where a clock was set by years."""


def differentiate(time: NDArray, values: NDArray, window: float) -> tuple[NDArray, NDArray]:
    """First and second derivative by local quadratic fits without delay (Savitzky & Golay 1964).

    The samples are first brought to their median step by linear interpolation, so jitter and short gaps do no harm.

    Args:
        time: (N,) s, increasing.
        values: (N, n).
        window: length of the local fit in s; at least five samples are used.

    Returns:
        (N, n) per second and (N, n) per second squared, at `time`.

    """
    steps = np.diff(time)
    step = float(np.median(steps))
    time = np.concatenate([[0.0], np.cumsum(np.minimum(steps, LONGEST_GAP * max(window, step)))])
    uniform = np.arange(time[0], time[-1] + step / 2, step)
    resampled = np.stack([np.interp(uniform, time, column) for column in values.T], axis=1)
    length = min(max(5, round(window / step) // 2 * 2 + 1), (len(uniform) - 1) // 2 * 2 + 1)
    derivatives = []
    for order in (1, 2):
        smooth = savgol_filter(resampled, length, 2, deriv=order, delta=step, axis=0)
        derivatives.append(np.stack([np.interp(time, uniform, column) for column in smooth.T], axis=1))
    return derivatives[0], derivatives[1]
