"""Detection of positions that step between two samples, faster than an arm can move, and keep the new value.

A parabola through the samples before a place and one through those after it both predict the position there. Their
difference is the jump. Jumps that noise, rounding, time errors or accelerations can cause are not steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.checks.finding import CheckSettings, Finding, recording_check
from dynid_ros.files.disk_arrays import new_array, overlapping_blocks, read_column, release_pages, take_rows
from dynid_ros.recording.recording import Recording
from dynid_ros.signals import stale_rows

STEP: Final = "position step"
SIDE = 4
"""Number of samples on each side of a place, through which a parabola is fitted."""
EDGE = 2
"""Largest distance between a jump and the repeated sample that explains it, in samples."""
MIN_MEDIAN_RATIO = 10.0
"""Smallest step, as a multiple of the joint's median jump."""
MIN_TYPICAL_RATIO = 3.0
"""Smallest step, as a multiple of the 99 % quantile of the joint's jumps or, if smaller, of the largest jump nearby."""
MIN_REMAINING_FRACTION = 0.5
"""Smallest fraction of a step that remains if the nearest samples on one side are left out of its parabola. The jump
of a late reading vanishes without the late sample, because the samples after it are right again."""
MAX_LATE_SAMPLES = 2
"""Largest number of successive late samples of one joint."""
MAX_MISSED_ERROR = 0.35
"""Largest difference between a jump and the travel that a missed or late reading explains, as a fraction of that
travel."""
MAX_ACCELERATION = 40.0
"""Acceleration that an arm may reach, rad/s² or m/s²; a step is larger than its effect within a sampling period."""
MIN_ROUNDING_RATIO = 1.5
"""Smallest step, as a multiple of the largest jump that the encoder's rounding can cause."""
MIN_STEP = 1e-3
"""Smallest step that does harm, rad or m."""
MIN_SAMPLES = 100
MIN_MOVING_SPEED = 0.02
"""Smallest speed of a moving joint, rad/s or m/s."""
MAX_REGULAR_STEP = 2.5
"""Largest interval between samples without a loss, as a multiple of the median interval."""


BLOCK_REACH_SAMPLES = 16 * SIDE
"""Number of samples of a neighbouring block that a block is judged with."""


@recording_check(rank=40)
def check_position_steps(recording: Recording, _settings: CheckSettings) -> Iterator[Finding]:
    """Yield a warning for each joint whose position steps and keeps the new value.

    An error of a time stamp displaces every joint by its velocity times the error. Jumps that it explains are not
    reported.
    """
    fresh = ~stale_rows(recording.position)
    time = recording.time[fresh]
    position = take_rows(recording.position, fresh)
    if len(time) < MIN_SAMPLES:
        return
    for joint, steps in zip(recording.joint_names, _find_steps(time, position), strict=True):
        if steps:
            row, size = steps[0]
            plural = "s" if len(steps) > 1 else ""
            yield Finding(
                "warning",
                f"{recording.source}, joint '{joint}'",
                f"its position steps {len(steps)} time{plural}, first by {size:.3g} at "
                f"t = {time[row]:.3f} s, faster than an arm can move, and goes on from there",
                "the encoder lost counts, or the driver changed its zero: repair it and record again",
                STEP,
            )


