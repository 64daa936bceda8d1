"""Zero-phase low-pass filter and the decimation that it allows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import butter, sosfiltfilt

from dynid_ros.errors import RecordingError

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
        poles = butter(self.order, corner, fs=self.rate, output="zpk")[1]
        return int(np.ceil(np.log(SETTLED) / np.log(np.max(np.abs(poles)))))

    @cached_property
    def decimation(self) -> int:
        """Largest factor of decimation after which aliases are at most 1 %."""
        stop = np.arctan(self._warped_corner * (1 / ALIASED - 1) ** (1 / (2 * self.order))) * self.rate / np.pi
        return max(1, int(self.rate / (2 * stop)))

    @cached_property
    def noise_factor(self) -> float:
        """How many times as large independent noise is that tells as little of a motion as white noise after `reduce`.

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
        corner = np.arctan(self._warped_corner) / np.pi * self.rate
        return butter(self.order, corner, fs=self.rate, output="sos")
