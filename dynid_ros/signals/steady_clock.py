"""Estimate of the steady clock behind noisy time stamps with lost samples, and of the noise of the stamps.

A controller samples with a constant period T. The k-th arriving message is sample n_k, where n_k grows by one, or by
more after lost samples. The stamp is t_k = t_0 + T n_k + e_k, where e_k is the jitter of the logger or the network.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.files.disk_arrays import new_array, row_blocks
from dynid_ros.signals.spectra import COUNT_TOLERANCE, true_runs

MIN_NOISE_SAMPLES = 50
REFERENCE_STEPS = 2.0
"""Distance of the knots of the spline that predicts nearly coinciding samples, in mean steps."""
MAX_BUNCHED_STEP = 0.25
"""Largest step between two samples that arrived together, as a fraction of the mean step."""
MAX_BUNCHED_SHARE = 0.3
"""Largest fraction of samples that arrive together on a clock without bunching."""
MIN_NEIGHBOURHOOD = 2.0
"""Shortest time from the second sample before to the second after a predicted one, in mean steps."""
MAX_NEIGHBOURHOOD = 12.0
"""Longest time from the second sample before to the second after a predicted one, in mean steps."""
MAX_NOISE_GAIN = 100.0
"""Largest amplification of noise when neighbours predict a position."""
MIN_PREDICTED_SHARE = 0.5
"""Smallest fraction of samples that must be predictable from their neighbours."""
MIN_NOISE_SIGMAS = 4.0
"""Smallest significant covariance of the joints' residuals, in standard errors."""
MIN_POWER_FRACTION = 1e-6
"""Lower bound of the power in the weights of samples, as a fraction of the largest power of the velocities."""
SLOPE_TIME_S = 0.06
"""Time on each side from which velocity and acceleration are computed, s."""
CUTOFF_HZ = 17.5
"""Cutoff frequency of the positions in a link identification with slow motion, Hz."""


def is_bunched(time: NDArray) -> bool:
    """Return whether many of the samples with stamps (N,), s, arrived together."""
    together = np.diff(time) < MAX_BUNCHED_STEP * (time[-1] - time[0]) / (len(time) - 1)
    return bool(np.mean(together) > MAX_BUNCHED_SHARE)


def stamp_noise(time: NDArray, position: NDArray) -> float:
    """Return the RMS noise of time stamps, s, estimated from its common effect on the positions of all joints.

    An error e of a stamp shifts joint j by e qd_j. The residual r_j of each position against the cubic through its four
    neighbours contains e qd_j for all joints, so E[r_i r_j] = c e^2 qd_i qd_j for two joints, where c includes the
    noise of the neighbours. Encoder noise is independent between joints and cancels.

    Args:
        time: (N,) s, strictly increasing.
        position: (N, n) positions, rad or m; a single joint gives zero.
    """
    if len(time) < MIN_NOISE_SAMPLES or position.shape[1] < 2:
        return 0.0
    n_predicted = len(time) - 4
    terms = new_array(3, n_predicted)
    n_near = 0
    for rows in row_blocks(n_predicted):
        window = slice(rows.start, rows.stop + 4)
        times = time[window]
        residual, velocity, spread = _predict_from_neighbours(times, position[window])
        # Predictions are poor between distant neighbours and at a sudden stop. Bunched neighbours give no velocity.
        elapsed = (times[4:] - times[:-4]) * (len(time) - 1) / (time[-1] - time[0])
        near = (elapsed > MIN_NEIGHBOURHOOD) & (elapsed < MAX_NEIGHBOURHOOD) & (spread < MAX_NOISE_GAIN)
        end = n_near + int(np.count_nonzero(near))
        terms[:2, n_near:end] = _cross_products(residual, velocity)[:, near]
        terms[2, n_near:end] = spread[near]
        n_near = end
    if n_near < MIN_PREDICTED_SHARE * n_predicted or is_bunched(time):
        return _noise_between_references(time, position)
    return _shared_noise(terms[:2, :n_near], terms[2, :n_near])