class _Jumps(NamedTuple):
    """Jumps after each of N samples of n joints.

    Attributes:
        left: (N, n) predictions from the samples before each place, rad or m.
        right: (N, n) predictions from the samples after it.
        velocity: (N, n) rad/s or m/s.
        unexplained: (N, n) part of each jump that no error of time explains.
    """

    left: NDArray
    right: NDArray
    velocity: NDArray
    unexplained: NDArray

    @classmethod
    def from_samples(cls, time: NDArray, position: NDArray) -> _Jumps:
        """Return the jumps of positions (N, n) at times (N,), s."""
        # The parabolas assume regular samples. The jump of the time stamps is their deviation from that.
        time_left, time_right = _predict_between(time[:, None])
        left, right = _predict_between(position)
        time_jump = time_right - time_left
        jump = right - left
        velocity = np.zeros_like(position)
        travel = position[2 * SIDE :] - position[: -2 * SIDE]
        velocity[SIDE:-SIDE] = travel / (time[2 * SIDE :] - time[: -2 * SIDE])[:, None]
        # Shift of time that explains the jumps of the other joints best, by least squares: Σ v jump / Σ v².
        squared_speed = velocity**2
        others = squared_speed.sum(axis=1, keepdims=True) - squared_speed
        shift = ((velocity * jump).sum(axis=1, keepdims=True) - velocity * jump) / np.maximum(others, 1e-4)
        # Part of each jump that neither time error explains.
        unexplained = np.min(np.abs([jump, jump - velocity * time_jump, jump - velocity * shift]), axis=0)
        return cls(left, right, velocity, unexplained)


def _find_steps(time: NDArray, position: NDArray) -> list[list[tuple[int, float]]]:
    """Return for each joint the last sample before each step, and the size of the step, rad or m."""
    interval = np.diff(time)
    period = float(np.median(interval))
    blocks = list(overlapping_blocks(len(time), BLOCK_REACH_SAMPLES))
    unexplained = new_array(*position.shape)
    for rows, window, place in blocks:
        unexplained[rows] = _Jumps.from_samples(time[window], position[window]).unexplained[place]
        release_pages()
    columns = (read_column(unexplained, j) for j in range(position.shape[1]))
    usual, largest_usual = np.array([np.quantile(column, (0.5, 0.99), overwrite_input=True) for column in columns]).T
    # The rounding errors of all samples, half a count each, can add up in both predictions.
    rounding = MIN_ROUNDING_RATIO * np.abs(_prediction_weights()).sum() * _resolution(position)
    least = np.maximum(MIN_MEDIAN_RATIO * usual, rounding)
    # Where a sample was lost, the position of any moving joint steps.
    complete = np.zeros(len(time), bool)
    complete[2 * SIDE : -2 * SIDE] = True
    for gap in np.flatnonzero(interval > MAX_REGULAR_STEP * period):
        complete[max(0, gap - SIDE) : gap + SIDE + 1] = False
    steps: list[list[tuple[int, float]]] = [[] for _ in usual]
    for rows, window, place in blocks:
        size = unexplained[window]
        if (size[place] > least).any():
            jumps = _Jumps.from_samples(time[window], position[window])._replace(unexplained=size)
            found = _steps_in_block(position[window], jumps, period, least, largest_usual)
            found = found[place] & complete[rows, None]
            for k, j in np.argwhere(found):
                steps[j].append((rows.start + int(k), float((jumps.right - jumps.left)[place][k, j])))
        release_pages()
    return steps


def _steps_in_block(position: NDArray, jumps: _Jumps, period: float, least: NDArray, largest_usual: NDArray) -> NDArray:
    """Return a mask (N, n) of the steps among jumps.

    Args:
        position: (N, n) positions.
        jumps: jumps of these positions.
        period: usual interval between samples, s.
        least: (n,) smallest step of each joint.
        largest_usual: (n,) quantile of the jumps of each joint.
    """
    left, right, velocity, unexplained = jumps
    if not np.any(unexplained > np.maximum(least, MIN_STEP)):
        return np.zeros(unexplained.shape, dtype=bool)
    typical = np.minimum(largest_usual, _largest_nearby(unexplained))
    bound = np.maximum(least, MIN_TYPICAL_RATIO * typical)
    # Within a sampling period T an arm can move by a T², but a stop or a reversal changes its travel by at most 2 v T.
    reversal = 2.0 * _moving_maximum(np.abs(velocity), 6 * SIDE + 1) * period
    bound = np.maximum(bound, np.maximum(MIN_STEP, np.minimum(MAX_ACCELERATION * period**2, reversal)))
    candidates = unexplained > bound
    if candidates.any():
        jump = right - left
        candidates &= _stays(position, left, right)
        candidates &= ~_was_not_read(position, velocity * period, jump) & ~_jumps_together(velocity, jump)
    # A step affects the predictions of several samples: only the largest jump nearby is counted.
    steps = np.zeros_like(candidates)
    for k, j in np.argwhere(candidates):
        near = slice(max(0, k - 2 * SIDE), k + 2 * SIDE + 1)
        steps[k, j] = unexplained[k, j] >= unexplained[near, j].max()
    return steps


