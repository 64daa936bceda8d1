"""Velocity and acceleration of uniformly sampled positions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import savgol_filter

from dynid_ros.errors import RecordingError
from dynid_ros.signals.low_pass import LowPass

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

    The usual two-neighbour differences damp motion at f by sin(ωT)/(ωT), 6 % for 10 Hz at 100 samples per second; these
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
    # A local fit whose degree leaves it no freedom interpolates: its derivatives are the central differences.
    velocity, acceleration = (
        savgol_filter(values, STENCIL, STENCIL - 1, deriv=order, delta=step, axis=0) for order in (1, 2)
    )
    return velocity, acceleration
