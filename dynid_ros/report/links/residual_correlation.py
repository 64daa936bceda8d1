"""Autocorrelation of prediction errors: whether they are noise, or something that the model lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.report.drawing import plot_area, svg
from dynid_ros.report.links.comparison import TorqueComparison
from dynid_ros.report.palette import LIGHT
from dynid_ros.signals import LowPass

LONGEST_LAG = 2.0
"""Seconds."""
FILTER_SAMPLES = 1 << 14
WIDTH, HEIGHT = 210, 130


@dataclass(frozen=True, eq=False)
class ResidualCorrelation:
    """Of the longest recording.

    Attributes:
        lag: (L,) s.
        values: (L, n) autocorrelation of the error of each joint.
        noise: (L,) autocorrelation that the low-pass gives to white noise.
        band: half width of the 95 % band about `noise` in which estimates from white noise lie (Bartlett 1946).

    """

    lag: NDArray
    values: NDArray
    noise: NDArray
    band: float

    @classmethod
    def of(cls, cutoff: float, comparisons: Sequence[TorqueComparison]) -> ResidualCorrelation:
        """Errors after a low-pass at `cutoff` Hz."""
        chosen = max(comparisons, key=lambda one: len(one.time))
        rows, step = chosen.longest, chosen.step
        length = rows.stop - rows.start
        count = int(max(1, min(LONGEST_LAG / step, length // 2)))
        error = chosen.error - chosen.error.mean(axis=0)
        parts = [error[own] for own in chosen.stretches]
        values = np.array([_products(parts, lag) for lag in range(count + 1)])
        power = np.where(values[0] > 0, values[0], np.nan)
        every = max(1, round(step * chosen.rate))
        noise = _noise(LowPass(cutoff, chosen.rate))[: every * (count + 1) : every]
        band = 1.96 * np.sqrt((1 + 2 * np.sum(noise[1:] ** 2)) / len(error))
        return cls(step * np.arange(count + 1), values / power, noise, float(band))

    @property
    def memory(self) -> NDArray:
        """(n,) s until the autocorrelation first is no larger than that of noise may be; infinite if it never is."""
        above = self.values > self.noise[:, None] + self.band
        above[0] = True
        within = ~above & np.isfinite(self.values)
        return np.where(within.any(axis=0), self.lag[within.argmax(axis=0)], np.inf)

    @property
    def like_noise(self) -> NDArray:
        """(n,) whether errors look like noise of the sensors: at most a tenth of the lags lie outside of the band."""
        with np.errstate(invalid="ignore"):
            outside = np.abs(self.values - self.noise[:, None]) > self.band
        return np.mean(outside[1:], axis=0) <= 0.1

    def picture(self, joint: int, name: str) -> str:
        """SVG of one joint."""

        def draw(figure: Figure) -> None:
            axes = plot_area(figure, left=36, bottom=38, top=6)
            axes.fill_between(
                self.lag, self.noise - self.band, self.noise + self.band, color=LIGHT["band"], linewidth=0
            )
            axes.axhline(0, color=LIGHT["line"], linewidth=1)
            axes.plot(self.lag, self.values[:, joint], color=LIGHT["identified"], linewidth=1.6)
            axes.set_ylim(-1.05, 1.05)
            axes.margins(x=0)
            axes.set_yticks([-1, 0, 1])
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.set_xlabel("lag (s)")

        return svg(f"Autocorrelation of the error of {name}", WIDTH, HEIGHT, draw)


def _products(parts: Sequence[NDArray], lag: int) -> NDArray:
    """(n,) mean product of errors that far apart, in stretches (M_i, n)."""
    pairs = [(part[: len(part) - lag], part[lag:]) for part in parts if len(part) > lag]
    return sum(np.sum(a * b, axis=0) for a, b in pairs) / sum(len(a) for a, _ in pairs)


def _noise(low_pass: LowPass) -> NDArray:
    """Autocorrelation of filtered white noise, by samples of lag."""
    frequency = np.fft.rfftfreq(FILTER_SAMPLES, 1 / low_pass.rate)
    values = np.fft.irfft(low_pass.gain(frequency) ** 2)
    return values / values[0]
