"""What the joints report: encoders with noise, torque sensors with offset, gain error and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.simulation.per_joint import per_joint


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
        full_scale = per_joint("torque_range", torque_range, n, minimum=0.0)
        offset_sign, gain_sign = rng.choice([-1.0, 1.0], size=(2, n))
        return cls(
            offset_sign * per_joint("torque_offset", torque_offset, n, minimum=0.0) * full_scale,
            gain_sign * per_joint("torque_gain_error", torque_gain_error, n, minimum=0.0),
            per_joint("torque_noise", torque_noise, n, minimum=0.0) * full_scale,
            per_joint("position_noise", position_noise, n, minimum=0.0),
            per_joint("velocity_noise", velocity_noise, n, minimum=0.0),
        )

    def measure(
        self, position: np.ndarray, velocity: np.ndarray, torque: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Readings of position, velocity and torque for the true ones, each (n,) or (N, n)."""
        noise = rng.standard_normal((3, *position.shape))
        return (
            position + self.position_noise * noise[0],
            velocity + self.velocity_noise * noise[1],
            (1.0 + self.torque_gain_error) * torque + self.torque_offset + self.torque_noise * noise[2],
        )

    def measure_links(self, position: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Readings of the links' positions, (n,) or (N, n), by encoders as good as the motors'."""
        return position + self.position_noise * rng.standard_normal(position.shape)
