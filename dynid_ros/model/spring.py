"""Laws of the torsional spring between motor and link: torque over the deflection d = q_m - q.

Every call takes the values (p,) of a law, in the order of `names`, so that any estimator can search over them. The data
choose the law (Lightcap and Banks 2007, eq. 7 and section V).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

Deflection = Callable[[float], float]


def _cubic(stiffness: float, cubic: float) -> Deflection:
    """Return the real root e of k e + k3 e³ = torque as a function; NaN above the peak torque of a softening spring."""
    scale = 2.0 * math.sqrt(stiffness / (3.0 * abs(cubic)))
    relative = 3.0 / (stiffness * scale)
    if cubic > 0.0:
        return lambda torque: scale * math.sinh(math.asinh(relative * torque) / 3.0)
    return lambda torque: (
        scale * math.sin(math.asin(relative * torque) / 3.0) if abs(relative * torque) <= 1.0 else math.nan
    )


def deflection_by_torque(stiffness: float, cubic: float = 0.0, dead_zone: float = 0.0) -> Deflection:
    """Return the inverse of the law k e + k3 e³, where e is the deflection beyond a play of -a to +a.

    Without torque the link may be anywhere in the play. The inverse crosses the play while the torque grows to the
    value that would deflect the spring by the same angle, because fixed-point iterations would oscillate over a jump.
    """
    elastic = _cubic(stiffness, cubic) if cubic else (lambda torque: torque / stiffness)
    if not dead_zone:
        return elastic
    crossed = stiffness * dead_zone
    return lambda torque: elastic(torque) + dead_zone * min(max(torque / crossed, -1.0), 1.0)


class Spring(Protocol):
    """A spring law. Deflections (N,) are in rad, torques in N m; for a prismatic joint in m and N."""

    names: ClassVar[tuple[str, ...]]
    """Names of the p values, in order."""

    def torque(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the torque (N,) that the spring passes on to the link."""

    def tangent(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the derivative (N,) of the torque with respect to the deflection, N m/rad."""

    def columns(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the derivatives (N, p) of the torque with respect to the values."""


class LinearSpring:
    """Torque k d: stiffness k, N m/rad."""

    names: ClassVar[tuple[str, ...]] = ("stiffness",)

    def torque(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the torque (N,), N m."""
        return values[0] * deflection

    def tangent(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the stiffness (N,), N m/rad."""
        return np.full(np.shape(deflection), float(values[0]))

    def columns(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:  # noqa: ARG002 - linear in its value
        """Return the derivative (N, 1) with respect to the stiffness."""
        return np.asarray(deflection)[:, np.newaxis].astype(float)


class CubicSpring:
    """Torque k d + k3 d^3: stiffness k, N m/rad, and its growth k3, N m/rad^3 (harmonic drives stiffen under load)."""

    names: ClassVar[tuple[str, ...]] = ("stiffness", "cubic")

    def torque(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the torque (N,), N m."""
        return values[0] * deflection + values[1] * deflection**3

    def tangent(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the stiffness (N,) at each deflection, N m/rad."""
        return values[0] + 3 * values[1] * np.square(deflection)

    def columns(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:  # noqa: ARG002 - linear in its values
        """Return the derivatives (N, 2) with respect to stiffness and cubic term."""
        return np.stack([deflection, np.power(deflection, 3)], axis=1)


class DeadZoneSpring:
    """Torque k times the deflection beyond a play of -a to +a: stiffness k, N m/rad, half the play a, rad."""

    names: ClassVar[tuple[str, ...]] = ("stiffness", "dead_zone")

    def torque(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the torque (N,), N m; zero within the play."""
        return values[0] * self._excess(deflection, values)

    def tangent(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the stiffness (N,) at each deflection, N m/rad; zero within the play."""
        return np.where(np.abs(deflection) > values[1], float(values[0]), 0.0)

    def columns(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the derivatives (N, 2) with respect to stiffness and half the play."""
        by_play = np.where(np.abs(deflection) > values[1], -values[0] * np.sign(deflection), 0)
        return np.stack([self._excess(deflection, values), by_play], axis=1)

    @staticmethod
    def _excess(deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        # The formula is defined for a < 0, too, so that a search that steps below zero can return.
        return np.sign(deflection) * np.maximum(np.abs(deflection) - values[1], 0)


SPRINGS: dict[str, type[Spring]] = {"linear": LinearSpring, "cubic": CubicSpring, "dead_zone": DeadZoneSpring}
