"""Markers on a body that turns about a fixed axis, as cameras see them; by scipy's rotations alone."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

RATE = 250.0
AXIS = np.array([0.48, -0.6, 0.64])
POINT = np.array([1.2, -0.4, 2.3])
NOISE = 3e-4
RANGES = (10.0, 20.0, 45.0, 90.0, 170.0)
"""Degrees."""


@dataclass(frozen=True)
class Turning:
    """What the cameras see, and the truth: time (N,) s, markers (N, P, 3) m, angle (N,) rad."""

    time: np.ndarray
    markers: np.ndarray
    angle: np.ndarray


def places(
    radius: float = 0.15, angles: tuple[float, ...] = (-8, 0, 8), heights: tuple[float, ...] | None = None
) -> np.ndarray:
    """(P, 3) markers from the point on the axis at angle zero, at angles in degrees about the axis."""
    side = np.cross(AXIS, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    turned = Rotation.from_rotvec(np.deg2rad(angles)[:, None] * AXIS).apply(radius * side)
    if heights is None:
        heights = tuple(np.linspace(-0.05, 0.05, len(angles)))
    return turned + np.multiply.outer(heights, AXIS)


def swing(range_deg: float, n_frames: int = 2500) -> np.ndarray:
    """(N,) rad: four periods of a sine, from its middle upwards."""
    return np.deg2rad(range_deg / 2) * np.sin(np.linspace(0, 8 * np.pi, n_frames, endpoint=False))


def turning(
    angle: np.ndarray, body: np.ndarray, rng: np.random.Generator, noise: float = NOISE, axis: np.ndarray = AXIS
) -> Turning:
    """Record of angles (N,) with markers at (P, 3) from the axis."""
    rotation = Rotation.from_rotvec(angle[:, None] * axis)
    seen = np.stack([rotation.apply(place) for place in body], axis=1) + POINT
    return Turning(np.arange(len(angle)) / RATE, seen + noise * rng.normal(size=seen.shape), angle)


def direction_error(axis: np.ndarray) -> float:
    """Angle to the true axis, degrees; without the sign."""
    return float(np.rad2deg(np.arcsin(min(1.0, float(np.linalg.norm(np.cross(axis, AXIS)))))))


def distance_error(point: np.ndarray) -> float:
    """Distance from the true axis, mm."""
    return float(1000 * np.linalg.norm(np.cross(point - POINT, AXIS)))
