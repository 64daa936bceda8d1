"""Simulated sensors: encoders, joint torque sensors and a wrist sensor, with offset, gain error, noise, range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError
from dynid_ros.model.arrays import MAX_MAGNITUDE, per_joint

N_WRENCH_AXES = 6


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
        """Return a sensor without errors."""
        return cls(np.zeros(N_WRENCH_AXES), np.zeros(N_WRENCH_AXES), np.full(N_WRENCH_AXES, np.inf))

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        bias: ArrayLike = (5.0, 0.3),
        noise: ArrayLike = (0.1, 0.003),
        range: ArrayLike = np.inf,  # noqa: A002 - the sensor maker's word
    ) -> WrenchSensor:
        """Draw a sensor whose bias has the given size and random signs.

        Args:
            rng: draws the signs.
            bias: one for force (N) and one for torque (N m), or one per axis.
            noise: standard deviation, likewise.
            range: likewise; infinite for no limit.

        Raises:
            DynidError: the number of values is wrong, or one is negative or not a number.
        """
        signs = rng.choice([-1.0, 1.0], size=N_WRENCH_AXES)
        return cls(signs * _per_axis("bias", bias), _per_axis("noise", noise), _per_axis("range", range, finite=False))

    def measure(self, wrench: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return readings (6,) or (N, 6) of true wrenches."""
        reading = wrench + self.bias + self.noise * rng.standard_normal(wrench.shape)
        return np.clip(reading, -self.range, self.range)


def _per_axis(name: str, values: ArrayLike, finite: bool = True) -> np.ndarray:
    array = np.array(values, dtype=float)
    good = np.all((array >= 0.0) & ((array <= MAX_MAGNITUDE) | (not finite)))
    if array.shape not in {(), (1,), (2,), (N_WRENCH_AXES,)} or not good:
        raise DynidError(
            f"{name} of the wrench sensor is {array.tolist()}; expected numbers of 0 to {MAX_MAGNITUDE:g}: one, one "
            f"for force and one for torque, or one per axis"
        )
    return np.repeat(array, 3) if array.shape == (2,) else np.zeros(N_WRENCH_AXES) + array


@dataclass(frozen=True)
class Sensors:
    """Errors of the sensors of n joints; reading = (1 + gain error) torque + offset + noise.

    Noise is normal, white and independent from joint to joint.

    Attributes:
        torque_offset: (n,) N m.
        torque_gain_error: (n,) relative.
        torque_noise: (n,) standard deviation, N m.
        position_noise: (n,) standard deviation, rad.
        velocity_noise: (n,) standard deviation, rad/s.
    """

    torque_offset: np.ndarray
    torque_gain_error: np.ndarray
    torque_noise: np.ndarray
    position_noise: np.ndarray
    velocity_noise: np.ndarray

    @classmethod
    def ideal(cls, n_joints: int) -> Sensors:
        """Sensors without any error."""
        return cls(*np.zeros((5, n_joints)))

    @classmethod
    def draw(
        cls,
        torque_range: ArrayLike,
        rng: np.random.Generator,
        *,
        torque_offset: ArrayLike = 0.02,
        torque_gain_error: ArrayLike = 0.0,
        torque_noise: ArrayLike = 0.005,
        position_noise: ArrayLike = 0.0,
        velocity_noise: ArrayLike = 0.0,
    ) -> Sensors:
        """Sensors whose offsets and gain errors have the given sizes and random signs.

        Args:
            torque_range: (n,) full scale of each torque sensor, N m.
            rng: draws the signs.
            torque_offset: fraction of the range, one for all joints or (n,).
            torque_gain_error: relative, likewise.
            torque_noise: standard deviation as a fraction of the range, likewise.
            position_noise: standard deviation, rad, likewise.
            velocity_noise: standard deviation, rad/s, likewise.

        Raises:
            DynidError: a range that is not finite, a size that is negative, or the wrong number of them.
        """
        n = np.size(torque_range)

        def sized(value: ArrayLike, what: str) -> np.ndarray:
            return per_joint(value, range(1, n + 1), what, error=DynidError, least=0.0)

        full_scale = sized(torque_range, "torque_range")
        offset_sign, gain_sign = rng.choice([-1.0, 1.0], size=(2, n))
        return cls(
            offset_sign * sized(torque_offset, "torque_offset") * full_scale,
            gain_sign * sized(torque_gain_error, "torque_gain_error"),
            sized(torque_noise, "torque_noise") * full_scale,
            sized(position_noise, "position_noise"),
            sized(velocity_noise, "velocity_noise"),
        )

    def measure(
        self, position: np.ndarray, velocity: np.ndarray, torque: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return readings of position, velocity and torque for the true ones, each (n,) or (N, n)."""
        noise = rng.standard_normal((3, *position.shape))
        return (
            position + self.position_noise * noise[0],
            velocity + self.velocity_noise * noise[1],
            (1.0 + self.torque_gain_error) * torque + self.torque_offset + self.torque_noise * noise[2],
        )

    def measure_links(self, position: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return readings of the links' positions, (n,) or (N, n), by encoders as good as the motors'."""
        return position + self.position_noise * rng.standard_normal(position.shape)
