"""Zero-phase low-pass, its decimation, the choice of its cutoff frequency, and derivatives of sampled positions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.files.disk_arrays import ROWS_PER_BLOCK, column_ranges, map_blocks, new_array, read_column, row_blocks
from dynid_ros.signals.spectra import (
    COUNT_TOLERANCE,
    apply_gain,
    butterworth_poles,
    derivative_matrix,
    power_density,
    squared_hann,
)

MAX_DISTURBANCE = 0.01
"""Largest share of a disturbance at an end of the record in the samples that are kept."""
MAX_ALIAS_GAIN = 0.01
"""Largest gain above the Nyquist frequency after decimation."""
CONTINUED_EDGES = 3
"""Length of the point-symmetric continuation beyond each end, in edges; beyond it, values are constant."""
BLOCK_REACH_EDGES = 6
"""Number of edges of a neighbouring block that a block is filtered with: a disturbance there is less than 1e-12."""
BLOCK_REACHES = 8
"""Smallest length of a block, as a multiple of what it is filtered with."""
RESPONSE_EDGES = 8
"""Length of the impulse response on each side, in edges: the rest is less than 1e-15."""
N_FREQUENCIES = 10_000
"""Number of frequencies over which the gain for white noise is averaged."""


@dataclass(frozen=True)
class LowPass:
    """Butterworth filter run forward and backward, with zero phase.

    A linear model holds after any linear filter, as long as torque and every column of the regressor pass through
    the same filter ("parallel filtering", Gautier 1997). Use one instance for both.

    Args:
        cutoff: cutoff frequency with a gain of 1/√2 after both passes, Hz.
        rate: sampling rate, Hz.
        order: order of each pass.

    Raises:
        RecordingError: the cutoff frequency is not between 0 and half the rate.
    """

    cutoff: float
    rate: float
    order: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.cutoff < self.rate / 2:
            raise RecordingError(
                f"a cut-off of {self.cutoff:g} Hz is impossible at {self.rate:g} samples per second: "
                f"choose one between 0 and {self.rate / 2:g} Hz"
            )

    def gain(self, frequency: ArrayLike) -> NDArray:
        """Return the gain of both passes at each frequency, Hz."""
        warped = np.tan(np.pi * np.asarray(frequency, dtype=float) / self.rate)
        with np.errstate(over="ignore"):  # at half of the sampling rate
            return 1 / (1 + (warped / self._warped_corner) ** (2 * self.order))

    @cached_property
    def edge(self) -> int:
        """Number of samples at each end that values beyond the record disturb by more than 1 %."""
        corner = np.arctan(self._warped_corner) / np.pi * self.rate
        slowest = np.max(np.abs(butterworth_poles(self.order, corner, self.rate)))
        return int(np.ceil(np.log(MAX_DISTURBANCE) / np.log(slowest)))

    @cached_property
    def decimation(self) -> int:
        """Largest factor of decimation after which aliases are at most 1 %."""
        stop = np.arctan(self._warped_corner * (1 / MAX_ALIAS_GAIN - 1) ** (1 / (2 * self.order))) * self.rate / np.pi
        return max(1, int(self.rate / (2 * stop)))

    @cached_property
    def noise_factor(self) -> float:
        """Ratio of independent noise that hides a motion equally well to white noise after `reduce`.

        Decimated to more than twice the bandwidth, samples repeat some of their neighbours' noise.
        """
        frequencies = (np.arange(N_FREQUENCIES) + 0.5) / N_FREQUENCIES * self.rate / 2
        passed = np.mean(self.gain(frequencies) ** 2)
        return max(1.0, float(1 / np.sqrt(passed * self.decimation)))

    def kept(self, n_samples: int) -> slice:
        """Return the filtered samples to keep, without the ends and decimated.

        Raises:
            RecordingError: the record is shorter than both ends.
        """
        if n_samples <= 2 * self.edge:
            raise RecordingError(
                f"{n_samples} samples ({n_samples / self.rate:.3g} s) are too short for a low-pass at "
                f"{self.cutoff:.3g} Hz, which spoils {self.edge} samples at each end: "
                "record longer, or raise the cut-off"
            )
        return slice(self.edge, n_samples - self.edge, self.decimation)

    def filter(self, values: ArrayLike, axis: int = 0) -> NDArray:
        """Filter values along `axis`, continued point-symmetrically beyond the ends.

        The continuation keeps value and slope but not curvature: use the `edge` samples at the ends for plots only.

        Raises:
            RecordingError: too few samples, or values are not finite.
        """
        values = np.asarray(values, dtype=float)
        if axis != 0:
            return np.moveaxis(self.filter(np.moveaxis(values, axis, 0)), 0, axis)
        bad = sum(int(np.sum(~np.isfinite(values[rows]))) for rows in row_blocks(len(values)))
        if len(values) < 2 or bad:
            raise RecordingError(
                f"cannot filter {len(values)} samples with {bad} values that are not finite: leave out what was not "
                "recorded, and resample around gaps"
            )
        reach = BLOCK_REACH_EDGES * self.edge
        return map_blocks(self._filter_block, values, reach, max(ROWS_PER_BLOCK, BLOCK_REACHES * reach))

    def select(self, values: NDArray, kept: NDArray, every: int = 1) -> NDArray:
        """Return the kept rows (K,), at even distances, of the filtered values (N, k), faster than `filter`.

        The rows are a product of a matrix with the values, which is computed once for blocks of equal length.

        Args:
            values: every sample, or every second and so on of a signal that has no power near that rate.
            kept: samples of the whole signal.
            every: distance between the given samples.
        """
        step = int(kept[1] - kept[0]) if len(kept) > 1 else 1
        return _selection(self, len(values), range(int(kept[0]), int(kept[-1]) + 1, step), every) @ values

    def reduce(self, values: ArrayLike, axis: int = 0) -> NDArray:
        """Filter values along `axis`, and return the samples to keep."""
        kept = self.kept(np.shape(values)[axis])
        return np.moveaxis(np.moveaxis(self.filter(values, axis), axis, 0)[kept], 0, axis)

    def _filter_block(self, values: NDArray) -> NDArray:
        beyond = min(CONTINUED_EDGES * self.edge, len(values) - 1)
        ahead = 2 * values[0] - values[beyond:0:-1]
        after = 2 * values[-1] - values[-2 : -beyond - 2 : -1]
        rest = RESPONSE_EDGES * min(self.edge, len(values))
        constant = np.broadcast_to(after[-1], (rest, *after[-1].shape))
        # Constant signals stay exactly constant: their rounding must not look like motion.
        continued = np.concatenate([ahead, values, after, constant]) - ahead[0]
        filtered = apply_gain(continued, lambda frequency: self.gain(frequency * self.rate), rest)
        return filtered[beyond : beyond + len(values)] + ahead[0]

    @cached_property
    def _warped_corner(self) -> float:
        """Corner of one pass, as tan(π f / rate), at which each pass attenuates by half of the 3 dB."""
        return float(np.tan(np.pi * self.cutoff / self.rate) / (np.sqrt(2) - 1) ** (1 / (2 * self.order)))


@lru_cache(maxsize=16)
def _selection(low_pass: LowPass, size: int, kept: range, every: int) -> NDArray:
    """Return the matrix (K, size) from every `every`-th value to the kept filtered values (K,).

    As in `LowPass.filter`, values are continued point-symmetrically over three edges, and are constant beyond.
    """
    beyond = min(CONTINUED_EDGES * low_pass.edge // every, size - 1)
    reach = size + 2 * beyond
    length = every * reach
    impulse = np.zeros((2 * RESPONSE_EDGES * low_pass.edge + 1, 1))
    impulse[len(impulse) // 2] = 1.0
    response = np.zeros(length)
    half = low_pass.filter(impulse)[len(impulse) // 2 :, 0]
    response[: len(half)] = half[:length]
    places = every * beyond + np.array(kept)
    weights = every * response[np.abs(places[:, None] - every * np.arange(reach))]
    # A step at distance d has passed but for the response beyond d.
    remaining = np.append(np.cumsum(half[::-1])[::-1][1:], np.zeros(max(0, length - len(half)) + 1))
    weights[:, 0] += remaining[places]
    weights[:, -1] += remaining[every * (reach - 1) - places]
    matrix = weights[:, beyond : beyond + size].copy()
    before = weights[:, :beyond][:, ::-1]
    after = weights[:, beyond + size :]
    matrix[:, 0] += 2 * before.sum(axis=1)
    matrix[:, -1] += 2 * after.sum(axis=1)
    matrix[:, 1 : beyond + 1] -= before
    matrix[:, size - 1 - beyond : size - 1] -= after[:, ::-1]
    return matrix


PERIODOGRAM_S = 8.0
"""Length of the averaged periodograms."""
MIN_PERIODOGRAM_SAMPLES = 8
SMOOTHING_HZ = 0.5
"""Smallest half width over which the spectrum is averaged to distinguish motion from noise."""
SMOOTHING_FRACTION = 0.15
"""Half width of this average, as a fraction of the frequency."""
MIN_PEAK_TO_NOISE = 100.0
"""Smallest ratio of the power density at the peak to that of the noise, for a joint that moves."""
VALLEY_TOLERANCE = 0.05
"""Relative tolerance of the density at a valley: the smoothed density of half a minute is uncertain by more."""
MIN_BAND_GAIN = 0.99
"""Gain of the low-pass at the highest frequency of the motion."""
MAX_CUTOFF_OF_NYQUIST = 0.8
"""Largest cutoff frequency, as a fraction of half the sampling rate."""
MIN_VISIBLE_RATIO = 3.0
"""Smallest ratio of the densities of a position and of its noise for motion or vibration; noise alone varies less."""
WINDOW_SPREAD = 4 / 7
"""Variance of the spectral window of `squared_hann`, in squares of the distance between frequencies."""
MAX_NOISE_SHARE = 5e-3
"""Largest share of noise in the power of an acceleration that is not smoothed further; biases reach four times it."""
SMOOTHED_NOISE_SHARE = 1e-3
"""Share of noise that further smoothing leaves."""


@dataclass(frozen=True, eq=False)
class Cutoff:
    """Chosen low-pass, with the reason.

    Attributes:
        low_pass: chosen filter.
        bands: (n,) highest frequency of each joint's motion, Hz; NaN for a joint at rest.
        valleys: (n,) frequency from which noise outweighs motion, Hz; NaN for a joint at rest.
        reason: explanation in one or two sentences.
        frequency: (K,) Hz.
        density: (K, n) power density of the positions at each frequency, rad²/Hz or m²/Hz.
    """

    low_pass: LowPass
    bands: NDArray
    valleys: NDArray
    reason: str
    frequency: NDArray
    density: NDArray

    def smoothing_cutoffs(self, cutoff: float, highest: float) -> NDArray:
        """Return the cutoff frequency (n,) of the low-pass of each joint's positions, Hz.

        Least squares attenuates a parameter by the share of noise in the power of its regressor. White noise of density
        N has the power (2π)⁴ N f⁵/5 in the accelerations up to a frequency f. Frequencies at which motion or vibration
        outweighs the noise pass.

        Args:
            cutoff: cutoff frequency of the equations, which stop noise above it, Hz.
            highest: cutoff frequency of joints whose noise does no harm, Hz.
        """
        inside = self.frequency <= cutoff
        # The window spreads each line; a Hermite polynomial has the mean f⁴ over a normal distribution about f.
        spread = WINDOW_SPREAD * self.frequency[0] ** 2
        weight = self.frequency**4 - 6 * spread * self.frequency**2 + 3 * spread**2
        found = np.full(len(self.bands), highest)
        for j in np.flatnonzero(np.isfinite(self.valleys)):
            density = self.density[:, j]
            smooth = _smooth(self.frequency, density)
            noise = float(np.median(smooth[self.frequency >= self.valleys[j]]))
            visible = self.frequency[inside & (smooth > MIN_VISIBLE_RATIO * noise)].max(initial=0.0)
            signal = np.where(self.frequency <= visible, np.maximum(density - noise, 0.0), 0.0)
            power = max(self.frequency[0] * float(weight @ signal), 0.0)
            if noise * cutoff**5 / 5 <= MAX_NOISE_SHARE * power:
                continue
            harmless = (5 * SMOOTHED_NOISE_SHARE * power / noise) ** 0.2
            chosen = max(harmless, _passing(visible, self.low_pass.rate, self.low_pass.order))
            found[j] = chosen if chosen < cutoff else highest
        return found


def choose_cutoff(position: ArrayLike, rate: float, share: float = 0.9999, order: int = 4) -> Cutoff:
    """Choose a low-pass that passes the motion and stops noise above it.

    The power density of acceleration, ω⁴ times that of position, falls beyond the motion and rises where sensor noise
    takes over. Of several valleys that are equally deep within `VALLEY_TOLERANCE`, the one at the lowest frequency
    counts, so rounding decides nothing. The density at the valley is subtracted as noise, and the band contains `share`
    of the energy below it. The cutoff frequency passes the band of the fastest joint with a gain of 0.99. Joints are
    coupled, so one filter serves all. A vibrating servo counts as motion, and so does noise in a record that was
    low-passed above its noise; the reason shows it.

    Args:
        position: (N, n) rad or m, uniformly sampled.
        rate: sampling rate, Hz.
        share: share of the acceleration's energy in the band.
        order: order of each pass of the filter.

    Raises:
        RecordingError: fewer than 64 samples, samples too far apart, or no joint moves.
    """
    position = np.asarray(position, dtype=float)
    if len(position) < 64 or not np.isfinite(column_ranges(position)).all():
        raise RecordingError(
            f"no spectrum of {len(position)} positions: expected at least 64, all finite; record longer"
        )
    length = min(len(position), round(PERIODOGRAM_S * rate))
    if length < MIN_PERIODOGRAM_SAMPLES:
        raise RecordingError(
            f"no spectrum of positions that are {1 / rate:.3g} s apart: expected some in a second; time must be in s"
        )
    bands, valleys, spectrum = _bands(position, rate, length, share)
    if np.isnan(bands).all():
        # A joint that moved in one direction accelerated where the window is small. Elsewhere it is a trend.
        reach = length // 2
        before = 2 * position[0] - position[reach:0:-1]
        after = 2 * position[-1] - position[-2 : -reach - 2 : -1]
        bands, valleys, spectrum = _bands(np.concatenate([before, position, after]), rate, length, share)
    if np.isnan(bands).all():
        raise RecordingError("no joint moves above its noise: there is no motion to choose a cut-off for")
    fastest = int(np.nanargmax(bands))
    cutoff = _passing(bands[fastest], rate, order)
    reason = (
        f"{100 * share:g} % of the acceleration lies below {bands[fastest]:.3g} Hz in the fastest joint "
        f"(number {fastest + 1}; noise prevails from {valleys[fastest]:.3g} Hz), "
        f"which a low-pass at {cutoff:.3g} Hz passes with {100 * (1 - MIN_BAND_GAIN):.0f} % loss."
    )
    if cutoff > MAX_CUTOFF_OF_NYQUIST * rate / 2:
        cutoff = MAX_CUTOFF_OF_NYQUIST * rate / 2
        reason = (
            f"the motion reaches up to {bands[fastest]:.3g} Hz, too close to half of the {rate:.4g} samples per "
            f"second: {cutoff:.3g} Hz is the highest cut-off there; record faster."
        )
    return Cutoff(LowPass(float(cutoff), rate, order), bands, valleys, reason, *spectrum)


def _bands(position: NDArray, rate: float, length: int, share: float) -> tuple[NDArray, NDArray, list[NDArray]]:
    """Return the ends (n,) of the bands, the valleys (n,) above them, and the spectrum of `Cutoff`."""
    # Slow motion leaks into high frequencies, where ω⁴ magnifies it: a squared Hann window leaks little.
    frequency, density = power_density(position, rate, squared_hann(length))
    # Detrending empties the lowest bins, the last one holds half.
    frequency = frequency[1:-1]
    density = density[1:-1]
    found = np.array([_band(frequency, column, share) for column in density.T])
    return found[:, 0], found[:, 1], [frequency, density]


def _band(frequency: NDArray, density: NDArray, share: float) -> tuple[float, float]:
    """Return the end of the band and the valley above it, Hz; NaN for a joint at rest."""
    smooth = _smooth(frequency, density)
    # Velocity falls off on both sides of the motion; the noise of a fast recording can outweigh acceleration.
    peak = int(np.argmax(frequency**2 * smooth))
    acceleration = frequency**4 * smooth
    valley = peak + _first_valley(acceleration[peak:])
    if not smooth[peak] > MIN_PEAK_TO_NOISE * smooth[valley]:
        return np.nan, np.nan
    energy = np.cumsum(frequency**4 * np.maximum(density - smooth[valley], 0.0) * (np.arange(len(density)) <= valley))
    return frequency[np.searchsorted(energy, share * energy[-1])], frequency[valley]


def _first_valley(density: NDArray) -> int:
    """Return the index of the first local minimum of a density (K,) that is nearly as small as the smallest value."""
    neighbours = np.concatenate([[np.inf], density, [np.inf]])
    is_minimum = (density <= neighbours[:-2]) & (density <= neighbours[2:])
    is_near = density <= (1 + VALLEY_TOLERANCE) * density.min()
    return int(np.flatnonzero(is_minimum & is_near)[0])


def _smooth(frequency: NDArray, density: NDArray) -> NDArray:
    """Return the mean density about each of the frequencies (K,), which are multiples of the first, Hz."""
    number = np.arange(1, len(frequency) + 1)
    half = np.maximum(SMOOTHING_HZ / frequency[0], SMOOTHING_FRACTION * number)
    # Half widths are often whole numbers of bins, up to rounding.
    half = np.floor(half + COUNT_TOLERANCE).astype(int)
    first = np.maximum(number - half - 1, 0)
    last = np.minimum(number + half, len(number))
    total = np.concatenate([[0.0], np.cumsum(density)])
    return (total[last] - total[first]) / (last - first)


def _passing(band: float, rate: float, order: int) -> float:
    """Return the cutoff frequency of the filter whose gain at `band`, Hz, is `MIN_BAND_GAIN`."""
    warped = np.tan(np.pi * band / rate) * (1 / (1 / MIN_BAND_GAIN - 1) * (np.sqrt(2) - 1)) ** (1 / (2 * order))
    return float(np.arctan(warped) / np.pi * rate)


STENCIL = 7
"""Number of samples in a central difference."""


class Motion(NamedTuple):
    """Position, velocity and acceleration (N, n), in rad or m and seconds."""

    position: NDArray
    velocity: NDArray
    acceleration: NDArray


def filtered_motion(position: ArrayLike, low_pass: LowPass) -> Motion:
    """Return the motion of positions (N, n) after a zero-phase low-pass and central differences.

    Position is filtered too, so that the three belong to one motion. The filter must not damp the motion: choose a
    cutoff frequency well above it (`choose_cutoff`). The first and last `low_pass.edge` samples are inaccurate.
    """
    smooth = low_pass.filter(position)
    return Motion(smooth, *central_differences(smooth, 1 / low_pass.rate))


def central_differences(values: ArrayLike, step: float) -> tuple[NDArray, NDArray]:
    """Return the first and second derivative over seven samples, of sixth order, without smoothing.

    Common differences of two neighbours damp motion by sin(ωT)/(ωT), 6 % for 10 Hz at 100 samples per second; these
    damp by (ωT)⁶/140, 0.04 %. At the ends, the polynomial through the outer seven samples is differentiated.

    Args:
        values: (N, ...) samples, N >= 7.
        step: time T between samples, s.

    Returns:
        (N, ...) per second and (N, ...) per second squared.

    Raises:
        RecordingError: fewer than seven samples.
    """
    values = np.asarray(values, dtype=float)
    if len(values) < STENCIL:
        raise RecordingError(f"central differences need {STENCIL} samples, there are {len(values)}: record longer")
    # A local fit without degrees of freedom interpolates: its derivatives are the central differences.
    velocity, acceleration = (
        map_blocks(lambda part: local_derivative(part, STENCIL, STENCIL - 1, order, step), values, reach=STENCIL)  # noqa: B023
        for order in (1, 2)
    )
    return velocity, acceleration


MAX_GAP = 100.0
"""Largest gap, as a multiple of the window or the median step, whichever is longer. Longer gaps, as where a clock was
set, are shortened."""


def differentiate(time: NDArray, values: NDArray, window: float, orders: Sequence[int] = (1, 2)) -> tuple[NDArray, ...]:
    """Return derivatives by local quadratic fits without delay (Savitzky & Golay 1964).

    The samples are first interpolated linearly to their median step, so that jitter and short gaps do no harm.

    Args:
        time: (N,) increasing times, s.
        values: (N, n) samples.
        window: length of the local fit, s; at least five samples are used.
        orders: orders of the derivatives, 1 or 2.

    Returns:
        For each order k the derivative (N, n), per second to the power k, at `time`.
    """
    time, step, count, length = _fitted_grid(time, window)
    derivatives = tuple(new_array(*values.shape) for _ in orders)
    for rows in row_blocks(len(time)):
        first = max(0, int(time[rows.start] / step) - length)
        uniform = step * np.arange(first, min(count, int(time[rows.stop - 1] / step) + 2 + length))
        known = slice(max(0, int(np.searchsorted(time, uniform[0])) - 1), int(np.searchsorted(time, uniform[-1])) + 1)
        resampled = np.stack([np.interp(uniform, time[known], column) for column in values[known].T], axis=1)
        for order, derivative in zip(orders, derivatives, strict=True):
            smooth = local_derivative(resampled, length, 2, order, step)
            for j, column in enumerate(smooth.T):
                derivative[rows, j] = np.interp(time[rows], uniform, column)
    return derivatives


def differentiate_at(rows: NDArray, time: NDArray, values: NDArray, window: float) -> tuple[NDArray, NDArray]:
    """Return the first and second derivative (M, n) as `differentiate` does, but at few rows (M,) of a long recording.

    Other arguments are those of `differentiate`.
    """
    time, step, count, length = _fitted_grid(time, window)
    place = time[rows] / step
    before = np.minimum(place.astype(int), count - 2)
    fraction = np.minimum(place - before, 1.0)
    half = length // 2
    weights = [derivative_matrix(length, 2, order, step) for order in (1, 2)]
    derivatives = np.empty((len(rows), values.shape[1])), np.empty((len(rows), values.shape[1]))
    for j in range(values.shape[1]):
        column = read_column(values, j)
        ends = []
        for grid in (before, before + 1):
            first = np.clip(grid - half, 0, count - length)
            fitted = np.interp(step * (first[:, None] + np.arange(length)), time, column)
            ends.append([np.einsum("mi,mi->m", fitted, weight[grid - first]) for weight in weights])
        for derivative, low, high in zip(derivatives, *ends, strict=True):
            derivative[:, j] = low + fraction * (high - low)
    return derivatives


def _fitted_grid(time: NDArray, window: float) -> tuple[NDArray, float, int, int]:
    """Return times from 0 with long gaps shortened, s, step, s, and size of their grid, and samples of a local fit."""
    steps = np.diff(time)
    step = float(np.median(steps))
    np.minimum(steps, MAX_GAP * max(window, step), out=steps)
    time = np.concatenate([[0.0], np.cumsum(steps)])
    count = int(np.ceil((time[-1] + step / 2) / step))
    return time, step, count, min(max(5, round(window / step) // 2 * 2 + 1), (count - 1) // 2 * 2 + 1)


def local_derivative(values: NDArray, length: int, degree: int, order: int, step: float) -> NDArray:
    """Return a derivative (N, …) by polynomials through `length` samples each (Savitzky & Golay 1964), N >= length.

    At the ends the outermost polynomial is differentiated.
    """
    weights = derivative_matrix(length, degree, order, step)
    half = length // 2
    derivative = np.apply_along_axis(np.convolve, 0, values, weights[half][::-1], "same")
    derivative[:half] = np.tensordot(weights[:half], values[:length], 1)
    derivative[len(values) - half :] = np.tensordot(weights[half + 1 :], values[-length:], 1)
    return derivative
