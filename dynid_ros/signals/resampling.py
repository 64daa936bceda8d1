"""Resampling of jittered recordings to a uniform grid, splines across short gaps, and the choice of time stamps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.errors import RecordingError
from dynid_ros.files.disk_arrays import new_array, overlapping_blocks, row_blocks, take_rows
from dynid_ros.signals.spectra import COUNT_TOLERANCE, true_runs
from dynid_ros.signals.steady_clock import (
    acceleration_noise,
    is_bunched,
    line_through,
    moved_times,
    smoothing_ratio,
    stamp_noise,
)

MIN_BRIDGED_STEPS = 3
"""Number of steps that are always bridged."""
MAX_BRIDGED_STEPS = 10
"""Largest number of bridged steps: across more, noise at the rims makes a cubic overshoot."""
BRIDGED_TIME_S = 0.025
"""Time that is bridged: a quarter of a period of motion at 10 Hz."""
SPLINE_REACH = 60
"""Number of samples beside a block whose spline is computed: the effect of a sample falls by a factor of 3.7 from one
to the next."""
MAX_ROUNDING_STEPS = 1e-6
"""Largest error of even stamps, in steps: it is due to rounding, and moves no joint by more than 1e-9 rad."""
MIN_SAMPLES = 4
"""Number of samples of a cubic."""
MIN_KNOT_STEP = 0.3
"""Smallest distance of knots of a spline, in mean steps; real samples of a driver are farther apart."""


@dataclass(frozen=True, eq=False)
class Segment:
    """Samples without a gap on a uniform grid.

    Attributes:
        time: (M,) time on the clock of the recording, s.
        values: (M, ...) samples.
    """

    time: NDArray
    values: NDArray


@dataclass(frozen=True, eq=False)
class Resampled:
    """Recording as uniform segments.

    Attributes:
        step: sampling period of every segment, s.
        segments: segments in order of time, without stretches of fewer than four samples.
        gaps: (G, 2) start and end of each gap between first and last sample, s.
    """

    step: float
    segments: tuple[Segment, ...]
    gaps: NDArray

    @property
    def rate(self) -> float:
        """Samples per second, Hz."""
        return 1 / self.step


def resample(
    time: ArrayLike, values: ArrayLike, step: float | None = None, longest_gap: float | None = None
) -> Resampled:
    """Resample to a uniform grid by cubic splines through the samples; long gaps remain.

    Linear interpolation averages between two samples. It reduces a signal to cos(π f T) and noise to half of its power,
    more in the middle of an interval than near its ends, and has an error of T² q̈ / 8. With jitter these errors beat
    slowly, so that no filter removes them, and differentiation amplifies the kinks. A cubic spline passes through the
    samples, has a flat gain up to a third of the sampling rate, and an error of order T⁴. It overshoots a step of the
    torque by a tenth of its height, over two samples, symmetrically.

    The time stamps are used as given (see `sample_times`). Remove repeated rows first (`stale_rows`).

    Args:
        time: (N,) increasing times, s.
        values: (N, ...) samples. Rows with a value that is not finite are missing; a column without any finite value
            stays NaN.
        step: step of the grid, s; None: the median step.
        longest_gap: longest interval between two samples that is bridged, s; None: ten median steps or 25 ms, whichever
            is less, but at least three steps.

    Raises:
        RecordingError: time does not increase, or no four samples are without a gap.
    """
    time = np.asarray(time, dtype=float)
    values = np.asarray(values, dtype=float)
    if len(time) != len(values) or len(time) < MIN_SAMPLES or not np.all(np.diff(time) > 0):
        raise RecordingError(
            f"cannot resample {len(values)} samples at {len(time)} times: expected at least {MIN_SAMPLES} "
            "times, strictly increasing, with one sample each"
        )
    step = _usual_step(time) if step is None else step
    if longest_gap is None:
        longest_gap = longest_bridged(time)
    columns = values.reshape(len(time), -1)
    recorded = np.any([np.isfinite(columns[rows]).any(axis=0) for rows in row_blocks(len(columns))], axis=0)
    present = np.concatenate([np.isfinite(columns[rows][:, recorded]).all(axis=1) for rows in row_blocks(len(columns))])
    segments = []
    for rows in contiguous(time, present, longest_gap):
        known = time[rows]
        grid = time[rows[0]] + step * np.arange(int((time[rows[-1]] - time[rows[0]]) / step + COUNT_TOLERANCE) + 1)
        tolerance = MAX_ROUNDING_STEPS * (known[1] - known[0])
        is_contiguous = recorded.all() and rows[-1] - rows[0] == len(rows) - 1 == len(grid) - 1
        if is_contiguous and np.abs(known - grid).max() < tolerance:
            uniform = columns[rows[0] : rows[-1] + 1]
        else:
            uniform = new_array(len(grid), columns.shape[1])
            for block in row_blocks(len(grid)):
                uniform[block] = np.nan
                uniform[block, recorded] = spline_at(known, columns, recorded, rows, grid[block])
        segments.append(Segment(grid, uniform.reshape(len(grid), *values.shape[1:])))
    if not segments:
        raise RecordingError(
            f"no {MIN_SAMPLES} samples follow each other without a gap longer than {longest_gap:.3g} s: "
            "record again, or allow longer gaps"
        )
    bounds = [time[0], *(edge for segment in segments for edge in segment.time[[0, -1]]), time[-1]]
    gaps = np.array(bounds).reshape(-1, 2)
    return Resampled(step, tuple(segments), gaps[np.diff(gaps, axis=1)[:, 0] > step * (1 + COUNT_TOLERANCE)])


def _usual_step(time: NDArray) -> float:
    """Return the median step, s; of even stamps the mean step if the rounding of the median adds up over them."""
    steps = np.diff(time)
    usual = float(np.median(steps))
    span = float(time[-1] - time[0])
    tolerance = MAX_ROUNDING_STEPS * usual
    is_even = np.abs(steps - usual).max() < tolerance
    return span / len(steps) if is_even and abs(span - usual * len(steps)) >= tolerance / 2 else usual


def spline_at(known: NDArray, columns: NDArray, recorded: NDArray, rows: NDArray, grid: NDArray) -> NDArray:
    """Return the recorded columns at increasing times of a grid (K,), by a spline through the samples about them.

    Args:
        known: (M,) increasing times of the samples, s.
        columns: (N, k) all rows.
        recorded: (k,) mask of the columns to return.
        rows: (M,) rows of the samples, which have no gap.
        grid: (K,) s.
    """

    def samples(chosen: NDArray) -> NDArray:
        return columns[chosen[0] : chosen[-1] + 1][chosen - chosen[0]][:, recorded]

    tolerance = MAX_ROUNDING_STEPS * (known[1] - known[0])
    start = int(np.searchsorted(known, grid[0] - tolerance))
    end = start + len(grid)
    if end <= len(known) and np.abs(known[start:end] - grid).max() < tolerance:
        return samples(rows[start:end])
    first = max(0, start - SPLINE_REACH)
    last = int(np.searchsorted(known, grid[-1], side="right")) + SPLINE_REACH
    return CubicSpline(*separate_knots(known[first:last], samples(rows[first:last])))(grid)


def stale_rows(*channels: ArrayLike, longest_run: int = 9) -> NDArray:
    """Return a mask (N,) of the rows that repeat the row before, from a logger faster than its robot.

    Runs longer than `longest_run` are a robot at rest with coarse sensors, and are not masked.

    Args:
        channels: all channels, (N, …) each; a value that is not recorded equals 0.
        longest_run: largest number of rows in a row that repeat.
    """
    columns = [np.asarray(channel).reshape(len(np.asarray(channel)), -1) for channel in channels]
    same = np.zeros(len(columns[0]), bool)
    for rows, window, inner in overlapping_blocks(len(same), reach=1):
        repeats = np.zeros(window.stop - window.start, bool)
        repeats[1:] = np.all(
            [np.all(np.diff(np.nan_to_num(part[window]), axis=0) == 0, axis=1) for part in columns], axis=0
        )
        same[rows] = repeats[inner]
    for start, end in true_runs(same):
        if end - start > longest_run:
            same[start:end] = False
    return same


def longest_bridged(time: NDArray) -> float:
    """Return the longest interval between two of the samples at times (N,) that a spline may bridge, s."""
    median = float(np.median(np.diff(time)))
    return max(MIN_BRIDGED_STEPS * median, min(MAX_BRIDGED_STEPS * median, BRIDGED_TIME_S))


def contiguous(time: NDArray, present: NDArray, longest_gap: float) -> Iterator[NDArray]:
    """Yield the rows of each stretch of samples `present` (N,) without a longer gap, if it suffices for a cubic."""
    rows = np.flatnonzero(present)
    # A step that equals the limit up to rounding is no gap.
    for part in np.split(rows, np.flatnonzero(np.diff(time[rows]) > longest_gap * (1 + COUNT_TOLERANCE)) + 1):
        if len(part) >= MIN_SAMPLES:
            yield part


def separate_knots(time: NDArray, values: NDArray) -> tuple[NDArray, NDArray]:
    """Return times (K,) and values (K, ...) for a spline, with the means of samples that nearly coincide.

    A cubic between two knots at a distance h, whose values differ by noise δ, overshoots its neighbours at a distance H
    by about δ H / h. Stamps that nearly coincide would let it overshoot without limit.
    """
    smallest = MIN_KNOT_STEP * (time[-1] - time[0]) / (len(time) - 1)
    apart = np.concatenate([[True], np.diff(time) >= smallest])
    if apart.all():
        return time, values
    # A run of close samples has a knot in each interval of the smallest length.
    run = np.maximum.accumulate(np.where(apart, np.arange(len(time)), 0))
    interval = np.floor((time - time[run]) / smallest)
    first = np.flatnonzero(apart | np.concatenate([[True], np.diff(interval) != 0]))
    if len(first) < MIN_SAMPLES:
        return time, values
    count = np.diff(np.append(first, len(time)))
    sums = np.add.reduceat(values, first, axis=0)
    return np.add.reduceat(time, first) / count, sums / count.reshape(-1, *[1] * (values.ndim - 1))


class GapSpline:
    """Cubic splines through the samples of each column; NaN across long gaps and beyond the ends.

    The splines pass through their samples without smoothing. Of motion at a tenth of the sampling rate, linear
    interpolation in the middle of an interval loses 5 %, a cubic spline 0.1 % (see `resample`).

    Args:
        time: (N,) increasing times, s.
        values: (N, n) samples; NaN where unknown, in each column separately.
        longest_gap: longest interval between two samples that is bridged, s; None: as in `resample`.

    Raises:
        RecordingError: time does not increase, or the shapes do not fit.
    """

    def __init__(self, time: ArrayLike, values: ArrayLike, longest_gap: float | None = None) -> None:
        time = np.asarray(time, dtype=float)
        values = np.asarray(values, dtype=float)
        if values.ndim != 2 or len(time) != len(values) or len(time) < MIN_SAMPLES or not np.all(np.diff(time) > 0):
            raise RecordingError(
                f"cannot interpolate values of shape {values.shape} at {len(time)} times: expected one row for each of "
                f"at least {MIN_SAMPLES} times, strictly increasing"
            )
        self.time = time
        self.n_columns = values.shape[1]
        longest_gap = longest_bridged(time) if longest_gap is None else longest_gap
        known = np.isfinite(values)
        # Columns that are known at the same times share their splines.
        by_presence: dict[bytes, list[int]] = {}
        for column, present in enumerate(known.T):
            by_presence.setdefault(present.tobytes(), []).append(column)
        self._parts = []
        for columns in map(np.array, by_presence.values()):
            for rows in contiguous(time, known[:, columns[0]], longest_gap):
                knots, at_knots = separate_knots(time[rows], values[np.ix_(rows, columns)])
                self._parts.append((columns, knots[0], knots[-1], CubicSpline(knots, at_knots)))

    def __call__(self, time: ArrayLike, order: int = 0) -> NDArray:
        """Return the values (K, n) at increasing times (K,), or their derivative of an order up to 3."""
        time = np.asarray(time, dtype=float)
        result = np.full((len(time), self.n_columns), np.nan)
        for columns, start, end, spline in self._parts:
            rows = slice(np.searchsorted(time, start), np.searchsorted(time, end, side="right"))
            result[rows, columns] = spline(time[rows], order)
        return result


MAX_JITTER_STEPS = 0.5
"""Largest deviation from a steady clock, in steps; beyond it samples may be missing, and the stamps are needed."""
MAX_JITTER_STEPS_HELD = 0.75
"""The same where a logger repeats rows: it stamps a held sample up to one of its own steps late."""
MIN_SMOOTHING_RATIO = 2.0
"""Smallest factor by which a steady clock must lower the roughness of the positions to be used."""
MIN_SMOOTHING_RATIO_HELD = 1.25
"""The same where a logger repeats rows, which are few. With lost samples, a steady clock would raise the roughness."""


MIN_HARM = 1e-3
"""Smallest share of noise of the stamps in the power of the accelerations for which another clock is sought."""
MAX_HARM = 0.02
"""Largest share of noise of the stamps in the power of the accelerations that are identified."""
MAX_NOISE_STEPS = 0.1
"""Noise of the stamps, in steps, that is never refused: real arms that are identified well have 0.02."""
MIN_SHIFT = 5e-5
"""Shift of the fastest joint by noise of the stamps, rad or m (RMS), that is never refused: an encoder of 17 bits has
such steps. Simulated arms at a tenth of a radian per second are identified as well with it."""
MAX_DEVIATION = 4.0
"""Largest deviation of the stamps from a clock that corrects them, as a multiple of their noise."""
EVEN_JITTER_STEPS = 1e-3
"""Deviation of intervals from a multiple of their median, in steps, for stamps that are a steady clock already.
Roughness of the positions is then due to fast moves, not to noise of the stamps."""
MIN_EVEN_SHARE = 0.99
"""Smallest share of such intervals in stamps of a steady clock."""
STAMPS_FIX = "let the driver stamp each sample as it reads the robot, and lose none"


class SampleTimes(NamedTuple):
    """Times to use, with the reason.

    Attributes:
        time: (N,) strictly increasing times, s.
        steady: whether the times are a uniform clock that replaces the stamps.
        reason: explanation in one sentence.
        noise: RMS noise of these times, s, as far as the positions show it; 0 where it does no harm.
        harm: share of this noise in the power of the accelerations.
        mended: whether the noise of the stamps would do harm, and another clock has less of it.
    """

    time: NDArray
    steady: bool
    reason: str
    noise: float = 0.0
    harm: float = 0.0
    mended: bool = False

    def fault(self) -> str:
        """Describe the error of the times if their noise spoils the motion; otherwise return an empty text."""
        if self.harm <= MAX_HARM or self.noise <= MAX_NOISE_STEPS * float(np.median(np.diff(self.time))):
            return ""
        return (
            f"the clock of its time stamps is wrong by about {1e3 * self.noise:.2g} ms (RMS), as the positions of all "
            f"joints show, which is {100 * self.harm:.0f} % of the power of the accelerations, and no steady clock "
            "fits the stamps"
        )


def sample_times(time: ArrayLike, position: ArrayLike, held: bool = False) -> SampleTimes:
    """Choose between the recorded stamps and a steady clock through them, by the smoothness of the motion.

    A controller samples steadily, and a logger stamps late and unevenly. A stamp with an error δ shifts a position by
    δ q̇, and differentiation magnifies the shift. If the stamps are correct, a steady clock roughens the motion. The
    roughness is the fourth divided difference of the positions, to which motion contributes little.

    Args:
        time: (N,) strictly increasing stamps, s, N >= 5.
        position: (N, n) positions.
        held: whether rows that a logger repeated were removed.

    Raises:
        RecordingError: fewer than five samples, or time does not increase.
    """
    time = np.asarray(time, dtype=float)
    position = np.asarray(position, dtype=float)
    if len(time) < 5 or len(time) != len(position) or not np.all(np.diff(time) > 0):
        raise RecordingError(
            f"cannot judge {len(time)} time stamps of {len(position)} samples: expected at least 5, strictly increasing"
        )
    chosen = _even_times(time, position, held)
    noise = stamp_noise(chosen.time, position)
    harm = acceleration_noise(chosen.time, position, noise)
    step = (time[-1] - time[0]) / (len(time) - 1)
    squares = sum(
        np.sum(np.diff(position[rows.start : rows.stop + 1], axis=0) ** 2, axis=0) for rows in row_blocks(len(time) - 1)
    )
    speed = float(np.sqrt(np.max(squares) / (len(time) - 1)) / step)
    kept = chosen if harm < MIN_HARM else chosen._replace(noise=noise, harm=harm if noise * speed > MIN_SHIFT else 0.0)
    even = held or _is_even(time) or (chosen.steady and harm < MIN_HARM)
    clock = None if even else moved_times(time, position)
    if clock is None:
        return kept
    if is_bunched(time):  # neighbours in a burst agree with one another on the stamps
        smoother = float(np.median(_roughness(time, position) / _roughness(clock, position)))
    else:
        smoother = smoothing_ratio(chosen.time, clock, position)
    left = stamp_noise(clock, position)
    near = harm >= MIN_HARM and np.std(time - clock) <= MAX_DEVIATION * noise
    if smoother < MIN_SMOOTHING_RATIO and not (near and smoother > 1.0 and left < noise):
        return kept
    lost = round((clock[-1] - clock[0]) / float(np.median(np.diff(clock)))) + 1 - len(clock)
    reason = (
        f"its time stamps are off by {1e3 * float(np.std(time - clock)):.2g} ms (RMS), as the motion of all joints "
        f"shows; a steady clock of {float(np.median(np.diff(clock))):.6g} s with {lost} lost samples that fits the "
        "motion is used in their place"
    )
    harm = acceleration_noise(clock, position, left) if left * speed > MIN_SHIFT else 0.0
    return SampleTimes(clock, True, reason, left, harm, mended=True)


def _is_even(time: NDArray) -> bool:
    """Return whether nearly all intervals of the stamps (N,), s, are multiples of one, without bursts."""
    if is_bunched(time):
        return False
    steps = np.diff(time) / float(np.median(np.diff(time)))
    return bool(np.quantile(np.abs(steps - np.maximum(np.round(steps), 1.0)), MIN_EVEN_SHARE) < EVEN_JITTER_STEPS)


def _even_times(time: NDArray, position: NDArray, held: bool) -> SampleTimes:
    """Choose between the stamps and an even clock without lost samples, by the roughness of the positions."""
    index = np.arange(len(time))
    step, start = line_through(index, time)
    clock = start + step * index
    jitter = float(np.max(np.abs(time - clock))) / step
    if jitter > (MAX_JITTER_STEPS_HELD if held else MAX_JITTER_STEPS):
        return SampleTimes(
            time, False, f"stamps leave a steady clock by up to {jitter:.2g} steps: samples may be missing, stamps kept"
        )
    ratio = float(np.median(_roughness(time, position) / _roughness(clock, position)))
    if ratio > (MIN_SMOOTHING_RATIO_HELD if held else MIN_SMOOTHING_RATIO):
        return SampleTimes(
            clock,
            True,
            f"on a steady clock of {step:.6g} s the positions are {ratio:.3g} times smoother: stamps (off by up to "
            f"{jitter:.2g} steps) are the logger's, not the samples'",
        )
    return SampleTimes(time, False, f"a steady clock makes the positions {ratio:.2g} times smoother only: stamps kept")


def used_times(time: NDArray, chosen: SampleTimes, fresh: NDArray) -> tuple[NDArray, NDArray]:
    """Return the times of the rows, and the rows that are samples instead of repetitions by a logger.

    Args:
        time: (N,) strictly increasing stamps, s.
        chosen: times of the samples, by `judged_times`.
        fresh: mask (N,) of the samples.

    Returns:
        Times (N,), s, where a repeated row has the time of its sample if the clock is steady; mask (N,) of the samples.

    Raises:
        RecordingError: noise of the stamps spoils the motion.
    """
    if fault := chosen.fault():
        raise RecordingError(f"{fault}; {STAMPS_FIX}")
    return (chosen.time[np.cumsum(fresh) - 1] if chosen.steady else time), fresh


def judged_times(time: ArrayLike, position: ArrayLike, values: ArrayLike) -> tuple[SampleTimes, NDArray]:
    """Return the times of the rows that are samples, and which rows (N,) are.

    A logger that holds the robot's last message on its own clock repeats a row where it runs ahead, and stamps others
    up to a step late. Without the repeated rows, a steady clock may fit the rest (`sample_times`).
    """
    time = np.asarray(time, dtype=float)
    position = np.asarray(position, dtype=float)
    fresh = ~stale_rows(position, values)
    return sample_times(time[fresh], take_rows(position, fresh), held=not fresh.all()), fresh


def _roughness(time: NDArray, position: NDArray) -> NDArray:
    """Return the RMS fourth divided differences (n,)."""
    order = 4
    squares = np.zeros(position.shape[1])
    for rows in row_blocks(len(time) - order):
        times = time[rows.start : rows.stop + order]
        difference = position[rows.start : rows.stop + order]
        for k in range(1, order + 1):
            difference = np.diff(difference, axis=0) / (times[k:] - times[:-k])[:, None]
        squares += np.sum(difference**2, axis=0)
    return np.sqrt(squares / (len(time) - order)) + np.finfo(float).tiny
