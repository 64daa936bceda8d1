"""Positions that step from one sample to the next, faster than an arm can move, and stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from dynid_ros.checks.finding import CheckSettings, Finding, recording_check
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import stale_rows

STEP: Final = "position step"
SIDE = 4
"""Number of samples on each side, from which a parabola predicts the position between the sides."""
EDGE = 2
"""Number of samples within which a step counts once."""
MIN_MEDIAN_RATIO = 10.0
"""Smallest step, as a multiple of the median of these differences."""
MIN_TYPICAL_RATIO = 3.0
"""Smallest step, as a multiple of 99 % of these differences, or of all of those nearby."""
MIN_REMAINING_FRACTION = 0.5
"""Smallest fraction of a step that remains without the nearest samples of a side. Samples that were read late, while
those of other joints were not, are wrong by themselves, and the samples after them are not."""
MAX_LATE_SAMPLES = 2
MAX_MISSED_ERROR = 0.35
"""Largest difference between a jump and the travel in a sample, as a fraction of the travel, for a sample that was not
read."""
MAX_ACCELERATION = 40.0
"""Acceleration that an arm may reach, rad/s² or m/s²: its effect within a sample is smaller than a step."""
MIN_ROUNDING_RATIO = 1.5
"""Smallest step, as a multiple of the effect of the encoder's rounding."""
MIN_STEP = 1e-3
"""Smallest step that does harm, rad or m."""
MIN_SAMPLES = 100
MIN_MOVING_SPEED = 0.02
"""Smallest speed of a moving joint, rad/s or m/s."""
MAX_REGULAR_STEP = 2.5
"""Largest interval between samples without a loss, as a multiple of the median interval."""


@recording_check(rank=40)
def check_position_steps(recording: Recording, _settings: CheckSettings) -> Iterator[Finding]:
    """Yield a warning for each joint whose position steps and stays.

    Errors of the time stamps move all joints equally, each by its velocity: a jump that a shift of time explains is not
    reported.
    """
    fresh = ~stale_rows(recording.position)
    time = recording.time[fresh]
    position = recording.position[fresh]
    if len(time) < MIN_SAMPLES:
        return
    steps, sizes = _find_steps(time, position)
    for j, joint in enumerate(recording.joint_names):
        rows = np.flatnonzero(steps[:, j])
        if rows.size:
            plural = "s" if len(rows) > 1 else ""
            yield Finding(
                "warning",
                f"{recording.source}, joint '{joint}'",
                f"its position steps {len(rows)} time{plural}, first by {sizes[rows[0], j]:.3g} at "
                f"t = {time[rows[0]]:.3f} s, faster than an arm can move, and goes on from there",
                "the encoder lost counts, or the driver set its zero anew: mend it and record again",
                STEP,
            )


def _find_steps(time: NDArray, position: NDArray) -> tuple[NDArray, NDArray]:
    """Return a mask (N, n) of the last samples before a step, and the sizes (N, n) of the jumps, rad or m."""
    interval = np.diff(time)
    step = float(np.median(interval))
    time_left, time_right = _predict_between(time[:, None])
    left, right = _predict_between(position)
    time_jump = time_right - time_left
    jump = right - left
    velocity = np.zeros_like(position)
    travel = position[2 * SIDE :] - position[: -2 * SIDE]
    velocity[SIDE:-SIDE] = travel / (time[2 * SIDE :] - time[: -2 * SIDE])[:, None]
    # Shift of time that explains the jumps of the other joints.
    power = velocity**2
    others = power.sum(axis=1, keepdims=True) - power
    shift = ((velocity * jump).sum(axis=1, keepdims=True) - velocity * jump) / np.maximum(others, 1e-4)
    least = np.min(np.abs([jump, jump - velocity * time_jump, jump - velocity * shift]), axis=0)
    typical = np.minimum(np.quantile(least, 0.99, axis=0), _largest_nearby(least))
    bound = np.maximum(MIN_MEDIAN_RATIO * np.median(least, axis=0), MIN_TYPICAL_RATIO * typical)
    # An arm can accelerate within a sample, or stop dead.
    stop = 2.0 * maximum_filter1d(np.abs(velocity), 6 * SIDE + 1, axis=0) * step
    bound = np.maximum(bound, np.maximum(MIN_STEP, np.minimum(MAX_ACCELERATION * step**2, stop)))
    # Rounding errors of half a count in all samples can add up.
    bound = np.maximum(bound, MIN_ROUNDING_RATIO * np.abs(_prediction_weights()).sum() * _resolution(position))
    # A lost sample nearby makes any curve step.
    complete = np.zeros(len(time), bool)
    complete[2 * SIDE : -2 * SIDE] = True
    for gap in np.flatnonzero(interval > MAX_REGULAR_STEP * step):
        complete[max(0, gap - SIDE) : gap + SIDE + 1] = False
    candidates = (least > bound) & complete[:, None]
    if candidates.any():
        candidates &= _stays(position, left, right)
        candidates &= ~_was_not_read(position, velocity * step, jump) & ~_jumps_together(velocity, jump)
    steps = np.zeros_like(candidates)
    for j in range(position.shape[1]):
        for k in np.flatnonzero(candidates[:, j]):
            near = slice(max(0, k - 2 * SIDE), k + 2 * SIDE + 1)
            steps[k, j] = least[k, j] >= least[near, j].max()
    return steps, jump


