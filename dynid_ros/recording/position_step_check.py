"""Positions that step from one sample to the next and go on from there: an encoder that lost counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from dynid_ros.recording.finding import Finding
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import stale_rows

STEP: Final = "position step"
SIDE = 4
"""Samples on each side, from which the position between the sides is foretold by a parabola."""
EDGE = 2
"""A step counts once within so many samples."""
NOISE, USUAL = 10.0, 3.0
"""A step is larger than so many times the median of these differences, and than so many times 99 % of them, or all of
those nearby."""
FASTEST = 40.0
"""Acceleration that an arm may reach, rad/s^2 or m/s^2: what it makes within a sample is no step."""
ROUNDED = 1.5
"""… and than so many times what the rounding of the encoder can make."""
SMALLEST = 1e-3
"""Smaller ones do no harm, rad or m."""
MINIMUM_SAMPLES = 100


def check_position_steps(recording: Recording) -> Iterator[Finding]:
    """A warning for each joint whose position steps and stays.

    Errors of the time stamps move all joints alike, each by its velocity: what a shift of time explains is no step.
    """
    fresh = ~stale_rows(recording.position)
    time, position = recording.time[fresh], recording.position[fresh]
    if len(time) < MINIMUM_SAMPLES:
        return
    steps, sizes = _steps(time, position)
    for j, joint in enumerate(recording.joint_names):
        if not steps[:, j].any():
            continue
        found = np.flatnonzero(steps[:, j])
        first = found[0]
        yield Finding(
            "warning",
            f"{recording.source}, joint '{joint}'",
            f"its position steps {len(found)} time{'s' * (len(found) > 1)}, first by {sizes[first, j]:.3g} at "
            f"t = {time[first]:.3f} s, faster than an arm can move, and goes on from there",
            "the encoder lost counts, or the driver set its zero anew: mend it and record again",
            STEP,
        )


def _steps(time: NDArray, position: NDArray) -> tuple[NDArray, NDArray]:
    """(N, n) True at the last sample before a step; its size, rad or m."""
    interval = np.diff(time)
    step = float(np.median(interval))
    time_jump, jump = _jumps(time[:, None]), _jumps(position)
    velocity = np.zeros_like(position)
    velocity[SIDE:-SIDE] = (position[2 * SIDE :] - position[: -2 * SIDE]) / (time[2 * SIDE :] - time[: -2 * SIDE])[
        :, None
    ]
    power = velocity**2
    others = power.sum(axis=1, keepdims=True) - power
    shift = ((velocity * jump).sum(axis=1, keepdims=True) - velocity * jump) / np.maximum(others, 1e-4)
    candidates = np.array([jump, jump - velocity * time_jump, jump - velocity * shift])
    least = np.min(np.abs(candidates), axis=0)
    usual = np.minimum(np.quantile(least, 0.99, axis=0), _beside(least))
    bound = np.maximum(NOISE * np.median(least, axis=0), USUAL * usual)
    # What an arm can do within a sample: by its acceleration, or by stopping dead.
    dead = 2.0 * maximum_filter1d(np.abs(velocity), 6 * SIDE + 1, axis=0) * step
    bound = np.maximum(bound, np.maximum(SMALLEST, np.minimum(FASTEST * step**2, dead)))
    # Rounding of all samples by half a count can add up to so much.
    bound = np.maximum(bound, ROUNDED * np.abs(_ahead()).sum() * _resolution(position))
    # A sample lost somewhere near makes any curve step.
    whole = np.zeros(len(time), bool)
    whole[2 * SIDE : -2 * SIDE] = True
    for gap in np.flatnonzero(interval > 2.5 * step):
        whole[max(0, gap - SIDE) : gap + SIDE + 1] = False
    found = (least > bound) & whole[:, None]
    best = np.zeros_like(found)
    for j in range(position.shape[1]):
        for k in np.flatnonzero(found[:, j]):
            near = slice(max(0, k - 2 * SIDE), k + 2 * SIDE + 1)
            best[k, j] = least[k, j] >= least[near, j].max()
    return best, jump


def _beside(values: NDArray) -> NDArray:
    """(N, n) largest of those that the same step cannot have touched, before and after."""
    width = 4 * SIDE + 1
    largest = maximum_filter1d(values, width, axis=0)
    away = width // 2 + 2 * SIDE
    return np.maximum(np.roll(largest, away, axis=0), np.roll(largest, -away, axis=0))


def _jumps(values: NDArray) -> NDArray:
    """(N, n) difference, halfway between a sample and the next, of the parabolas through SIDE samples either side."""
    ahead = _ahead()
    n = len(values)
    left = np.array([np.convolve(column, ahead[::-1], "valid") for column in values.T]).T
    right = np.array([np.convolve(column, ahead, "valid") for column in values.T]).T
    jumps = np.zeros(values.shape)
    jumps[SIDE - 1 : n - SIDE] = right[SIDE : n - SIDE + 1] - left[: n - 2 * SIDE + 1]
    return jumps


def _ahead() -> NDArray:
    """(SIDE,) weights of samples at -SIDE + 1 … 0 that foretell the value at 1/2 by a parabola."""
    powers = np.vander(np.arange(-SIDE + 1, 1), 3)
    return np.linalg.pinv(powers).T @ np.vander([0.5], 3)[0]


def _resolution(position: NDArray) -> NDArray:
    """(n,) smallest difference that comes often: what the encoder resolves, rad or m."""
    found = np.zeros(position.shape[1])
    for j, column in enumerate(np.abs(np.diff(position, axis=0)).T):
        some = column[column > 1e-12]
        found[j] = np.quantile(some, 0.02) if some.size else 0.0
    return found
