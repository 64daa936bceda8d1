"""The 5-point least-squares differentiator of Khosla & Kanade (1987), section 5.1."""

from collections import deque

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter, savgol_filter

from dynid_ros.errors import RecordingError

WEIGHTS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 10
"""Slope of the parabola through five samples in the middle one, per step; oldest sample first."""
DELAY = 2
"""Samples by which the causal form lags."""


def five_point_derivative(values: ArrayLike, step: float, *, causal: bool = False) -> NDArray:
    """Slope of the least-squares parabola through five samples.

    Exact on quadratics; on a cubic c t³ off by (17/5) c T². Noise of standard deviation σ becomes √10 σ / (10 T).
    The gain at ω is (4 sin 2ωT + 2 sin ωT) / (10 ωT), so velocities at 2 ms are to be trusted up to 10 Hz.

    Args:
        values: (N, ...) samples along the first axis, N >= 5.
        step: T, s.
        causal: each sample is the derivative two samples earlier, as on-line; the first four are NaN. Otherwise there
            is no delay, and the parabolas of the first and last five samples give the two derivatives at each end.

    Returns:
        (N, ...) per second.

    Raises:
        RecordingError: fewer than five samples.

    """
    values = np.asarray(values, dtype=float)
    if len(values) < WEIGHTS.size:
        raise RecordingError(f"a 5-point derivative needs 5 samples, there are {len(values)}: record longer")
    if not causal:
        return savgol_filter(values, WEIGHTS.size, 2, deriv=1, delta=step, axis=0)
    derivative = lfilter(WEIGHTS[::-1] / step, 1.0, values, axis=0)
    derivative[: WEIGHTS.size - 1] = np.nan
    return derivative


class FivePointDifferentiator:
    """The causal form, one sample at a time.

    Args:
        step: T, s.

    """

    def __init__(self, step: float) -> None:
        self._weights = WEIGHTS / step
        self._window: deque[NDArray] = deque(maxlen=WEIGHTS.size)
        self.delay = DELAY * step
        """s by which the derivative lags the newest sample."""

    def update(self, sample: ArrayLike) -> NDArray | None:
        """Derivative (n,), per second, two samples before this `sample` (n,); None until there are five."""
        self._window.append(np.array(sample, dtype=float))
        if len(self._window) < WEIGHTS.size:
            return None
        return np.tensordot(self._weights, np.array(self._window), axes=1)

    def reset(self) -> None:
        """Forget all samples: after a gap, or a restart of the robot."""
        self._window.clear()