def _moving_maximum(values: NDArray, width: int) -> NDArray:
    """Return the largest of `width` values (N, n) about each sample."""
    from scipy.ndimage import maximum_filter1d  # noqa: PLC0415 - it takes long to load, and smooth positions need none

    return maximum_filter1d(values, width, axis=0)


def _largest_nearby(values: NDArray) -> NDArray:
    """Return the largest values (N, n) near each sample, but too far from it for a step there to affect them."""
    width = 4 * SIDE + 1
    largest = _moving_maximum(values, width)
    distance = width // 2 + 2 * SIDE
    return np.maximum(np.roll(largest, distance, axis=0), np.roll(largest, -distance, axis=0))


def _stays(position: NDArray, left: NDArray, right: NDArray) -> NDArray:
    """Return a mask (N, n) of the jumps that remain if the nearest samples on either side are left out.

    Args:
        position: (N, n) positions.
        left: (N, n) predictions from the samples before each place.
        right: (N, n) predictions from the samples after it.
    """
    jump = right - left
    repeated_jumps = []
    for skipped in range(1, MAX_LATE_SAMPLES + 1):
        farther_left, farther_right = _predict_between(position, skipped)
        repeated_jumps += [right - farther_left, farther_right - left]
    return np.all([other * np.sign(jump) > MIN_REMAINING_FRACTION * np.abs(jump) for other in repeated_jumps], axis=0)


def _was_not_read(position: NDArray, travel: NDArray, jump: NDArray) -> NDArray:
    """Return a mask (N, n) of the jumps where a joint repeats a position once, and from then on lags by one sample.

    Args:
        position: (N, n) positions.
        travel: (N, n) travel within a sampling period.
        jump: (N, n) jumps.
    """
    repeated = np.zeros(position.shape, bool)
    repeated[:-1] = np.diff(position, axis=0) == 0.0
    lags = np.abs(jump + travel) < MAX_MISSED_ERROR * np.abs(travel)
    return lags & _moving_maximum(repeated, 2 * EDGE + 1)


def _jumps_together(velocity: NDArray, jump: NDArray) -> NDArray:
    """Return a mask (N, n) of the jumps that one delay explains together with the jump of another joint."""
    together = np.zeros(jump.shape, bool)
    for j in range(jump.shape[1]):
        moving = np.abs(velocity[:, j]) > MIN_MOVING_SPEED
        delay = np.divide(jump[:, j], velocity[:, j], out=np.zeros(len(jump)), where=moving)
        travel = velocity * delay[:, None]
        explained = (np.abs(jump - travel) < MAX_MISSED_ERROR * np.abs(travel)) & (np.abs(travel) > MIN_STEP / 2)
        together[:, j] = np.delete(explained, j, axis=1).any(axis=1)
    return together


def _predict_between(values: NDArray, skipped: int = 0) -> tuple[NDArray, NDArray]:
    """Predict the values (N, n) halfway between a sample and the next, by parabolas through the samples on each side.

    Args:
        values: (N, n).
        skipped: number of samples next to the predicted place that are left out on each side.

    Returns:
        Predictions (N, n) from the samples before and after; zero where a side has too few samples.
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
    """Return the resolution (n,) of each encoder, rad or m: the smallest difference that is frequent."""
    resolution = np.zeros(position.shape[1])
    for j in range(position.shape[1]):
        changes = np.abs(np.diff(read_column(position, j)))
        changes = changes[changes > 1e-12]
        resolution[j] = np.quantile(changes, 0.02, overwrite_input=True) if changes.size else 0.0
    return resolution
