"""Estimate of the noise of time stamps from the motion of all joints, and of its harm to accelerations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from dynid_ros.files.disk_arrays import new_array, row_blocks
from dynid_ros.signals.spectra import COUNT_TOLERANCE

MIN_SAMPLES = 50
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
    if len(time) < MIN_SAMPLES or position.shape[1] < 2:
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
