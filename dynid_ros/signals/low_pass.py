"""Zero-phase low-pass filter, the decimation that it allows, and a cut-off from the spectrum of the motion."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.signals.spectra import (
    butterworth_poles,
    power_density,
    squared_hann,
)

SETTLED = 0.01
"""Share of a disturbance at an end of the record that is left in the samples that are kept."""
ALIASED = 0.01
"""Largest gain above the Nyquist frequency after decimation."""
FREQUENCIES = 10_000
"""At which the gain is looked at for what it leaves of white noise."""


@dataclass(frozen=True)
class LowPass:
    """Butterworth filter run forward and backward in second-order sections: no phase, gain 1/√2 at the cut-off.

    A linear model holds after any linear filter, as long as torque and every column of the regressor pass through
    the same one ("parallel filtering", Gautier 1997): so use one instance for both.

    Args:
        cutoff: frequency of gain 1/√2 after both passes, Hz.
        rate: of the samples, Hz.
        order: of each pass.

    Raises:
        RecordingError: the cut-off is not between 0 and half the rate.
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
        """Amplitude after both passes at each frequency in Hz, of the same shape."""
        warped = np.tan(np.pi * np.asarray(frequency, dtype=float) / self.rate)
        return 1 / (1 + (warped / self._warped_corner) ** (2 * self.order))

    @cached_property
    def edge(self) -> int:
        """Samples at each end that what was before and after the record still disturbs by more than 1 %."""
        corner = np.arctan(self._warped_corner) / np.pi * self.rate
        slowest = np.max(np.abs(butterworth_poles(self.order, corner, self.rate)))
        return int(np.ceil(np.log(SETTLED) / np.log(slowest)))

    @cached_property
    def decimation(self) -> int:
        """Largest factor of decimation after which aliases are at most 1 %."""
        stop = np.arctan(self._warped_corner * (1 / ALIASED - 1) ** (1 / (2 * self.order))) * self.rate / np.pi
        return max(1, int(self.rate / (2 * stop)))

    @cached_property
    def noise_factor(self) -> float:
        """How many times as large independent noise is that hides a motion as well as white noise after `reduce`.

        Decimated to more than twice the bandwidth, samples repeat some of their neighbours' noise.
        """
        frequencies = (np.arange(FREQUENCIES) + 0.5) / FREQUENCIES * self.rate / 2
        passed = np.mean(self.gain(frequencies) ** 2)
        return max(1.0, float(1 / np.sqrt(passed * self.decimation)))

    def kept(self, n_samples: int) -> slice:
        """Which of so many filtered samples to keep: without the ends, decimated.

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
        """Same shape as `values`, filtered along `axis`; beyond its ends the signal is continued point-symmetrically.

        That keeps value and slope, not curvature: do not use the `edge` samples at the ends for more than a plot.

        Raises:
            RecordingError: too few samples, or values that are not finite.
        """
        values = np.asarray(values, dtype=float)
        if values.shape[axis] < 2 or not np.all(np.isfinite(values)):
            raise RecordingError(
                f"cannot filter {values.shape[axis]} samples with {np.sum(~np.isfinite(values))} values that are not "
                "finite: leave out what was not recorded, and resample around gaps"
            )
        from scipy.signal import sosfiltfilt  # noqa: PLC0415  # takes 0.4 s

        return sosfiltfilt(self._sections, values, axis=axis, padlen=min(3 * self.edge, values.shape[axis] - 1))

    def reduce(self, values: ArrayLike, axis: int = 0) -> NDArray:
        """Filtered along `axis`, without the ends, decimated: `filter` and `kept` in one."""
        kept = self.kept(np.shape(values)[axis])
        return np.moveaxis(np.moveaxis(self.filter(values, axis), axis, 0)[kept], 0, axis)

    @cached_property
    def _warped_corner(self) -> float:
        """Corner of one pass, as tan(π f / rate): each pass may take only half of the 3 dB."""
        return float(np.tan(np.pi * self.cutoff / self.rate) / (np.sqrt(2) - 1) ** (1 / (2 * self.order)))

    @cached_property
    def _sections(self) -> NDArray:
        from scipy.signal import butter  # noqa: PLC0415  # takes 0.4 s

        corner = np.arctan(self._warped_corner) / np.pi * self.rate
        return butter(self.order, corner, fs=self.rate, output="sos")


RESOLUTION, FEWEST_SAMPLES = 8.0, 8
"""Length of the averaged periodograms, s; how many samples it has at least."""
SMOOTHING = (0.5, 0.15)
"""Half width over which the spectrum is averaged to distinguish motion from noise: Hz, and share of the frequency."""
ABOVE_NOISE = 100.0
"""A joint moves if its power density at the peak is so much more than the noise."""
PASSED = 0.99
"""Gain of the low-pass at the highest frequency of the motion."""
HIGHEST = 0.8
"""Highest cut-off, in parts of half the rate."""


@dataclass(frozen=True, eq=False)
class Cutoff:
    """A choice and why.

    Attributes:
        low_pass: the filter.
        bands: (n,) highest frequency of each joint's motion, Hz; NaN for a joint at rest.
        valleys: (n,) frequency from which noise outweighs motion, Hz; NaN for a joint at rest.
        reason: one or two sentences.
    """

    low_pass: LowPass
    bands: NDArray
    valleys: NDArray
    reason: str


def choose_cutoff(position: ArrayLike, rate: float, share: float = 0.9999, order: int = 4) -> Cutoff:
    """Low-pass that keeps the motion and stops what is above it.

    The power density of acceleration, ω⁴ times that of position, falls beyond the motion and rises where sensor noise
    takes over. Below that valley, with the density found there taken off as noise, the band is what holds `share` of
    the energy. The cut-off is where the fastest joint's band passes with a gain of 0.99: joints are
    coupled, so one filter serves all. A servo that vibrates by itself counts as motion, and so does noise in a record
    that was low-passed above its noise: look at the reason that is given.

    Args:
        position: (N, n) rad or m, uniformly sampled.
        rate: Hz.
        share: of the acceleration's energy.
        order: of the filter, each pass.

    Raises:
        RecordingError: fewer than 64 samples, samples too far apart, or no joint moves.
    """
    position = np.asarray(position, dtype=float)
    if len(position) < 64 or not np.all(np.isfinite(position)):
        raise RecordingError(
            f"no spectrum of {len(position)} positions: expected at least 64, all finite; record longer"
        )
    length = min(len(position), int(RESOLUTION * rate))
    if length < FEWEST_SAMPLES:
        raise RecordingError(
            f"no spectrum of positions that are {1 / rate:.3g} s apart: expected some in a second; time must be in s"
        )
    bands, valleys = _bands(position, rate, length, share)
    if np.isnan(bands).all():
        # A joint that went one way, sped up and braked where the window sees nothing, and it is a trend elsewhere.
        reach = length // 2
        before, after = 2 * position[0] - position[reach:0:-1], 2 * position[-1] - position[-2 : -reach - 2 : -1]
        bands, valleys = _bands(np.concatenate([before, position, after]), rate, length, share)
    if np.isnan(bands).all():
        raise RecordingError("no joint moves above its noise: there is no motion to choose a cut-off for")
    fastest = int(np.nanargmax(bands))
    cutoff = _passing(bands[fastest], rate, order)
    reason = (
        f"{100 * share:g} % of the acceleration lies below {bands[fastest]:.3g} Hz in the fastest joint "
        f"(number {fastest + 1}; noise prevails from {valleys[fastest]:.3g} Hz), "
        f"which a low-pass at {cutoff:.3g} Hz passes with {100 * (1 - PASSED):.0f} % loss."
    )
    if cutoff > HIGHEST * rate / 2:
        cutoff = HIGHEST * rate / 2
        reason = (
            f"the motion reaches up to {bands[fastest]:.3g} Hz, too close to half of the {rate:.4g} samples per "
            f"second: {cutoff:.3g} Hz is the highest cut-off there; record faster."
        )
    return Cutoff(LowPass(float(cutoff), rate, order), bands, valleys, reason)


def _bands(position: NDArray, rate: float, length: int, share: float) -> tuple[NDArray, NDArray]:
    """(n,) ends of the motions and the valleys behind them, Hz, of positions (N, n) by parts of a length."""
    # Slow motion leaks into high frequencies, where ω⁴ magnifies it: a squared Hann window leaks little.
    frequency, density = power_density(position, rate, squared_hann(length))
    # Detrending empties the lowest bins, the last one holds half.
    frequency, density = frequency[1:-1], density[1:-1]
    found = np.array([_band(frequency, column, share) for column in density.T])
    return found[:, 0], found[:, 1]


def _band(frequency: NDArray, density: NDArray, share: float) -> tuple[float, float]:
    """End of the motion and the valley behind it, Hz; NaN if this joint rests."""
    smooth = _smooth(frequency, density)
    # Velocity falls off on both sides of the motion; the noise of a fast recording can outweigh acceleration.
    peak = int(np.argmax(frequency**2 * smooth))
    acceleration = frequency**4 * smooth
    valley = peak + int(np.argmin(acceleration[peak:]))
    if not smooth[peak] > ABOVE_NOISE * smooth[valley]:
        return np.nan, np.nan
    energy = np.cumsum(frequency**4 * np.maximum(density - smooth[valley], 0.0) * (np.arange(len(density)) <= valley))
    return frequency[np.searchsorted(energy, share * energy[-1])], frequency[valley]


def _smooth(frequency: NDArray, density: NDArray) -> NDArray:
    half = np.maximum(SMOOTHING[0], SMOOTHING[1] * frequency)
    first = np.searchsorted(frequency, frequency - half)
    last = np.searchsorted(frequency, frequency + half, side="right")
    total = np.concatenate([[0.0], np.cumsum(density)])
    return (total[last] - total[first]) / (last - first)


def _passing(band: float, rate: float, order: int) -> float:
    """Cut-off of the forward-backward filter whose gain at `band` is PASSED, Hz."""
    warped = np.tan(np.pi * band / rate) * (1 / (1 / PASSED - 1) * (np.sqrt(2) - 1)) ** (1 / (2 * order))
    return float(np.arctan(warped) / np.pi * rate)
