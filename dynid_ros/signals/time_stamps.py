"""Uneven time stamps: those of the samples, or only of the logger."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError

LARGEST_JITTER = 0.5
"""Deviation from a steady clock, in steps, above which samples may be missing: then the stamps are needed."""
CALMER = 2.0
"""Factor by which a steady clock must lower the roughness of the positions to be believed."""


class SampleTimes(NamedTuple):
    """Times to use, and why.

    Attributes:
        time: (N,) s, strictly increasing.
        steady: True if they are uniform in place of the stamps.
        reason: one sentence.

    """

    time: NDArray
    steady: bool
    reason: str


def sample_times(time: ArrayLike, position: ArrayLike) -> SampleTimes:
    """Recorded stamps, or a steady clock through them if it makes the motion much smoother.

    A controller samples steadily, and a logger stamps late and unevenly. A stamp wrong by δ shifts a position by δ q̇,
    and differentiation magnifies that. If stamps are right, it is a steady clock that roughens the motion. The
    roughness is the fourth divided difference of the positions: motion adds next to nothing to it.

    Args:
        time: (N,) s, strictly increasing, N >= 5.
        position: (N, n).

    Raises:
        RecordingError: fewer than five samples, or time does not increase.

    """
    time, position = np.asarray(time, dtype=float), np.asarray(position, dtype=float)
    if len(time) < 5 or len(time) != len(position) or not np.all(np.diff(time) > 0):
        raise RecordingError(
            f"cannot judge {len(time)} time stamps of {len(position)} samples: expected at least 5, strictly increasing"
        )
    index = np.arange(len(time))
    step, start = np.polyfit(index, time, 1)
    clock = start + step * index
    jitter = float(np.max(np.abs(time - clock))) / step
    if jitter > LARGEST_JITTER:
        return SampleTimes(
            time, False, f"stamps leave a steady clock by up to {jitter:.2g} steps: samples may be missing, stamps kept"
        )
    ratio = float(np.median(_roughness(time, position) / _roughness(clock, position)))
    if ratio > CALMER:
        return SampleTimes(
            clock,
            True,
            f"on a steady clock of {step:.6g} s the positions are {ratio:.3g} times smoother: stamps (off by up to "
            f"{jitter:.2g} steps) are the logger's, not the samples'",
        )
    return SampleTimes(time, False, f"a steady clock makes the positions {ratio:.2g} times smoother only: stamps kept")


def _roughness(time: NDArray, position: NDArray) -> NDArray:
    """(n,) root mean square of the fourth divided differences."""
    difference = position
    for order in range(1, 5):
        difference = np.diff(difference, axis=0) / (time[order:] - time[:-order])[:, None]
    return np.sqrt(np.mean(difference**2, axis=0)) + np.finfo(float).tiny
