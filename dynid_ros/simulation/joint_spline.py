"""Piecewise polynomials through the points of a joint trajectory, quick to evaluate at one time."""

from bisect import bisect_right
from math import comb, factorial

import numpy as np

ROUNDING = 1e-9
"""s; of times that are sums of periods and multiples of timesteps."""


class JointSpline:
    """Linear, cubic or quintic segments, as `joint_trajectory_controller` joins its points; at rest after the last.

    Args:
        time: (K,) strictly increasing, K >= 1, s.
        derivatives: (K, m, n) positions (m = 1), and velocities (m = 2), and accelerations (m = 3).

    """

    def __init__(self, time: np.ndarray, derivatives: np.ndarray) -> None:
        self._time = time.tolist()
        self._durations = np.diff(time).tolist()
        self._coefficients = _coefficients(np.diff(time), derivatives)
        self._rest = np.zeros((3, derivatives.shape[2]))
        self._rest[0] = derivatives[-1, 0]

    @property
    def end(self) -> float:
        """Time of the last point, s."""
        return self._time[-1]

    def at(self, time: float) -> np.ndarray:
        """(3, n) position, velocity and acceleration at `time`, which is not before the first point."""
        if time >= self.end:
            return self._rest
        segment = bisect_right(self._time, time) - 1
        duration = self._durations[segment]
        s = (time - self._time[segment]) / duration
        return _basis(s, duration, self._coefficients.shape[1]) @ self._coefficients[segment]


class SetPoint:
    """One state, reached with constant acceleration, and kept at rest after its time.

    Args:
        time: s.
        state: (3, n) position, velocity and acceleration.

    Attributes:
        end: its time.

    """

    def __init__(self, time: float, state: np.ndarray) -> None:
        self.end = time
        self._state = state
        self._rest = np.zeros_like(state)
        self._rest[0] = state[0]

    def at(self, time: float) -> np.ndarray:
        """(3, n) position, velocity and acceleration at `time`."""
        s = time - self.end
        if s > ROUNDING:
            return self._rest
        position, velocity, acceleration = self._state
        return np.array([position + s * (velocity + 0.5 * s * acceleration), velocity + s * acceleration, acceleration])


def _basis(s: float, duration: float, degrees: int) -> np.ndarray:
    """Rows that give position, velocity and acceleration from the coefficients of the powers of s = t / duration."""
    powers = [1.0]
    for _ in range(degrees - 1):
        powers.append(powers[-1] * s)
    velocity = [k * powers[k - 1] / duration if k else 0.0 for k in range(degrees)]
    acceleration = [k * (k - 1) * powers[k - 2] / duration**2 if k > 1 else 0.0 for k in range(degrees)]
    return np.array([powers, velocity, acceleration])


def _coefficients(durations: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
    """(K - 1, 2 m, n) coefficients of the powers of s that meet the m derivatives at both ends of each segment."""
    m = derivatives.shape[1]
    scale = np.stack([durations**k / factorial(k) for k in range(m)], axis=1)[:, :, np.newaxis]
    lower = derivatives[:-1] * scale
    binomials = np.array([[comb(j, k) for j in range(2 * m)] for k in range(m)], dtype=float)
    upper = np.linalg.solve(binomials[:, m:], derivatives[1:] * scale - binomials[:, :m] @ lower)
    return np.concatenate([lower, upper], axis=1)
