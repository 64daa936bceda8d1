"""The steady clock behind noisy time stamps, through lost samples; and how noisy stamps are, by the positions.

A controller samples with a steady period T. Its k-th message that arrives is sample n_k, where n_k grows by one, and by
more where samples were lost. The stamp is t_k = t_0 + T n_k + e_k, with a jitter e_k of the logger or the network.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

ROUNDS = 2
"""Rounds of numbering: the first has velocities by averaged stamps, the second by the numbered clock."""
REFERENCE_STEPS = 2.0
"""Distance of the samples through which a spline foretells those that nearly coincide, in mean steps."""
BUNCHED_STEP, MAX_BUNCHED = 0.25, 0.3
"""Part of the mean step below which two samples arrived together, and part of the samples that may."""
MIN_SAMPLES = 50
MIN_NEIGHBOURHOOD, MAX_NEIGHBOURHOOD = 2.0, 12.0
"""Bounds of the time from the second sample before to the second after, in mean steps, that a cubic may bridge."""
MAX_SPREAD, MIN_USABLE = 100.0, 0.5
"""Amplification of noise up to which neighbours foretell a position, and part of the samples that must be foretold."""
MIN_NOISE_SIGMAS = 4.0
"""Standard errors from which residuals of several joints go together."""
MIN_WEIGHTED = 1e-6
"""Part of the largest power of the velocities below which samples weigh less."""
VELOCITY_TIME, VELOCITY_REACH = 0.02, (3, 20)
"""Time on each side of a step over which the velocity is taken, s, and bounds of it, in samples."""
MIN_POWER, MIN_COUNTED = 0.05, 1e-3
"""Parts of the mean squared velocity from which a step surely shows how much time has passed, and may."""
SLOWER_SHARE, MAX_ROUNDED = 0.25, 0.1
"""Part of the fast steps that says how uncertain slow ones are, and the typical error of a number of steps up to which
it is believed: rounding fails at 0.5."""
MAX_SHARED = 0.95
"""Correlation of successive delays, at most."""
MAX_MEAN_SIGMAS = 8.0
"""Standard errors of averaged deviations up to which they are the mean of the jitter; delays that pile up reach 6.2."""
SLOPE_TIME = 0.06
"""Time on each side over which velocity and acceleration are taken, s."""
CUTOFF_HZ = 17.5
"""Cutoff frequency of the positions in an identification of links, where its motion is slow."""
SMOOTHED = 101
"""Samples over which deviations from the numbered clock are averaged."""


def moved_times(time: NDArray, position: NDArray) -> NDArray | None:
    """Return times (N,) on a steady clock whose lost samples the positions show; None where they show no clock.

    Between two samples each joint moves by its velocity times the time that has passed. The velocity is that over more
    samples, by averaged stamps, so that the time is known to a small part of the period, however the stamps jitter.

    Args:
        time: (N,) stamps, s, strictly increasing.
        position: (N, n) rad or m.
    """
    clock = averaged_times(time)
    for _ in range(ROUNDS):
        clock = None if clock is None else _numbered_times(time, position, clock)
    return clock


def _numbered_times(time: NDArray, position: NDArray, base: NDArray) -> NDArray | None:
    """Return the times (N,) by the samples that the positions show to be lost, with velocities on a base clock (N,)."""
    step = float(time[-1] - time[0]) / (len(time) - 1)
    reach = int(np.clip(round(VELOCITY_TIME / step), *VELOCITY_REACH))
    if len(time) < MIN_SAMPLES + 2 * reach:
        return None
    index = np.arange(len(time) - 1)
    before = np.maximum(index - reach, 0)
    after = np.minimum(index + 1 + reach, len(time) - 1)
    velocity = (position[after] - position[before]) / (base[after] - base[before])[:, None]
    power = np.sum(velocity**2, axis=1)
    fast = power > MIN_POWER * np.mean(power)
    if not fast.any():
        return None
    passed = np.sum(np.diff(position, axis=0) * velocity, axis=1) / np.maximum(power, np.finfo(float).tiny)
    steps = passed / np.median(passed[fast])
    # Noise of the encoders makes steps uncertain by a part that grows as the speed falls.
    slower = fast & (power <= np.quantile(power[fast], SLOWER_SHARE))
    rounded = np.median((steps - np.round(steps))[slower] ** 2 * power[slower])
    counted = power > max(float(rounded) / MAX_ROUNDED**2, MIN_COUNTED * float(np.mean(power)))
    lost = np.where(counted, np.maximum(np.round(steps) - 1, 0), 0)
    number = np.concatenate([[0.0], np.cumsum(1 + lost)])
    period, start = np.polyfit(number, time, 1)
    clock = start + period * number
    slow = _smoothed(time - clock)
    jitter = time - clock - slow
    # A sample that waits for the one before it shares its delay.
    shared = float(np.clip(np.mean(jitter[1:] * jitter[:-1]) / max(np.var(jitter), 1e-30), 0.0, MAX_SHARED))
    independent = SMOOTHED * (1 - shared) / (1 + shared)
    # Losses while nothing moved, or a clock that drifts, leave more than the mean of the jitter; ends are extrapolated.
    inside = slow[SMOOTHED // 2 : -(SMOOTHED // 2)] if len(slow) > 2 * SMOOTHED else slow
    if np.max(np.abs(inside)) > MAX_MEAN_SIGMAS * np.std(jitter) / np.sqrt(independent):
        clock = clock + slow
    return clock


def jitter_about(time: NDArray, clock: NDArray) -> float:
    """Return the jitter of stamps (N,) about a clock (N,), s (RMS), without what changes slowly."""
    deviation = time - clock
    return float(np.std(deviation - _smoothed(deviation)))


def is_bunched(time: NDArray) -> bool:
    """Whether many of the samples with these stamps (N,), s, arrived together."""
    together = np.diff(time) < BUNCHED_STEP * (time[-1] - time[0]) / (len(time) - 1)
    return bool(np.mean(together) > MAX_BUNCHED)


def stamp_noise(time: NDArray, position: NDArray) -> float:
    """Estimate the noise of time stamps, s (RMS), from what it does to the positions of all joints at once.

    A stamp wrong by e shifts joint j by e qd_j. The residual r_j of each position against the cubic through its four
    neighbours then holds e qd_j in all joints, so that E[r_i r_j] = c e^2 qd_i qd_j for two joints, with c by the noise
    of the neighbours. Noise of the encoders differs from joint to joint, and drops out.

    Args:
        time: (N,) s, strictly increasing.
        position: (N, n) rad or m, n >= 2; one joint alone shows nothing.
    """
    if len(time) < MIN_SAMPLES or position.shape[1] < 2:
        return 0.0
    neighbours = [np.arange(2, len(time) - 2) + shift for shift in (-2, -1, 1, 2)]
    at = time[2:-2]
    foretold = np.zeros_like(position[2:-2])
    spread = np.ones(len(at))
    for i in neighbours:
        weight = np.ones(len(at))
        for k in neighbours:
            if k is not i:
                weight *= (at - time[k]) / (time[i] - time[k])
        foretold += weight[:, None] * position[i]
        spread += weight**2
    residual = position[2:-2] - foretold
    velocity = (position[4:] - position[:-4]) / (time[4:] - time[:-4])[:, None]
    # Samples between far apart neighbours are foretold badly, and so are those of a sudden stop. Neighbours that came
    # together have no velocity.
    elapsed = (time[4:] - time[:-4]) * (len(time) - 1) / (time[-1] - time[0])
    near = (elapsed > MIN_NEIGHBOURHOOD) & (elapsed < MAX_NEIGHBOURHOOD) & (spread < MAX_SPREAD)
    if np.mean(near) < MIN_USABLE or is_bunched(time):
        return _noise_between_references(time, position)
    return _shared_noise(residual[near], velocity[near], spread[near])


def _noise_between_references(time: NDArray, position: NDArray) -> float:
    """Return the noise of stamps of which many nearly coincide, against a spline through samples that are far apart."""
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
    return _shared_noise(residual, spline(time[others], 1), np.ones(np.count_nonzero(others)))


def _shared_noise(residual: NDArray, velocity: NDArray, spread: NDArray) -> float:
    """Return the noise of the stamps, s, that residuals (M, n) of the joints share; 0 where it is not significant.

    Args:
        residual: (M, n) of the positions.
        velocity: (M, n) of the joints.
        spread: (M,) factor c by which noise of the neighbours adds to that of the sample.
    """
    product, power = residual * velocity, velocity**2
    crossed = np.sum(product, axis=1) ** 2 - np.sum(product**2, axis=1)
    expected = np.sum(power, axis=1) ** 2 - np.sum(power**2, axis=1)
    largest = float(expected.max(initial=0.0))
    if not largest > np.finfo(float).tiny / MIN_WEIGHTED:
        return 0.0  # at rest, or where one joint moves at a time
    # Fast stretches say more, but no stretch says all.
    weight = 1 / np.maximum(expected, max(float(np.median(expected)), MIN_WEIGHTED * largest))
    total = np.sum(weight * spread * expected)
    shared = weight * crossed
    if np.sum(shared) <= MIN_NOISE_SIGMAS * np.sqrt(np.sum(shared**2)):
        return 0.0
    return float(np.sqrt(np.sum(shared) / total))


def acceleration_noise(time: NDArray, position: NDArray, noise: float) -> float:
    """Return what noise of the time stamps adds to the accelerations, as a part of their power.

    White noise e of the stamps adds e qd to the positions. A low-pass with cutoff frequency f of samples at rate r
    leaves (2 / r) (2 pi)^4 f^5 / 5 of its power in the accelerations. The regressor that holds them is then too large,
    and estimates are too small, by about this part.
    """
    reach = max(1, round(SLOPE_TIME * (len(time) - 1) / (time[-1] - time[0])))
    if len(time) <= 2 * reach:
        return 0.0
    before, middle, after = position[: -2 * reach], position[reach:-reach], position[2 * reach :]
    half = ((time[2 * reach :] - time[: -2 * reach]) / 2)[:, None]
    velocity = np.mean(((after - before) / (2 * half)) ** 2)
    acceleration = np.mean(((after - 2 * middle + before) / half**2) ** 2)
    rate = (len(time) - 1) / (time[-1] - time[0])
    cutoff = min(CUTOFF_HZ, rate / 2)
    passed = 2 / rate * (2 * np.pi) ** 4 * cutoff**5 / 5
    return float(noise**2 * velocity * passed / acceleration) if acceleration > 0 else 0.0


def averaged_times(time: NDArray) -> NDArray | None:
    """Return the stamps (N,) averaged over their neighbours, which leaves half a period near each lost sample."""
    index = np.arange(len(time))
    line = np.polyval(np.polyfit(index, time, 1), index)
    return _increasing(line + _smoothed(time - line), float(np.polyfit(index, time, 1)[0]))


def _smoothed(values: NDArray) -> NDArray:
    """Return the moving average of values (N,), by straight lines at the ends."""
    width = min(SMOOTHED, len(values) // 2 * 2 - 1)
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
    """Return the times if they increase, as a clock that is followed too closely does not."""
    return time if np.all(np.diff(time) > 0.1 * period) else None
