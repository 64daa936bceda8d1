"""What a force/torque sensor at the wrist reports: a wrench with bias, noise and a range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError
from dynid_ros.simulation.per_joint import LARGEST

AXES = 6


@dataclass(frozen=True)
class WrenchSensor:
    """Errors of a sensor of force x, y, z (N) and torque x, y, z (N m).

    The reading is wrench + bias + noise, cut at the range. Noise is normal, white and independent from axis to axis.

    Attributes:
        bias: (6,).
        noise: (6,) standard deviation.
        range: (6,) largest reading on either side.

    """

    bias: np.ndarray
    noise: np.ndarray
    range: np.ndarray

    @classmethod
    def ideal(cls) -> WrenchSensor:
        """A sensor without any error."""
        return cls(np.zeros(AXES), np.zeros(AXES), np.full(AXES, np.inf))

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        bias: ArrayLike = (5.0, 0.3),
        noise: ArrayLike = (0.1, 0.003),
        range: ArrayLike = np.inf,  # noqa: A002 - the sensor maker's word
    ) -> WrenchSensor:
        """A sensor whose bias has the given size and random signs.

        Args:
            rng: draws the signs.
            bias: one for force (N) and one for torque (N m), or one per axis.
            noise: standard deviation, likewise.
            range: likewise; infinite: none.

        Raises:
            DynidError: the wrong number of values, or one that is negative or not a number.

        """
        signs = rng.choice([-1.0, 1.0], size=AXES)
        return cls(signs * _per_axis("bias", bias), _per_axis("noise", noise), _per_axis("range", range, finite=False))

    def measure(self, wrench: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readings (6,) or (N, 6) of true wrenches."""
        reading = wrench + self.bias + self.noise * rng.standard_normal(wrench.shape)
        return np.clip(reading, -self.range, self.range)


def _per_axis(name: str, values: ArrayLike, finite: bool = True) -> np.ndarray:
    array = np.array(values, dtype=float)
    good = np.all((array >= 0.0) & ((array <= LARGEST) | (not finite)))
    if array.shape not in {(), (1,), (2,), (AXES,)} or not good:
        raise DynidError(
            f"{name} of the wrench sensor is {array.tolist()}; expected numbers of 0 to {LARGEST:g}: one, one for "
            f"force and one for torque, or one per axis"
        )
    return np.repeat(array, 3) if array.shape == (2,) else np.zeros(AXES) + array
