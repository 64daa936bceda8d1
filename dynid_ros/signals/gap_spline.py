"""Samples with gaps as cubic splines that can be asked for any time."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import RecordingError
from dynid_ros.signals.resampling import MINIMUM_SAMPLES, contiguous, longest_bridged


class GapSpline:
    """Cubic splines through what was recorded, column by column; NaN across gaps and beyond the ends.

    Nothing is smoothed and nothing is invented: each spline passes through its samples, and none bridges a long gap.
    Why cubic, `resample` says: of motion at a tenth of the sampling rate, linear interpolation in the middle of an
    interval takes 5 % away, a cubic spline 0.1 %.

    Args:
        time: (N,) s, increasing.
        values: (N, n), NaN where unknown, in each column by itself.
        longest_gap: interval between two samples that is still bridged, s; None: as in `resample`.

    Raises:
        RecordingError: time does not increase, or the shapes do not fit.

    """

    def __init__(self, time: ArrayLike, values: ArrayLike, longest_gap: float | None = None) -> None:
        time, values = np.asarray(time, dtype=float), np.asarray(values, dtype=float)
        if values.ndim != 2 or len(time) != len(values) or len(time) < MINIMUM_SAMPLES or not np.all(np.diff(time) > 0):
            raise RecordingError(
                f"cannot interpolate values of shape {values.shape} at {len(time)} times: expected one row for each of "
                f"at least {MINIMUM_SAMPLES} times, strictly increasing"
            )
        self.time, self.n_columns = time, values.shape[1]
        longest_gap = longest_bridged(time) if longest_gap is None else longest_gap
        known = np.isfinite(values)
        # Columns that are known at the same times, mostly all of them, share their splines.
        alike: dict[bytes, list[int]] = {}
        for column, present in enumerate(known.T):
            alike.setdefault(present.tobytes(), []).append(column)
        self._parts = []
        for columns in map(np.array, alike.values()):
            for rows in contiguous(time, known[:, columns[0]], longest_gap):
                spline = CubicSpline(time[rows], values[np.ix_(rows, columns)])
                self._parts.append((columns, time[rows[0]], time[rows[-1]], spline))

    def __call__(self, time: ArrayLike, order: int = 0) -> NDArray:
        """(K, n) values at times (K,), increasing, or their derivative of an order up to 3."""
        time = np.asarray(time, dtype=float)
        result = np.full((len(time), self.n_columns), np.nan)
        for columns, start, end, spline in self._parts:
            rows = slice(np.searchsorted(time, start), np.searchsorted(time, end, side="right"))
            result[rows, columns] = spline(time[rows], order)
        return result
