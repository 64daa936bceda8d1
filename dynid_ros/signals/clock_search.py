"""Where on one clock the motion of another clock may have happened: candidates to some hundredths of a second."""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import correlate, find_peaks

from dynid_ros.signals.gap_spline import GapSpline
from dynid_ros.signals.shifted_copies import TINY

STEP = 0.02
"""Of the grid, s."""
SPAN = 2
"""Half the steps over which speeds are taken: noise of the angles matters little, motion below 10 Hz is seen."""
SHORTEST_OVERLAP = 0.25
"""Of the shorter record: in less, motions are alike by chance."""
WORTH_A_LOOK = 0.2
"""Evidence for another offset, over that for the best, from which it is looked at closely."""
MOST = 20
"""Offsets that are looked at closely."""


def candidate_lags(reference: GapSpline, signal: GapSpline, longest: tuple[float, float]) -> NDArray:
    """Lags after which speeds match best, best first, s; empty if the records do not overlap.

    Of lag τ, the signal at time s after its first sample belongs to the reference at time s + τ after its first.
    Evidence is the log likelihood of gain · reference + noise over that of noise alone, of all columns; the sign of a
    gain does not matter here.

    Args:
        reference: n columns.
        signal: n columns.
        longest: smallest and largest lag to look for, s.

    """
    a, b = _speeds(reference), _speeds(signal)
    lags = np.arange(1 - len(b), len(a))
    count, evidence = np.zeros(len(lags)), np.zeros(len(lags))
    for x, y in zip(a.T, b.T, strict=True):
        (in_x, filled_x), (in_y, filled_y) = _filled(x), _filled(y)
        pairs = (in_x, in_y), (filled_x, filled_y), (filled_x**2, in_y), (in_x, filled_y**2)
        overlap, product, power_x, power_y = (correlate(p, q, mode="full", method="fft") for p, q in pairs)
        overlap = np.round(overlap)
        # Below this, the powers are what rounding left of the transform.
        floor = 1e-9 * np.sum(filled_x**2) * np.sum(filled_y**2)
        power = power_x * power_y
        correlation = product**2 / np.maximum(power, max(floor, TINY)) * (power > floor)
        evidence -= overlap * np.log1p(-np.clip(correlation, 0.0, 1 - 1e-9))
        count = np.maximum(count, overlap)
    shortest = SHORTEST_OVERLAP * min(len(a), len(b))
    allowed = (count >= shortest) & (lags * STEP >= longest[0] - STEP) & (lags * STEP <= longest[1] + STEP)
    evidence = np.where(allowed, evidence, 0.0)
    if not evidence.any():
        return np.zeros(0)
    peaks = find_peaks(np.concatenate([[0.0], evidence, [0.0]]), height=WORTH_A_LOOK * evidence.max())[0] - 1
    return lags[peaks[np.argsort(-evidence[peaks])][:MOST]] * STEP


def _filled(column: NDArray) -> tuple[NDArray, NDArray]:
    return np.isfinite(column).astype(float), np.nan_to_num(column)


def _speeds(record: GapSpline) -> NDArray:
    """(K, n) from the first to the last sample; NaN next to gaps."""
    grid = np.arange(record.time[0], record.time[-1], STEP)
    angles = record(grid)
    speeds = np.full_like(angles, np.nan)
    speeds[SPAN:-SPAN] = angles[2 * SPAN :] - angles[: -2 * SPAN]
    return speeds
