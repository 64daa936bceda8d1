"""Deflection and torque of a spring, checked, and averaged as far as they are smooth."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.model.spring import SPRINGS

FEWEST = 50
MOST = 2000
"""Samples that are looked at where neighbours are not averaged: more tell nothing new."""
SMOOTH = 1e-3
"""Part of the deflection's variance that averages of neighbours may lose."""
DIFFERENCES = 6
"""Order of the differences that leave white noise of a smooth signal; its variance grows by binomial(12, 6)."""
GROWTH = 924.0


def white_noise(values: NDArray) -> float:
    """Standard deviation of white noise on a smooth signal (N,), from its differences of the sixth order."""
    return float(np.sqrt(np.mean(np.diff(values, DIFFERENCES) ** 2) / GROWTH))


@dataclass(frozen=True, eq=False)
class SpringData:
    """N samples.

    Attributes:
        deflection: (N,) rad.
        torque: (N,) N m.
        runs: (N,) run of each sample, counted from 0.
        noise: standard deviation of the deflection, rad.

    """

    deflection: NDArray
    torque: NDArray
    runs: NDArray
    noise: float

    def kept(self, samples: NDArray | slice) -> "SpringData":
        """Only these samples."""
        return replace(self, deflection=self.deflection[samples], torque=self.torque[samples], runs=self.runs[samples])

    def averaged(self, width: int) -> tuple["SpringData", float]:
        """Means of so many neighbours, and the variance of the deflection about them."""
        parts, inside = [], []
        for run in range(self.runs.max() + 1):
            own = np.flatnonzero(self.runs == run)
            rows = own[: len(own) // width * width].reshape(-1, width)
            d = self.deflection[rows]
            parts.append((d.mean(axis=1), self.torque[rows].mean(axis=1), np.full(len(rows), run)))
            inside.append(np.var(d, axis=1, ddof=1))
        d, tau, runs = (np.concatenate(values) for values in zip(*parts, strict=True))
        return SpringData(d, tau, runs, self.noise / np.sqrt(width)), float(np.concatenate(inside).mean())


def spring_data(
    deflection: ArrayLike, torque: ArrayLike, laws: Sequence[str], runs: ArrayLike | None, noise: float | None
) -> SpringData:
    """Samples to fit, as `fit_spring` takes them.

    Raises:
        IdentificationError: as `fit_spring`.

    """
    d, tau = np.asarray(deflection, dtype=float), np.asarray(torque, dtype=float)
    numbers = np.zeros(d.shape, dtype=int) if runs is None else np.asarray(runs)
    unknown = [law for law in laws if law not in SPRINGS]
    if unknown or not laws:
        raise IdentificationError(
            f"spring: no law {', '.join(unknown) or 'given'}; expected some of {', '.join(SPRINGS)}"
        )
    if d.ndim != 1 or tau.shape != d.shape or numbers.shape != d.shape or len(d) < FEWEST:
        raise IdentificationError(
            f"spring: deflection {d.shape}, torque {tau.shape} and runs {numbers.shape} do not fit; "
            f"expected (N,) each, of at least {FEWEST} samples"
        )
    for name, values in (("deflection", d), ("torque", tau)):
        if not np.isfinite(values).all():
            sample = int(np.argmax(~np.isfinite(values)))
            raise IdentificationError(f"spring: {name} is {values[sample]} at sample {sample}; leave such samples out")
    names, numbers = np.unique(numbers, return_inverse=True)
    parts = [numbers == run for run in range(len(names))]
    if min(np.sum(part) for part in parts) < 2 * DIFFERENCES:
        raise IdentificationError(f"spring: a run has fewer than {2 * DIFFERENCES} samples; leave it out")
    white = noise is None
    if noise is None:
        noise = float(np.sqrt(np.mean([white_noise(d[part]) ** 2 for part in parts])))
    scatter = float(np.sqrt(np.mean([np.var(d[part]) for part in parts])))
    if not scatter**2 > 2 * noise**2:
        raise IdentificationError(
            f"spring: the deflection scatters by {scatter:.3g} rad, its noise alone by {noise:.3g} rad, so it does not "
            "show the spring: load the joint more, or measure its link better"
        )
    if not np.std(tau) > 0:
        raise IdentificationError("spring: the torque is constant, so it does not show the spring; move the joint")
    data = SpringData(d, tau, numbers, noise)
    return _smoothed(data, scatter) if white else data.kept(slice(None, None, max(1, len(d) // MOST)))


def _smoothed(data: SpringData, scatter: float) -> SpringData:
    """Means of as many neighbours as the deflection is alike in: white noise shrinks, the law stays."""
    found, width = data, 2
    while len(data.torque) >= 2 * width * FEWEST:
        averaged, inside = data.averaged(width)
        if inside - data.noise**2 > SMOOTH * scatter**2 or min(np.bincount(averaged.runs)) < 2 * DIFFERENCES:
            break
        found, width = averaged, 2 * width
    return found
