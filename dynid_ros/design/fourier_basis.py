"""Fourier motions from rest to rest, linear in a vector of numbers that are about 1 where they take all room."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from dynid_ros.errors import TrajectoryError
from dynid_ros.information.torque_information import MotionWithJerk
from dynid_ros.trajectories.fourier import FourierSeries
from dynid_ros.trajectories.limits import MotionLimits


class FourierBasis:
    """All series with `harmonics` of `base_frequency` that have no velocity and no acceleration at time 0.

    Of each joint these have 2 H - 1 degrees of freedom: the offset, H - 1 of the sines and H - 1 of the cosines.

    Args:
        limits: give each number its scale.
        base_frequency: Hz.
        harmonics: H, at least 2.
        samples: N, at which motions are looked at, spread evenly over a period.
        held: (n,) positions of the joints that stand still, whatever their numbers, NaN for the others; None: all move.

    Attributes:
        size: of the vectors, n (2 H - 1).

    """

    def __init__(
        self,
        limits: MotionLimits,
        base_frequency: float,
        harmonics: int,
        samples: int,
        held: NDArray | None = None,
    ) -> None:
        if harmonics < 2:
            raise TrajectoryError(f"harmonics is {harmonics}; it must be at least 2 to start and end at rest")
        if not (np.isfinite(base_frequency) and base_frequency > 0):
            raise TrajectoryError(f"base_frequency is {base_frequency:g} Hz; it must be positive and finite")
        self._names = limits.joint_names
        self._base_frequency = base_frequency
        order = np.arange(1, harmonics + 1)
        # As the velocity is the sum of the sines' coefficients, and the acceleration that of k times the cosines'.
        self._sine = null_space(np.ones((1, harmonics)))
        self._cosine = null_space(order[None].astype(float))
        rate = 2 * np.pi * base_frequency * order
        angle = np.outer(np.arange(samples) / (samples * base_frequency), rate)
        sin, cos = np.sin(angle), np.cos(angle)
        self._functions = [
            np.hstack([a @ self._sine, b @ self._cosine])
            for a, b in (
                (sin / rate, -cos / rate),
                (cos, sin),
                (-sin * rate, cos * rate),
                (-cos * rate**2, -sin * rate**2),
            )
        ]
        half = (limits.upper - limits.lower) / 2
        self._middle = (limits.upper + limits.lower) / 2
        largest = np.array([np.abs(function).max(axis=0) for function in self._functions[:3]])
        room = np.array([half, limits.velocity, limits.acceleration])
        # (n, 2 H - 1): the offset first.
        self._scale = np.column_stack([half, np.min(room[:, :, None] / largest[:, None], axis=0)])
        if held is not None:
            moves = np.isnan(held)
            self._middle = np.where(moves, self._middle, held)
            self._scale = np.where(moves[:, None], self._scale, 0.0)
        self.size = self._scale.size

    def motion(self, vector: NDArray) -> MotionWithJerk:
        """The motion at the samples."""
        coefficients = self._coefficients(vector)
        position, *derivatives = (function @ coefficients[:, 1:].T for function in self._functions)
        return MotionWithJerk(position + coefficients[:, 0], *derivatives)

    def gradient(self, by_motion: MotionWithJerk) -> NDArray:
        """Gradient (size,) of a function with these gradients by the motion."""
        by_series = sum(by.T @ function for by, function in zip(by_motion, self._functions, strict=True))
        return (np.column_stack([by_motion.position.sum(axis=0), by_series]) * self._scale).ravel()

    def series(self, vector: NDArray) -> FourierSeries:
        """The series itself."""
        offset, sine, cosine = np.split(self._coefficients(vector), [1, 1 + self._sine.shape[1]], axis=1)
        sine, cosine = sine @ self._sine.T, cosine @ self._cosine.T
        return FourierSeries(self._names, self._base_frequency, offset[:, 0], sine, cosine)

    def vector(self, series: FourierSeries) -> NDArray:
        """The numbers (size,) of a series that starts at rest and has this base frequency and these harmonics."""
        offset = series.offset - self._middle
        coefficients = np.column_stack([offset, series.sine @ self._sine, series.cosine @ self._cosine])
        return np.divide(coefficients, self._scale, out=np.zeros_like(self._scale), where=self._scale > 0).ravel()

    def _coefficients(self, vector: NDArray) -> NDArray:
        coefficients = vector.reshape(self._scale.shape) * self._scale
        coefficients[:, 0] += self._middle
        return coefficients