def _largest_nearby(values: NDArray) -> NDArray:
    """Return the largest values (N, n) before and after each sample that the same step cannot have affected."""
    width = 4 * SIDE + 1
    largest = maximum_filter1d(values, width, axis=0)
    distance = width // 2 + 2 * SIDE
    return np.maximum(np.roll(largest, distance, axis=0), np.roll(largest, -distance, axis=0))


def _stays(position: NDArray, left: NDArray, right: NDArray) -> NDArray:
    """Return a mask (N, n) of the jumps from left to right that remain without the nearest samples of a side."""
    jump = right - left
    others = []
    for skipped in range(1, MAX_LATE_SAMPLES + 1):
        farther_left, farther_right = _predict_between(position, skipped)
        others += [right - farther_left, farther_right - left]
    return np.all([other * np.sign(jump) > MIN_REMAINING_FRACTION * np.abs(jump) for other in others], axis=0)


def _was_not_read(position: NDArray, travel: NDArray, jump: NDArray) -> NDArray:
    """Return a mask (N, n) of the joints that repeat their last position once, and go on a sample later.

    Args:
        position: (N, n) positions.
        travel: (N, n) travel in a sample at each velocity.
        jump: (N, n) jumps.
    """
    again = np.zeros(position.shape, bool)
    again[:-1] = np.diff(position, axis=0) == 0.0
    behind = np.abs(jump + travel) < MAX_MISSED_ERROR * np.abs(travel)
    return behind & maximum_filter1d(again, 2 * EDGE + 1, axis=0)


def _jumps_together(velocity: NDArray, jump: NDArray) -> NDArray:
    """Return a mask (N, n) of the joints that jump together with another: both were read late by the same time."""
    together = np.zeros(jump.shape, bool)
    for j in range(jump.shape[1]):
        moving = np.abs(velocity[:, j]) > MIN_MOVING_SPEED
        delay = np.divide(jump[:, j], velocity[:, j], out=np.zeros(len(jump)), where=moving)
        travel = velocity * delay[:, None]
        alike = (np.abs(jump - travel) < MAX_MISSED_ERROR * np.abs(travel)) & (np.abs(travel) > MIN_STEP / 2)
        together[:, j] = np.delete(alike, j, axis=1).any(axis=1)
    return together


def _predict_between(values: NDArray, skipped: int = 0) -> tuple[NDArray, NDArray]:
    """Predict the values (N, n) halfway between a sample and the next, by parabolas through the samples on each side.

    Args:
        values: (N, n); the prediction is zero where a side has too few samples.
        skipped: number of samples next to that place that are left out on each side.

    Returns:
        Predictions (N, n) from the left and from the right.
    """
    n = len(values)
    reach = SIDE + skipped
    weights = _prediction_weights(skipped)
    before, after = (
        np.array([np.convolve(column, kernel, "valid") for column in values.T]).T for kernel in (weights[::-1], weights)
    )
    left = np.zeros(values.shape)
    right = np.zeros(values.shape)
    left[reach - 1 : n - reach] = before[: n - 2 * reach + 1]
    right[reach - 1 : n - reach] = after[reach + skipped :]
    return left, right


def _prediction_weights(skipped: int = 0) -> NDArray:
    """Return the weights (SIDE,) of samples at -SIDE + 1 … 0 that predict the value at 1/2 + skipped by a parabola."""
    powers = np.vander(np.arange(-SIDE + 1, 1), 3)
    return np.linalg.pinv(powers).T @ np.vander([0.5 + skipped], 3)[0]


def _resolution(position: NDArray) -> NDArray:
    """Return the smallest frequent differences (n,), which are the resolutions of the encoders, rad or m."""
    resolution = np.zeros(position.shape[1])
    for j, column in enumerate(np.abs(np.diff(position, axis=0)).T):
        changes = column[column > 1e-12]
        resolution[j] = np.quantile(changes, 0.02) if changes.size else 0.0
    return resolution
