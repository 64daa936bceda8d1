"""Velocity and acceleration of sampled positions."""

from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.signals.low_pass import LowPass

WEIGHTS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 10
"""Slope of the parabola through five samples in the middle one, per step; oldest sample first."""
DELAY = 2
"""Samples by which the causal form lags."""


def five_point_derivative(values: ArrayLike, step: float, *, causal: bool = False) -> NDArray:
    """Slope of the least-squares parabola through five samples (Khosla & Kanade 1987, section 5.1).

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
        return local_derivative(values, WEIGHTS.size, 2, 1, step)
    derivative = np.full_like(values, np.nan)
    derivative[2 * DELAY :] = local_derivative(values, WEIGHTS.size, 2, 1, step)[DELAY:-DELAY]
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


STENCIL = 7


class Motion(NamedTuple):
    """What a regressor needs; (N, n) each, in rad or m and seconds."""

    position: NDArray
    velocity: NDArray
    acceleration: NDArray


def filtered_motion(position: ArrayLike, low_pass: LowPass) -> Motion:
    """Motion of positions (N, n) that are low-pass filtered without phase, then differentiated by central differences.

    Position is filtered too, so the three belong to one motion. As the motion must come through undamped, choose a
    cut-off well above it (`choose_cutoff`). The first and last `low_pass.edge` samples are not to be trusted.
    """
    smooth = low_pass.filter(position)
    return Motion(smooth, *central_differences(smooth, 1 / low_pass.rate))


def central_differences(values: ArrayLike, step: float) -> tuple[NDArray, NDArray]:
    """First and second derivative over seven samples, of sixth order, without smoothing.

    Common two-neighbour differences damp motion at f by sin(ωT)/(ωT), 6 % for 10 Hz at 100 samples per second; these
    lose (ωT)⁶/140, 0.04 %. At the ends the derivatives are those of the polynomial through the outer seven.

    Args:
        values: (N, ...), N >= 7.
        step: T, s.

    Returns:
        (N, ...) per second and (N, ...) per second squared.

    Raises:
        RecordingError: fewer than seven samples.
    """
    values = np.asarray(values, dtype=float)
    if len(values) < STENCIL:
        raise RecordingError(f"central differences need {STENCIL} samples, there are {len(values)}: record longer")
    # A local fit whose degree leaves no degree of freedom interpolates: its derivatives are the central differences.
    velocity, acceleration = (local_derivative(values, STENCIL, STENCIL - 1, order, step) for order in (1, 2))
    return velocity, acceleration


LONGEST_GAP = 100.0
"""Longest gap, in window or median step, whichever is longer: a longer one counts as this, as where a clock was set."""


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
        smooth = local_derivative(resampled, length, 2, order, step)
        derivatives.append(np.stack([np.interp(time, uniform, column) for column in smooth.T], axis=1))
    return derivatives[0], derivatives[1]


def local_derivative(values: NDArray, length: int, degree: int, order: int, step: float) -> NDArray:
    """Return a derivative (N, …) by polynomials through `length` samples each (Savitzky & Golay 1964), N >= length.

    At the ends it is that of the outermost polynomial.
    """
    from scipy.signal import savgol_filter  # noqa: PLC0415  # takes 0.4 s

    return savgol_filter(values, length, degree, deriv=order, delta=step, axis=0)
