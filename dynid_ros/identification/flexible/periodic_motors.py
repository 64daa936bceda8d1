"""Motors that repeat a motion: their harmonics, without the noise of all other frequencies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.signals import Motion
from dynid_ros.signals.periodic import FourierSeries, base_frequency

FIRST_HARMONICS = 8
"""Of the series that finds the base frequency."""
SIGNIFICANT = 5.0
"""Amplitude of a harmonic, in standard errors, above which it is one."""
DIGITS, AGREES = 4, 4.0
"""Of a commanded frequency or period; and how many standard errors it may be off."""
UNEXPLAINED = 1.3
"""What a series leaves, in parts of the noise, up to which motors count as periodic."""


def periodic_motors(time: NDArray, position: NDArray, noise: NDArray, band: float) -> FourierSeries | None:
    """Harmonics of the motors' positions (N, n), insignificant ones zero; None if the motion does not repeat.

    Args:
        time: (N,) s, uniform.
        position: (N, n) as measured.
        noise: (n,) standard deviation of their noise.
        band: highest frequency of a harmonic, Hz.

    """
    moving = np.ptp(position, axis=0) > 20.0 * noise
    if not moving.any():
        return None
    try:
        found = base_frequency(time, position[:, moving], FIRST_HARMONICS)
        rough = FourierSeries.fit(time, position, found, max(1, int(band / found)))
        found = _as_commanded(rough, noise, time)
        series = FourierSeries.fit(time, position, found, max(1, int(band / found)))
    except RecordingError:
        return None
    if (series.residual > UNEXPLAINED * noise + 1e-12).any():
        return None
    least = SIGNIFICANT * noise * np.sqrt(2.0 / len(time))
    kept = np.hypot(series.cosines, series.sines) > least
    return replace(series, cosines=np.where(kept, series.cosines, 0.0), sines=np.where(kept, series.sines, 0.0))


def _as_commanded(series: FourierSeries, noise: NDArray, time: NDArray) -> float:
    """The base frequency, or the round number next to it: of its frequency or period, as motions are commanded.

    Only if the data agree. Over a record the phase of the highest harmonic magnifies errors of the base frequency.
    """
    order = np.arange(1, series.n_harmonics + 1)[:, None]
    squares = (order**2 * (series.cosines**2 + series.sines**2)).sum(axis=0)
    told = (2 * np.pi) ** 2 * len(time) * np.ptp(time) ** 2 / 24 * (squares / np.maximum(noise, 1e-12) ** 2).sum()
    frequency = series.base_frequency
    for place in range(2, DIGITS + 1):
        for near in (float(f"{frequency:.{place - 1}e}"), 1 / float(f"{1 / frequency:.{place - 1}e}")):
            if abs(near - frequency) < AGREES / np.sqrt(told):
                return near
    return frequency


def motion_of(series: FourierSeries, time: NDArray) -> Motion:
    """Position, velocity and acceleration, (N, n) each."""
    return Motion(*(series.evaluate(time, order) for order in range(3)))
