"""Velocity and acceleration of sampled positions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.files.disk_arrays import map_blocks, new_array, read_column, row_blocks
from dynid_ros.signals.low_pass import LowPass
from dynid_ros.signals.spectra import derivative_weights

WEIGHTS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 10
"""Weights of five samples, oldest first, in the slope of their parabola at the middle one, per step."""
CAUSAL_DELAY_SAMPLES = 2
"""Lag of the causal form, in samples."""


def five_point_derivative(values: ArrayLike, step: float, *, causal: bool = False) -> NDArray:
    """Return the slope of the least-squares parabola through five samples (Khosla & Kanade 1987, section 5.1).

    It is exact for quadratics; for a cubic c t³ the error is (17/5) c T². Noise of standard deviation σ becomes
    √10 σ / (10 T). The gain at ω is (4 sin 2ωT + 2 sin ωT) / (10 ωT), so velocities at 2 ms are accurate up to 10 Hz.

    Args:
        values: (N, ...) samples along the first axis, N >= 5.
        step: time T between samples, s.
        causal: whether each result is the derivative two samples earlier, as on-line; the first four are NaN.
            Otherwise there is no delay, and the outermost parabolas give the two derivatives at each end.

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
    derivative[2 * CAUSAL_DELAY_SAMPLES :] = local_derivative(values, WEIGHTS.size, 2, 1, step)[
        CAUSAL_DELAY_SAMPLES:-CAUSAL_DELAY_SAMPLES
    ]
    return derivative


STENCIL = 7
"""Number of samples in a central difference."""


class Motion(NamedTuple):
    """Position, velocity and acceleration (N, n), in rad or m and seconds."""

    position: NDArray
    velocity: NDArray
    acceleration: NDArray


def filtered_motion(position: ArrayLike, low_pass: LowPass) -> Motion:
    """Return the motion of positions (N, n) after a zero-phase low-pass and central differences.

    Position is filtered too, so that the three belong to one motion. The filter must not damp the motion: choose a
    cutoff frequency well above it (`choose_cutoff`). The first and last `low_pass.edge` samples are inaccurate.
    """
    smooth = low_pass.filter(position)
    return Motion(smooth, *central_differences(smooth, 1 / low_pass.rate))


def central_differences(values: ArrayLike, step: float) -> tuple[NDArray, NDArray]:
    """Return the first and second derivative over seven samples, of sixth order, without smoothing.

    Common differences of two neighbours damp motion by sin(ωT)/(ωT), 6 % for 10 Hz at 100 samples per second; these
    damp by (ωT)⁶/140, 0.04 %. At the ends, the polynomial through the outer seven samples is differentiated.

    Args:
        values: (N, ...) samples, N >= 7.
        step: time T between samples, s.

    Returns:
        (N, ...) per second and (N, ...) per second squared.

    Raises:
        RecordingError: fewer than seven samples.
    """
    values = np.asarray(values, dtype=float)
    if len(values) < STENCIL:
        raise RecordingError(f"central differences need {STENCIL} samples, there are {len(values)}: record longer")
    # A local fit without degrees of freedom interpolates: its derivatives are the central differences.
    velocity, acceleration = (
        map_blocks(lambda part: local_derivative(part, STENCIL, STENCIL - 1, order, step), values, reach=STENCIL)  # noqa: B023
        for order in (1, 2)
    )
    return velocity, acceleration


MAX_GAP = 100.0
"""Largest gap, as a multiple of the window or the median step, whichever is longer. Longer gaps, as where a clock was
set, are shortened."""


def differentiate(time: NDArray, values: NDArray, window: float, orders: Sequence[int] = (1, 2)) -> tuple[NDArray, ...]:
    """Return derivatives by local quadratic fits without delay (Savitzky & Golay 1964).

    The samples are first interpolated linearly to their median step, so that jitter and short gaps do no harm.

    Args:
        time: (N,) increasing times, s.
        values: (N, n) samples.
        window: length of the local fit, s; at least five samples are used.
        orders: orders of the derivatives, 1 or 2.

    Returns:
        For each order k the derivative (N, n), per second to the power k, at `time`.
    """
    time, step, count, length = _fitted_grid(time, window)
    derivatives = tuple(new_array(*values.shape) for _ in orders)
    for rows in row_blocks(len(time)):
        first = max(0, int(time[rows.start] / step) - length)
        uniform = step * np.arange(first, min(count, int(time[rows.stop - 1] / step) + 2 + length))
        known = slice(max(0, int(np.searchsorted(time, uniform[0])) - 1), int(np.searchsorted(time, uniform[-1])) + 1)
        resampled = np.stack([np.interp(uniform, time[known], column) for column in values[known].T], axis=1)
        for order, derivative in zip(orders, derivatives, strict=True):
            smooth = local_derivative(resampled, length, 2, order, step)
            for j, column in enumerate(smooth.T):
                derivative[rows, j] = np.interp(time[rows], uniform, column)
    return derivatives


def differentiate_at(rows: NDArray, time: NDArray, values: NDArray, window: float) -> tuple[NDArray, NDArray]:
    """Return the first and second derivative (M, n) as `differentiate` does, but at few rows (M,) of a long recording.

    Other arguments are those of `differentiate`.
    """
    time, step, count, length = _fitted_grid(time, window)
    place = time[rows] / step
    before = np.minimum(place.astype(int), count - 2)
    fraction = np.minimum(place - before, 1.0)
    half = length // 2
    weights = [np.stack([derivative_weights(length, 2, order, step, at) for at in range(length)]) for order in (1, 2)]
    derivatives = np.empty((len(rows), values.shape[1])), np.empty((len(rows), values.shape[1]))
    for j in range(values.shape[1]):
        column = read_column(values, j)
        ends = []
        for grid in (before, before + 1):
            first = np.clip(grid - half, 0, count - length)
            fitted = np.interp(step * (first[:, None] + np.arange(length)), time, column)
            ends.append([np.einsum("mi,mi->m", fitted, weight[grid - first]) for weight in weights])
        for derivative, low, high in zip(derivatives, *ends, strict=True):
            derivative[:, j] = low + fraction * (high - low)
    return derivatives


def _fitted_grid(time: NDArray, window: float) -> tuple[NDArray, float, int, int]:
    """Return times from 0 with long gaps shortened, s, step, s, and size of their grid, and samples of a local fit."""
    steps = np.diff(time)
    step = float(np.median(steps))
    np.minimum(steps, MAX_GAP * max(window, step), out=steps)
    time = np.concatenate([[0.0], np.cumsum(steps)])
    count = int(np.ceil((time[-1] + step / 2) / step))
    return time, step, count, min(max(5, round(window / step) // 2 * 2 + 1), (count - 1) // 2 * 2 + 1)


def local_derivative(values: NDArray, length: int, degree: int, order: int, step: float) -> NDArray:
    """Return a derivative (N, …) by polynomials through `length` samples each (Savitzky & Golay 1964), N >= length.

    At the ends the outermost polynomial is differentiated.
    """
    from scipy.signal import savgol_filter  # noqa: PLC0415  # takes 0.4 s

    return savgol_filter(values, length, degree, deriv=order, delta=step, axis=0)
