"""Errors of an encoder's lines: torsion that repeats with the joint's angle, many times per turn."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.optimize import minimize_scalar

MOST = 3
FEWEST_PERIODS = 10
"""Within the way of the joint."""
FASTEST = 0.8
"""Highest frequency at the joint's usual top speed, in parts of half the rate: above, samples mistake it."""
GAIN = 0.1
"""Part of the mean square that each half of the record must lose when predicted from the other."""
OVERSAMPLED = 4
"""Frequencies of the periodogram per its resolution."""


@dataclass(frozen=True)
class Ripple:
    """Amplitude times cos(frequency * x + phase) of the link encoder's angle x.

    Attributes:
        frequency: rad/rad, periods per turn.
        amplitude: rad.
        phase: rad, in the recording that it was fitted to.

    """

    frequency: float
    amplitude: float
    phase: float

    def values(self, angle: NDArray) -> NDArray:
        """(M,) rad at angles (M,), rad."""
        return self.amplitude * np.cos(self.frequency * angle + self.phase)

    def shifted(self, angle: NDArray, torsion: NDArray) -> "Ripple":
        """The same with the phase that a recording shows: it depends on the zero of the encoder."""
        return Ripple(self.frequency, self.amplitude, float(np.angle(_vector(self.frequency, angle, torsion))))


def find_ripples(angle: NDArray, rest: NDArray, speed: NDArray, rate: float) -> tuple[Ripple, ...]:
    """Ripples that each half of the record predicts in the other.

    Args:
        angle: (N,) rad.
        rest: (N,) what other terms leave of the torsion, rad.
        speed: (N,) rad/s.
        rate: of the samples, Hz.

    """
    way, top = float(np.ptp(angle)), float(np.quantile(np.abs(speed), 0.95))
    if not way > 0 or not top > 0:
        return ()
    limits = FEWEST_PERIODS * 2 * np.pi / way, FASTEST * np.pi * rate / top
    found: list[Ripple] = []
    for _ in range(MOST if limits[0] < limits[1] else 0):
        rest = rest - rest.mean()
        ripple = _strongest(limits, angle, rest)
        if not _predicts(ripple, angle, rest):
            break
        found.append(ripple)
        rest = rest - ripple.values(angle)
    return tuple(found)


def _strongest(limits: tuple[float, float], angle: NDArray, rest: NDArray) -> Ripple:
    """Ripple of the largest amplitude between two frequencies: by a periodogram over the angle, then refined."""
    width = 0.5 / limits[1]
    sums = np.bincount(((angle - angle.min()) / width).astype(int), rest)
    length = next_fast_len(OVERSAMPLED * len(sums), real=True)
    frequencies = 2 * np.pi * np.fft.rfftfreq(length, width)
    power = np.where((frequencies > limits[0]) & (frequencies < limits[1]), np.abs(np.fft.rfft(sums, length)), 0.0)
    peak, step = frequencies[np.argmax(power)], frequencies[1]
    best = minimize_scalar(
        lambda w: -abs(_vector(w, angle, rest)), bounds=(peak - 2 * step, peak + 2 * step), method="bounded"
    )
    vector = _vector(float(best.x), angle, rest)
    return Ripple(float(best.x), float(abs(vector)), float(np.angle(vector)))


def _predicts(ripple: Ripple, angle: NDArray, rest: NDArray) -> bool:
    first = np.arange(len(angle)) < len(angle) // 2
    for seen, unseen in ((first, ~first), (~first, first)):
        vector = _vector(ripple.frequency, angle[seen], rest[seen])
        guess = Ripple(ripple.frequency, float(abs(vector)), float(np.angle(vector))).values(angle[unseen])
        if not np.var(rest[unseen] - guess) < (1 - GAIN) * np.var(rest[unseen]):
            return False
    return True


def _vector(frequency: float, angle: NDArray, rest: NDArray) -> complex:
    """Amplitude and phase of cos(frequency * angle) in `rest` by least squares."""
    basis = np.column_stack([np.cos(frequency * angle), np.sin(frequency * angle), np.ones(len(angle))])
    cos, sin = np.linalg.lstsq(basis, rest, rcond=None)[0][:2]
    return complex(cos, -sin)