def smoothing_ratio(time: NDArray, clock: NDArray, position: NDArray) -> float:
    """Return how many times smoother positions (N, n) are on a clock (N,) than on the stamps (N,), s.

    The joint decides in which the two differ most: one at rest is as smooth on both.
    """
    near = clock[4:] - clock[:-4] < MAX_NEIGHBOURHOOD * float(np.median(np.diff(clock)))
    squares = np.full((2, position.shape[1]), np.finfo(float).tiny)
    for rows in row_blocks(len(time) - 4):
        window = slice(rows.start, rows.stop + 4)
        for row, times in enumerate((time, clock)):
            residual, _, spread = _predict_from_neighbours(times[window], position[window])
            squares[row] += np.sum((near[rows] / spread)[:, None] * residual**2, axis=0)
    ratio = np.log(squares[0] / squares[1]) / 2
    return float(np.exp(ratio[np.argmax(np.abs(ratio))]))


def _predict_from_neighbours(time: NDArray, position: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return residuals (N - 4, n) and velocities, and the factor of their variance, from two samples on each side."""
    neighbours = [np.arange(2, len(time) - 2) + shift for shift in (-2, -1, 1, 2)]
    at = time[2:-2]
    predicted = np.zeros_like(position[2:-2])
    spread = np.ones(len(at))
    for i in neighbours:
        weight = np.ones(len(at))
        for k in neighbours:
            if k is not i:
                weight *= (at - time[k]) / (time[i] - time[k])
        predicted += weight[:, None] * position[i]
        spread += weight**2
    velocity = (position[4:] - position[:-4]) / (time[4:] - time[:-4])[:, None]
    return position[2:-2] - predicted, velocity, spread


def _noise_between_references(time: NDArray, position: NDArray) -> float:
    """Return the noise of stamps, s, of bunched samples, relative to a spline through well separated samples."""
    step = float(time[-1] - time[0]) / (len(time) - 1)
    reference = np.zeros(len(time), bool)
    row = 0
    while row < len(time):
        reference[row] = True
        row = int(np.searchsorted(time, time[row] + REFERENCE_STEPS * step))
    if np.count_nonzero(reference) < MIN_NOISE_SAMPLES or reference.all():
        return 0.0
    spline = CubicSpline(time[reference], position[reference])
    others = ~reference
    residual = position[others] - spline(time[others])
    return _shared_noise(_cross_products(residual, spline(time[others], 1)), np.ones(np.count_nonzero(others)))


def _cross_products(residual: NDArray, velocity: NDArray) -> NDArray:
    """Return (2, M) sums over pairs of joints of r_i r_j qd_i qd_j, and of (qd_i qd_j)^2.

    Args:
        residual: (M, n) residuals of the positions, rad or m.
        velocity: (M, n) velocities, rad/s or m/s.
    """
    product = residual * velocity
    power = velocity**2
    crossed = np.sum(product, axis=1) ** 2 - np.sum(product**2, axis=1)
    return np.stack([crossed, np.sum(power, axis=1) ** 2 - np.sum(power**2, axis=1)])


def _shared_noise(products: NDArray, spread: NDArray) -> float:
    """Return the noise of the stamps, s, that is common to the residuals of all joints; 0 if not significant.

    Args:
        products: (2, M) `_cross_products`.
        spread: (M,) factor c of the variance, which includes the noise of the neighbours.
    """
    crossed, expected = products
    largest = float(expected.max(initial=0.0))
    if not largest > np.finfo(float).tiny / MIN_POWER_FRACTION:
        return 0.0  # at rest, or with one moving joint at a time
    # Fast motion is more informative; the bound keeps a short stretch from dominating.
    bound = max(float(np.median(expected)), MIN_POWER_FRACTION * largest)
    total = shared = square = 0.0
    for part in row_blocks(len(spread)):
        weight = 1 / np.maximum(expected[part], bound)
        contribution = weight * crossed[part]
        total += float(np.sum(weight * spread[part] * expected[part]))
        shared += float(np.sum(contribution))
        square += float(np.sum(contribution**2))
    return 0.0 if shared <= MIN_NOISE_SIGMAS * np.sqrt(square) else float(np.sqrt(shared / total))


def acceleration_noise(time: NDArray, position: NDArray, noise: float) -> float:
    """Return the power that noise of the time stamps adds to the accelerations, as a fraction of their power.

    White noise e of the stamps adds e qd to the positions. Behind a low-pass with cutoff frequency f, the accelerations
    of samples at rate r contain (2 / r) (2 pi)^4 f^5 / 5 of its power. Estimates are too small by about this fraction,
    because the regressor contains the noise.

    Args:
        time: (N,) s.
        position: (N, n) positions, rad or m.
        noise: RMS noise of the stamps, s.
    """
    reach = max(1, round(SLOPE_TIME_S * (len(time) - 1) / (time[-1] - time[0]) + COUNT_TOLERANCE))
    if len(time) <= 2 * reach:
        return 0.0
    velocity = acceleration = 0.0
    for rows in row_blocks(len(time) - 2 * reach):
        before, middle, after = (position[rows.start + k * reach : rows.stop + k * reach] for k in range(3))
        half = ((time[2 * reach :][rows] - time[rows]) / 2)[:, None]
        velocity += float(np.sum(((after - before) / (2 * half)) ** 2))
        acceleration += float(np.sum(((after - 2 * middle + before) / half**2) ** 2))
    rate = (len(time) - 1) / (time[-1] - time[0])
    cutoff = min(CUTOFF_HZ, rate / 2)
    passed = 2 / rate * (2 * np.pi) ** 4 * cutoff**5 / 5
    return float(noise**2 * velocity * passed / acceleration) if acceleration > 0 else 0.0


NUMBERING_ROUNDS = 2
"""Number of times that velocities, and the period that counts rests, are computed from the numbered clock."""
PERIOD_SAMPLES = (20, 1000)
"""Bounds of the number of moving samples through whose stamps a line shows the period."""
REST_SAMPLES = (25, 1000)
"""Bounds of the number of samples before and after a rest whose mean shows its duration."""
MAX_REST_ERROR = 0.15
"""Largest standard error of the duration of a rest, in periods: rounding fails at 0.5."""
MAX_PLACING_JITTER = 0.4
"""Largest noise of the stamps, in periods, with which they show the sample after which others were lost."""
MIN_STAMPS = 5
"""Number of stamps in this mean where the recording begins or ends at rest."""
MIN_MOVING_SAMPLES = 10
"""Smallest number of moving samples that separate two rests."""
MIN_SAMPLES = 50
VELOCITY_TIME_S = 0.02
"""Time on each side of a step from which its velocity is computed, s."""
VELOCITY_SAMPLES = (3, 20)
"""Bounds of that time, in samples."""
MIN_FAST_POWER = 0.05
"""Smallest squared velocity of a fast step, as a fraction of the mean; it certainly shows the elapsed time."""
MIN_COUNTED_POWER = 1e-3
"""Smallest squared velocity of a step that may show the elapsed time, as a fraction of the mean."""
SLOWER_SHARE = 0.25
"""Fraction of the fast steps, the slower ones, from which the error of slow steps is estimated."""
MAX_COUNT_ERROR = 0.1
"""Largest typical error of a number of steps: rounding fails at 0.5."""
DRIFT_SAMPLES = 25
"""Number of samples in a median of the deviations of the stamps from the numbered clock."""
DRIFT_MEDIANS = 5
"""Number of such medians whose median replaces one that delayed samples spoil."""
MIN_DRIFT_MEDIANS = 10
"""Smallest number of medians that can show a drift of the clock."""
MEDIAN_OF_SECOND_DIFFERENCES = 1.652
"""Median magnitude of the second difference of three normal variables, in standard deviations."""
MIN_DRIFT_SIGMAS = 5.0
"""Smallest significant drift, in standard deviations of a median of the deviations."""
MAX_CORNERS = 50
"""Largest number of corners of the drift."""
MAX_DRIFT_RATE = 0.03
"""Largest rate of a drift."""
STEP_MEDIANS = 8
"""Number of medians before and after a step of the clock: samples that wait for one another are fewer."""
MIN_STEP_SIGMAS = 10.0
"""Smallest significant step of the clock, in standard deviations of a median."""
MAX_HIDDEN_STEP_S = 0.05
"""Longest step of the clock that is taken out of the times; a longer one stays a gap."""
MAX_HIDDEN_STEP_PERIODS = 4.0
"""Lower bound of this step, in periods: shorter gaps are bridged, as if the joints had moved meanwhile."""


def moved_times(time: NDArray, position: NDArray) -> NDArray | None:
    """Return times (N,) on a steady clock, with lost samples detected from the positions; None without such a clock.

    Between two samples each joint moves by its velocity times the elapsed time. The velocity is averaged over several
    samples, so the elapsed time is known to a small fraction of the period despite the jitter of the stamps. Where
    nothing moves, the stamps before and after show how many samples were lost.

    Args:
        time: (N,) stamps, s, strictly increasing.
        position: (N, n) positions, rad or m.
    """
    step = float(time[-1] - time[0]) / (len(time) - 1)
    reach = int(np.clip(round(VELOCITY_TIME_S / step + COUNT_TOLERANCE), *VELOCITY_SAMPLES))
    if len(time) < MIN_SAMPLES + 2 * reach:
        return None
    moves = np.diff(position, axis=0)
    counted = _lost_samples(moves, _typical_moves(moves, reach))
    index = np.arange(len(moves))
    before = np.maximum(index - reach, 0)
    after = np.minimum(index + 1 + reach, len(moves))
    for _ in range(NUMBERING_ROUNDS):
        if counted is None:
            return None
        number = _numbers(counted[0])
        per_period = (position[after] - position[before]) / (number[after] - number[before])[:, None]
        counted = _lost_samples(moves, per_period)
    if counted is None:
        return None
    lost, shown, sure = counted
    period = _moving_period(time, _numbers(lost), shown)
    lost = _correct_counts(time, lost, sure, period, MAX_PLACING_JITTER)
    for _ in range(NUMBERING_ROUNDS):
        lost = _correct_counts(time, lost, shown, period)
        number = _numbers(lost)
        period, start = line_through(number, time)
    clock = _follow_drift(time, start + period * number, period)
    return clock if np.all(np.diff(clock) > 0) else None


def _numbers(lost: NDArray) -> NDArray:
    """Return the numbers (N,) of samples by the clock, for the samples lost (N - 1,) before each but the first."""
    return np.concatenate([[0.0], np.cumsum(1 + lost)])


def _typical_moves(moves: NDArray, reach: int) -> NDArray:
    """Return the move (N - 1, n) of each joint in one period, at each step.

    It is the mean of the medians over the steps before and after, which few lost samples do not change.
    """
    from scipy.ndimage import median_filter  # noqa: PLC0415  # used only for uneven stamps

    size = 2 * (reach // 2) + 1
    median = median_filter(moves, size=(size, 1), mode="nearest")
    index = np.arange(len(moves))
    shift = size // 2 + 1
    return (median[np.maximum(index - shift, 0)] + median[np.minimum(index + shift, len(moves) - 1)]) / 2


def _lost_samples(moves: NDArray, per_period: NDArray) -> tuple[NDArray, NDArray, NDArray] | None:
    """Return the number (N - 1,) of samples lost in each step, and masks of the steps whose motion shows it.

    The second mask has the fast steps, where it is sure: at the ends of a move the velocity changes within a few
    samples.

    Args:
        moves: (N - 1, n) moves of the joints, rad or m.
        per_period: (N - 1, n) moves in one period, rad or m.
    """
    power = np.sum(per_period**2, axis=1)
    fast = power > MIN_FAST_POWER * np.mean(power)
    if not fast.any():
        return None
    passed = np.sum(moves * per_period, axis=1) / np.maximum(power, np.finfo(float).tiny)
    period = float(np.median(passed[fast]))
    if not period > 0:
        return None
    steps = passed / period
    # The relative error of a step by encoder noise is inversely proportional to the speed.
    slower = fast & (power <= np.quantile(power[fast], SLOWER_SHARE))
    rounded = np.median((steps - np.round(steps))[slower] ** 2 * power[slower])
    counted = power > max(float(rounded) / MAX_COUNT_ERROR**2, MIN_COUNTED_POWER * float(np.mean(power)))
    return np.where(counted, np.maximum(np.round(steps) - 1, 0), 0), counted, counted & fast


def _correct_counts(time: NDArray, lost: NDArray, sure: NDArray, period: float, max_jitter: float = np.inf) -> NDArray:
    """Return the number (N - 1,) of samples lost in each step, by the stamps in slow steps and rests.

    Slow steps and rests with K samples take K periods and those of the lost samples. The means of the stamps before
    and after them show this time, and the stamps between them show where the samples were lost.

    Args:
        time: (N,) stamps, s.
        lost: (N - 1,) numbers so far.
        sure: (N - 1,) mask of the steps whose number stays.
        period: period of the clock, s.
        max_jitter: largest noise of the stamps, in periods, with which anything is corrected.
    """
    deviation = time - period * _numbers(lost)
    # Means over K stamps before and after a rest differ by noise of sqrt(2 / K) of the jitter.
    jitter = float(np.mean(np.abs(np.diff(deviation)))) * np.sqrt(np.pi) / 2
    if jitter > max_jitter * period:
        return lost
    length = int(np.clip(2 * (jitter / (MAX_REST_ERROR * period)) ** 2, *REST_SAMPLES))
    moving = sure.copy()
    for first, last in true_runs(sure):
        moving[first:last] = last - first >= MIN_MOVING_SAMPLES
    rests = true_runs(~moving)
    lost = lost.copy()
    for (first, last), following in zip(rests, [*rests[1:, 0], len(time)], strict=False):
        deviation[first + 1 : last + 1] += period * np.cumsum(lost[first:last])
        deviation[last + 1 :] += period * lost[first:last].sum()
        lost[first:last] = 0
        before = np.mean(deviation[max(first - length, 0) : max(first + 1, MIN_STAMPS)])
        after = np.mean(deviation[min(last, len(time) - MIN_STAMPS) : min(last + length, following) + 1])
        for _ in range(max(round((after - before) / period), 0)):
            # The step after which a shift by one period lowers the sum of the squares most.
            change = period * (period - 2 * (deviation[first + 1 : last + 1] - before))
            step = first + int(np.argmin(np.cumsum(change[::-1])[::-1]))
            deviation[step + 1 :] -= period
            lost[step] += 1
    return lost


def _moving_period(time: NDArray, number: NDArray, counted: NDArray) -> float:
    """Return the period, s: the median slope of the stamps over moving stretches, weighted by its accuracy.

    A rest of 2000 samples is counted right with a period that is off by 1e-4, so long stretches are needed.
    """
    shortest, longest = PERIOD_SAMPLES
    slopes = []
    weights = []
    for first, last in true_runs(counted):
        for part in np.array_split(np.arange(first, last + 1), int(np.ceil((last - first) / longest))):
            if len(part) > shortest:
                slopes.append(line_through(number[part], time[part])[0])
                weights.append(len(part) ** 3)
    if not slopes:
        lag = min(shortest, len(time) // 4)
        return float(np.median((time[lag:] - time[:-lag]) / (number[lag:] - number[:-lag])))
    order = np.argsort(slopes)
    share = np.cumsum(np.array(weights, dtype=float)[order])
    return float(np.array(slopes)[order][np.searchsorted(share, share[-1] / 2)])


def _follow_drift(time: NDArray, clock: NDArray, period: float) -> NDArray:
    """Return a clock (N,) that follows the steps and the drift of the stamps (N,), s, if these are significant.

    Steps are taken out of the deviations first. The drift is the polygon with the fewest corners that fits medians of
    `DRIFT_SAMPLES` deviations, so that the clock is steady between its corners. Averaged deviations instead would pass
    some of the jitter.
    """
    from scipy.ndimage import median_filter  # noqa: PLC0415  # used only for uneven stamps

    deviation = time - clock
    count = len(time) // DRIFT_SAMPLES
    if count < MIN_DRIFT_MEDIANS:
        return clock
    medians = _medians(deviation, count)
    sigma = float(np.median(np.abs(np.diff(medians, 2)))) / MEDIAN_OF_SECOND_DIFFERENCES
    steps = _clock_steps(deviation, medians, MIN_STEP_SIGMAS * sigma)
    kept = np.where(np.abs(steps) > max(MAX_HIDDEN_STEP_S, MAX_HIDDEN_STEP_PERIODS * period), steps, 0.0)
    medians = _medians(deviation - np.cumsum(steps), count)
    inside = slice(DRIFT_MEDIANS // 2, -(DRIFT_MEDIANS // 2))
    smooth = median_filter(medians, DRIFT_MEDIANS, mode="nearest")[inside]
    medians = medians[inside]
    at = _medians(clock, count)[inside]
    corners = [0, len(at) - 1]
    possible = np.ones(len(at), bool)
    for _ in range(MAX_CORNERS):
        residual = np.abs(smooth - np.interp(at, at[corners], smooth[corners])) * possible
        worst = int(np.argmax(residual))
        if residual[worst] < MIN_DRIFT_SIGMAS * sigma:
            break
        more = sorted([*corners, worst])
        # No clock drifts as fast as the delays of many samples in a row rise and fall.
        if np.abs(np.diff(smooth[more]) / np.diff(at[more])).max() < MAX_DRIFT_RATE:
            corners = more
        else:
            possible[max(worst - DRIFT_MEDIANS, 0) : worst + DRIFT_MEDIANS] = False
    knots = at[corners]
    hats = np.stack([np.interp(at, knots, unit) for unit in np.eye(len(knots))], axis=1)
    late = medians - smooth > MIN_DRIFT_SIGMAS * sigma
    heights = np.linalg.lstsq(hats, np.where(late, smooth, medians), rcond=None)[0]
    if len(knots) == 2 and not steps.any():
        return clock
    slopes = np.diff(heights) / np.diff(knots)
    drift = np.interp(clock, knots, heights)
    drift += slopes[0] * np.minimum(clock - knots[0], 0.0) + slopes[-1] * np.maximum(clock - knots[-1], 0.0)
    return clock + drift + np.cumsum(kept)


def _clock_steps(deviation: NDArray, medians: NDArray, smallest: float) -> NDArray:
    """Return the step (N,) of the clock at each sample, s, zero nearly everywhere.

    A step is the difference of the mean deviations after and before it, without the mean of the differences at both
    sides. A change of the clock's rate has such a difference as well, but not within a few samples.

    Args:
        deviation: (N,) stamps minus the numbered clock, s.
        medians: (M,) medians of `DRIFT_SAMPLES` deviations each, s.
        smallest: smallest step, s.
    """
    steps = np.zeros(len(deviation))
    width = STEP_MEDIANS
    if len(medians) < 4 * width:
        return steps
    mean = np.convolve(medians, np.full(width, 1 / width), "valid")
    change = mean[width:] - mean[:-width]
    sharp = change[width:-width] - (change[: -2 * width] + change[2 * width :]) / 2
    while np.abs(sharp).max() > smallest:
        peak = int(np.argmax(np.abs(sharp)))
        size = float(sharp[peak])
        middle = (peak + 2 * width) * DRIFT_SAMPLES
        near = slice(middle - 2 * DRIFT_SAMPLES, middle + 2 * DRIFT_SAMPLES)
        at = near.start + int(np.argmax(np.sign(size) * np.diff(deviation[near.start - 1 : near.stop])))
        at_once = np.median(deviation[at : at + MIN_STAMPS]) - np.median(deviation[at - MIN_STAMPS : at])
        if np.abs(at_once - size) < np.abs(size) / 2:
            steps[at] = size
        sharp[max(peak - 2 * width, 0) : peak + 2 * width] = 0.0
    return steps


def _medians(values: NDArray, count: int) -> NDArray:
    """Return the medians (count,) of successive stretches of `DRIFT_SAMPLES` values, without the last few values."""
    return np.median(values[: count * DRIFT_SAMPLES].reshape(count, DRIFT_SAMPLES), axis=1)


def line_through(index: NDArray, values: NDArray) -> tuple[float, float]:
    """Return slope and value at 0 of the least-squares line through values (N,) at indices (N,)."""
    middle = float(index.mean())
    mean = float(values.mean())
    offset = index - middle
    slope = float(offset @ (values - mean) / (offset @ offset))
    return slope, mean - slope * middle
