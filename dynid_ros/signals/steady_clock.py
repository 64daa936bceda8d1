"""Estimate of the steady clock behind noisy time stamps with lost samples, and of the noise of the stamps.

A controller samples with a constant period T. The k-th arriving message is sample n_k, where n_k grows by one, or by
more after lost samples. The stamp is t_k = t_0 + T n_k + e_k, where e_k is the jitter of the logger or the network.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.files.disk_arrays import row_blocks

NUMBERING_ROUNDS = 2
"""Number of rounds: the first computes velocities from averaged stamps, the second from the numbered clock."""
REFERENCE_STEPS = 2.0
"""Distance of the knots of the spline that predicts nearly coinciding samples, in mean steps."""
MAX_BUNCHED_STEP = 0.25
"""Largest step between two samples that arrived together, as a fraction of the mean step."""
MAX_BUNCHED_SHARE = 0.3
"""Largest fraction of samples that arrive together on a clock without bunching."""
MIN_SAMPLES = 50
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
MAX_DELAY_CORRELATION = 0.95
"""Largest correlation of successive delays."""
MAX_MEAN_SIGMAS = 8.0
"""Largest averaged deviation that the mean of the jitter explains, in standard errors; queued delays reach 6.2."""
SLOPE_TIME_S = 0.06
"""Time on each side from which velocity and acceleration are computed, s."""
CUTOFF_HZ = 17.5
"""Cutoff frequency of the positions in a link identification with slow motion, Hz."""
SMOOTHING_SAMPLES = 101
"""Number of samples over which deviations from the numbered clock are averaged."""


def moved_times(time: NDArray, position: NDArray) -> NDArray | None:
    """Return times (N,) on a steady clock, with lost samples detected from the positions; None without such a clock.

    Between two samples each joint moves by its velocity times the elapsed time. The velocity is averaged over several
    samples, so the elapsed time is known to a small fraction of the period despite the jitter of the stamps.

    Args:
        time: (N,) stamps, s, strictly increasing.
        position: (N, n) positions, rad or m.
    """
    clock = averaged_times(time)
    for _ in range(NUMBERING_ROUNDS):
        clock = None if clock is None else _numbered_times(time, position, clock)
    return clock


def _numbered_times(time: NDArray, position: NDArray, base: NDArray) -> NDArray | None:
    """Return the times (N,) with lost samples detected from the positions, with velocities on a base clock (N,), s."""
    step = float(time[-1] - time[0]) / (len(time) - 1)
    reach = int(np.clip(round(VELOCITY_TIME_S / step), *VELOCITY_SAMPLES))
    if len(time) < MIN_SAMPLES + 2 * reach:
        return None
    index = np.arange(len(time) - 1)
    before = np.maximum(index - reach, 0)
    after = np.minimum(index + 1 + reach, len(time) - 1)
    velocity = (position[after] - position[before]) / (base[after] - base[before])[:, None]
    power = np.sum(velocity**2, axis=1)
    fast = power > MIN_FAST_POWER * np.mean(power)
    if not fast.any():
        return None
    passed = np.sum(np.diff(position, axis=0) * velocity, axis=1) / np.maximum(power, np.finfo(float).tiny)
    steps = passed / np.median(passed[fast])
    # The relative error of a step by encoder noise is inversely proportional to the speed.
    slower = fast & (power <= np.quantile(power[fast], SLOWER_SHARE))
    rounded = np.median((steps - np.round(steps))[slower] ** 2 * power[slower])
    counted = power > max(float(rounded) / MAX_COUNT_ERROR**2, MIN_COUNTED_POWER * float(np.mean(power)))
    lost = np.where(counted, np.maximum(np.round(steps) - 1, 0), 0)
    number = np.concatenate([[0.0], np.cumsum(1 + lost)])
    period, start = np.polyfit(number, time, 1)
    clock = start + period * number
    slow = _smoothed(time - clock)
    jitter = time - clock - slow
    # A sample that is queued behind the one before it has the same delay.
    shared = float(np.clip(np.mean(jitter[1:] * jitter[:-1]) / max(np.var(jitter), 1e-30), 0.0, MAX_DELAY_CORRELATION))
    independent = SMOOTHING_SAMPLES * (1 - shared) / (1 + shared)
    # Losses at standstill, or a drifting clock, exceed the mean of the jitter. The ends are excluded: extrapolated.
    inside = slow[SMOOTHING_SAMPLES // 2 : -(SMOOTHING_SAMPLES // 2)] if len(slow) > 2 * SMOOTHING_SAMPLES else slow
    if np.max(np.abs(inside)) > MAX_MEAN_SIGMAS * np.std(jitter) / np.sqrt(independent):
        clock = clock + slow
    return clock


def jitter_about(time: NDArray, clock: NDArray) -> float:
    """Return the RMS jitter of stamps (N,) about a clock (N,), s, without slow deviations."""
    deviation = time - clock
    return float(np.std(deviation - _smoothed(deviation)))


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
    if len(time) < MIN_SAMPLES or position.shape[1] < 2:
        return 0.0
    products = []
    spreads = []
    for rows in row_blocks(len(time) - 4):
        window = slice(rows.start, rows.stop + 4)
        residual, velocity, spread = _predict_from_neighbours(time[window], position[window])
        products.append(_cross_products(residual, velocity))
        spreads.append(spread)
    spread = np.concatenate(spreads)
    # Predictions are poor between distant neighbours and at a sudden stop. Bunched neighbours give no velocity.
    elapsed = (time[4:] - time[:-4]) * (len(time) - 1) / (time[-1] - time[0])
    near = (elapsed > MIN_NEIGHBOURHOOD) & (elapsed < MAX_NEIGHBOURHOOD) & (spread < MAX_NOISE_GAIN)
    if np.mean(near) < MIN_PREDICTED_SHARE or is_bunched(time):
        return _noise_between_references(time, position)
    return _shared_noise(np.concatenate(products, axis=1)[:, near], spread[near])


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
    if np.count_nonzero(reference) < MIN_SAMPLES or reference.all():
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
    weight = 1 / np.maximum(expected, max(float(np.median(expected)), MIN_POWER_FRACTION * largest))
    total = np.sum(weight * spread * expected)
    shared = weight * crossed
    if np.sum(shared) <= MIN_NOISE_SIGMAS * np.sqrt(np.sum(shared**2)):
        return 0.0
    return float(np.sqrt(np.sum(shared) / total))


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
    reach = max(1, round(SLOPE_TIME_S * (len(time) - 1) / (time[-1] - time[0])))
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


def line_through(index: NDArray, values: NDArray) -> tuple[float, float]:
    """Return slope and value at 0 of the least-squares line through values (N,) at indices (N,)."""
    middle = float(index.mean())
    mean = float(values.mean())
    offset = index - middle
    slope = float(offset @ (values - mean) / (offset @ offset))
    return slope, mean - slope * middle


def averaged_times(time: NDArray) -> NDArray | None:
    """Return the stamps (N,) averaged over their neighbours, with errors of half a period near lost samples."""
    index = np.arange(len(time))
    line = np.polyval(np.polyfit(index, time, 1), index)
    return _increasing(line + _smoothed(time - line), float(np.polyfit(index, time, 1)[0]))


def _smoothed(values: NDArray) -> NDArray:
    """Return the moving average of values (N,), extrapolated by straight lines at the ends."""
    width = min(SMOOTHING_SAMPLES, len(values) // 2 * 2 - 1)
    half = width // 2
    index = np.arange(len(values))
    padded = np.concatenate(
        [
            np.polyval(np.polyfit(index[:width], values[:width], 1), np.arange(-half, 0)),
            values,
            np.polyval(np.polyfit(index[-width:], values[-width:], 1), np.arange(len(values), len(values) + half)),
        ]
    )
    return np.convolve(padded, np.full(width, 1 / width), "valid")


def _increasing(time: NDArray, period: float) -> NDArray | None:
    """Return the times if they increase; otherwise None."""
    return time if np.all(np.diff(time) > 0.1 * period) else None
