"""Laws of the torsional spring between motor and link: torque over the deflection d = q_m - q.

A law has no values of its own: `values` (p,) are given to every call, in the order of `names`, so that any estimator
can search over them. Which law suits is a choice by the data (Lightcap & Banks 2007, eq. 7 and section V).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

Deflection = Callable[[float], float]


def _cubic(stiffness: float, cubic: float) -> Deflection:
    """The real root of k e + k3 e^3 = torque in closed form; NaN beyond what a spring that softens can carry."""
    scale = 2.0 * math.sqrt(stiffness / (3.0 * abs(cubic)))
    relative = 3.0 / (stiffness * scale)
    if cubic > 0.0:
        return lambda torque: scale * math.sinh(math.asinh(relative * torque) / 3.0)
    return lambda torque: (
        scale * math.sin(math.asin(relative * torque) / 3.0) if abs(relative * torque) <= 1.0 else math.nan
    )


def deflection_by_torque(stiffness: float, cubic: float = 0.0, dead_zone: float = 0.0) -> Deflection:
    """Inverse of the law k e + k3 e^3, e = d beyond a play of -a to +a.

    Without torque the link may be anywhere in the play. It is taken to cross it while the torque grows to what would
    wind the spring up by as much: a jump from end to end would let a fixed point swing.
    """
    elastic = _cubic(stiffness, cubic) if cubic else (lambda torque: torque / stiffness)
    if not dead_zone:
        return elastic
    crossed = stiffness * dead_zone
    return lambda torque: elastic(torque) + dead_zone * min(max(torque / crossed, -1.0), 1.0)


class Spring(Protocol):
    """A law of the spring. Deflections (N,) rad, torque N m; for a prismatic joint m and N."""

    names: ClassVar[tuple[str, ...]]
    """The p values, in order."""

    def torque(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Torque (N,) that the spring passes on to the link."""

    def tangent(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Derivative of the torque by the deflection, (N,), N m/rad."""

    def columns(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Derivative of the torque by the values, (N, p)."""


class LinearSpring:
    """Torque k d: stiffness k, N m/rad."""

    names: ClassVar[tuple[str, ...]] = ("stiffness",)

    def torque(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Torque (N,), N m."""
        return values[0] * deflection

    def tangent(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Stiffness (N,), N m/rad."""
        return np.full(np.shape(deflection), float(values[0]))

    def columns(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:  # noqa: ARG002 - linear in its value
        """Derivative by the stiffness, (N, 1)."""
        return np.asarray(deflection)[:, np.newaxis].astype(float)


class CubicSpring:
    """Torque k d + k3 d^3: stiffness k, N m/rad, and its growth k3, N m/rad^3 (harmonic drives stiffen under load)."""

    names: ClassVar[tuple[str, ...]] = ("stiffness", "cubic")

    def torque(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Torque (N,), N m."""
        return values[0] * deflection + values[1] * deflection**3

    def tangent(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Stiffness at each deflection (N,), N m/rad."""
        return values[0] + 3 * values[1] * np.square(deflection)

    def columns(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:  # noqa: ARG002 - linear in its values
        """Derivative by stiffness and cubic term, (N, 2)."""
        return np.stack([deflection, np.power(deflection, 3)], axis=1)


class DeadZoneSpring:
    """Torque k times what the deflection exceeds a play of -a to +a: stiffness k, N m/rad, half the play a, rad."""

    names: ClassVar[tuple[str, ...]] = ("stiffness", "dead_zone")

    def torque(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Torque (N,), N m; none within the play."""
        return values[0] * self._excess(deflection, values)

    def tangent(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Stiffness at each deflection (N,), N m/rad; 0 within the play."""
        return np.where(np.abs(deflection) > values[1], float(values[0]), 0.0)

    def columns(self, deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Derivative by stiffness and half the play, (N, 2)."""
        by_play = np.where(np.abs(deflection) > values[1], -values[0] * np.sign(deflection), 0)
        return np.stack([self._excess(deflection, values), by_play], axis=1)

    @staticmethod
    def _excess(deflection: np.ndarray, values: np.ndarray) -> np.ndarray:
        # The formula holds for a < 0 too, without meaning there: a search that steps below zero finds its way back.
        return np.sign(deflection) * np.maximum(np.abs(deflection) - values[1], 0)


SPRINGS: dict[str, type[Spring]] = {"linear": LinearSpring, "cubic": CubicSpring, "dead_zone": DeadZoneSpring}
