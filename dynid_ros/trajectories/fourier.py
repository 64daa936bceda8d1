"""Periodic motion as a finite Fourier series (Swevers et al. 1997), at rest at the start and end of a period."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.files import write_atomically
from dynid_ros.trajectories.trajectory import Trajectory, open_document

FOURIER_FORMAT = "dynid-fourier/1"
FILE_ROUNDING = 1e-8
"""Largest change of a coefficient, relative to the largest coefficient, that the rounding in a file can cause."""
POINTS_PER_CYCLE = 25
"""Samples per cycle of the highest harmonic. Quintics between the samples match the series to 1e-8 of its amplitude."""
PEAK_FACTOR = 1.0 / np.cos(np.pi / POINTS_PER_CYCLE)
"""Upper bound of the ratio of the peak of a trigonometric polynomial to its largest sample.

Around its peak the polynomial falls no faster than a cosine of its highest frequency (M. Riesz 1914).
"""
MAX_RELATIVE_REST = 1e-9
"""Largest velocity or acceleration at time 0 that counts as rest, relative to the peak."""


@dataclass(frozen=True)
class FourierSeries:
    """q(t) = offset + Σ sine_k / (k w) sin(k w t) − cosine_k / (k w) cos(k w t), k = 1 … H, w = 2 π base_frequency.

    The velocity is Σ sine_k cos(k w t) + cosine_k sin(k w t). The motion has no frequencies above H times the base
    frequency, its derivatives are known exactly, and measurements of several periods can be averaged.

    Attributes:
        joint_names: n names.
        base_frequency: frequency of the first harmonic, Hz.
        offset: (n,) rad or m.
        sine: (n, H) coefficients, rad/s or m/s.
        cosine: (n, H) coefficients, rad/s or m/s.
    """

    joint_names: tuple[str, ...]
    base_frequency: float
    offset: NDArray
    sine: NDArray
    cosine: NDArray

    @staticmethod
    def at_rest(
        joint_names: tuple[str, ...], base_frequency: float, sine: ArrayLike, cosine: ArrayLike
    ) -> "FourierSeries":
        """Return the series nearest to the coefficients (n, H) that is at rest at time 0; its offset is zero.

        Velocity and acceleration at time 0 are zero if Σ sine_k = 0 and Σ k cosine_k = 0 for every joint.

        Raises:
            TrajectoryError: fewer than two harmonics, which leave no motion, or a frequency that is not positive.
        """
        sine = np.array(sine, dtype=float)
        cosine = np.array(cosine, dtype=float)
        order = np.arange(1, sine.shape[1] + 1)
        if len(order) < 2:
            raise TrajectoryError(f"harmonics is {len(order)}; it must be at least 2 to start and end at rest")
        if not (np.isfinite(base_frequency) and base_frequency > 0):
            raise TrajectoryError(f"base_frequency is {base_frequency:g} Hz; it must be positive")
        sine -= sine.mean(axis=1, keepdims=True)
        cosine -= np.outer(cosine @ order, order) / (order @ order)
        return FourierSeries(joint_names, base_frequency, np.zeros(len(sine)), sine, cosine)

    @staticmethod
    def read(path: str | Path) -> "FourierSeries":
        """Read the series of a planned Fourier motion, YAML of `format: dynid-fourier/1`.

        If the rounding of coefficients in the file has shifted the series from rest at time 0, this is corrected.

        Raises:
            TrajectoryError: the file cannot be read, is not safe YAML, or does not contain such a series; the message
                names joint and entry.
        """
        with open_document(path, "Fourier motion", FOURIER_FORMAT) as content:
            joints = content["joints"]
            names = tuple(joints)
            for name, joint in joints.items():
                if np.shape(joint["sine"]) != np.shape(joint["cosine"]) or np.ndim(joint["sine"]) != 1:
                    raise TrajectoryError(f"joint '{name}' needs a sine and a cosine for each harmonic")
            offset, sine, cosine = (
                np.array([joint[part] for joint in joints.values()], dtype=float)
                for part in ("offset", "sine", "cosine")
            )
            if not all(np.isfinite(values).all() for values in (offset, sine, cosine)):
                raise TrajectoryError("offset, sine or cosine of a joint is not a finite number")
            frequency = float(content["base_frequency"])
            series = FourierSeries(names, frequency, offset, sine, cosine)
            resting = FourierSeries.at_rest(names, frequency, sine, cosine).shifted(offset)
        change = max(np.abs(resting.sine - sine).max(), np.abs(resting.cosine - cosine).max())
        return resting if change <= FILE_ROUNDING * max(1.0, np.abs(sine).max(), np.abs(cosine).max()) else series

    def save(self, path: str | Path) -> Path:
        """Write offset and coefficients of each joint as YAML, atomically; return the path."""
        joints = {
            name: {"offset": float(offset), "sine": sine.tolist(), "cosine": cosine.tolist()}
            for name, offset, sine, cosine in zip(self.joint_names, self.offset, self.sine, self.cosine, strict=True)
        }
        content = {"format": FOURIER_FORMAT, "base_frequency": float(self.base_frequency), "joints": joints}
        return write_atomically(path, yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120))

    @property
    def n_harmonics(self) -> int:
        """Number of harmonics H."""
        return self.sine.shape[1]

    @property
    def period(self) -> float:
        """Duration of a period, s."""
        return 1.0 / self.base_frequency

    def times(self, periods: int = 1) -> NDArray:
        """Return the times (M + 1,) of samples over some periods, `POINTS_PER_CYCLE` H per period, s."""
        count = POINTS_PER_CYCLE * self.n_harmonics * periods
        return np.linspace(0.0, periods * self.period, count + 1)

    def at(self, time: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
        """Return position, velocity and acceleration, each (M, n), at times (M,)."""
        rate = 2 * np.pi * self.base_frequency * np.arange(1, self.n_harmonics + 1)
        angle = np.multiply.outer(np.asarray(time, dtype=float), rate)
        sin = np.sin(angle)
        cos = np.cos(angle)
        position = self.offset + (sin / rate) @ self.sine.T - (cos / rate) @ self.cosine.T
        velocity = cos @ self.sine.T + sin @ self.cosine.T
        acceleration = (cos * rate) @ self.cosine.T - (sin * rate) @ self.sine.T
        return position, velocity, acceleration

    def jerk(self, time: ArrayLike) -> NDArray:
        """Return the jerk (M, n), per s³, at times (M,)."""
        rate = 2 * np.pi * self.base_frequency * np.arange(1, self.n_harmonics + 1)
        angle = np.multiply.outer(np.asarray(time, dtype=float), rate)
        return -(np.cos(angle) * rate**2) @ self.sine.T - (np.sin(angle) * rate**2) @ self.cosine.T

    def peaks(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return bounds (n,) of lowest position, highest position, speed and acceleration; see `PEAK_FACTOR`."""
        position, velocity, acceleration = self.at(self.times()[:-1])
        middle = (position.max(axis=0) + position.min(axis=0)) / 2
        half_range = PEAK_FACTOR * np.ptp(position, axis=0) / 2
        peak_speed = PEAK_FACTOR * np.abs(velocity).max(axis=0)
        peak_acceleration = PEAK_FACTOR * np.abs(acceleration).max(axis=0)
        return middle - half_range, middle + half_range, peak_speed, peak_acceleration

    def peak_jerk(self) -> NDArray:
        """Return an upper bound (n,) of the absolute jerk, per s³."""
        return np.abs(self.jerk(self.times()[:-1])).max(axis=0) / np.cos(np.pi / POINTS_PER_CYCLE)

    def scaled(self, factor: ArrayLike) -> "FourierSeries":
        """Return the series with amplitudes multiplied by `factor`, one value or (n,)."""
        factor = np.broadcast_to(np.asarray(factor, dtype=float), self.offset.shape)[:, np.newaxis]
        return replace(self, sine=factor * self.sine, cosine=factor * self.cosine)

    def shifted(self, by: ArrayLike) -> "FourierSeries":
        """Return the series with positions shifted by (n,), rad or m."""
        return replace(self, offset=self.offset + by)

    def trajectory(self, periods: int = 1) -> Trajectory:
        """Return the motion over some periods, from rest to rest.

        Raises:
            TrajectoryError: the series does not start at rest.
        """
        time = self.times(periods)
        position, velocity, acceleration = self.at(time)
        _, _, peak_speed, peak_acceleration = self.peaks()
        for quantity, values, peaks in (
            ("velocity", velocity, peak_speed),
            ("acceleration", acceleration, peak_acceleration),
        ):
            for name, value, peak in zip(self.joint_names, values[0], peaks, strict=True):
                if abs(value) > MAX_RELATIVE_REST * peak:
                    raise TrajectoryError(
                        f"the series starts with {quantity} {value:.4g} of joint '{name}'; make it with at_rest"
                    )
            values[[0, -1]] = 0.0  # removes rounding errors
        return Trajectory(self.joint_names, time, position, velocity, acceleration)
