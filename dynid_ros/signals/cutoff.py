"""Cut-off of a low-pass, chosen from the spectrum of the motion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import welch
from scipy.signal.windows import hann

from dynid_ros.errors import RecordingError
from dynid_ros.signals.low_pass import LowPass

RESOLUTION = 8.0
"""Length of the averaged periodograms, s."""
SMOOTHING = (0.5, 0.15)
"""Half width over which the spectrum is averaged to tell motion from noise: Hz, and share of the frequency."""
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
        RecordingError: fewer than 64 samples, or no joint moves.

    """
    position = np.asarray(position, dtype=float)
    if len(position) < 64 or not np.all(np.isfinite(position)):
        raise RecordingError(
            f"no spectrum of {len(position)} positions: expected at least 64, all finite; record longer"
        )
    length = min(len(position), int(RESOLUTION * rate))
    # Slow motion leaks into high frequencies, where ω⁴ magnifies it: a squared Hann window leaks as ω⁻¹⁰ in power.
    window = hann(length, sym=False) ** 2
    frequency, density = welch(position, rate, window, axis=0, detrend="linear")
    # Detrending empties the lowest bins, the last one holds half.
    frequency, density = frequency[1:-1], density[1:-1]
    found = np.array([_band(frequency, column, share) for column in density.T])
    bands, valleys = found[:, 0], found[:, 1]
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
