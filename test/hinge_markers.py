"""Simulate markers on a body that rotates about a fixed axis, by scipy's rotations alone."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

RATE_HZ = 250.0
AXIS = np.array([0.48, -0.6, 0.64])
POINT = np.array([1.2, -0.4, 2.3])
NOISE_M = 3e-4
RANGES_DEG = (10.0, 20.0, 45.0, 90.0, 170.0)
"""Ranges of motion in degrees."""


@dataclass(frozen=True)
class RotationRecord:
    """Record of a rotation: time (N,) in s, measured markers (N, P, 3) in m, true angle (N,) in rad."""

    time: np.ndarray
    markers: np.ndarray
    angle: np.ndarray


def place_markers(
    radius: float = 0.15, angles: tuple[float, ...] = (-8, 0, 8), heights: tuple[float, ...] | None = None
) -> np.ndarray:
    """Return markers (P, 3) relative to a point on the axis, at angles in degrees about the axis."""
    side = np.cross(AXIS, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    rotated = Rotation.from_rotvec(np.deg2rad(angles)[:, None] * AXIS).apply(radius * side)
    if heights is None:
        heights = tuple(np.linspace(-0.05, 0.05, len(angles)))
    return rotated + np.multiply.outer(heights, AXIS)


def swing_angle(range_deg: float, n_frames: int = 2500) -> np.ndarray:
    """Return angles (N,) in rad: four periods of a sine."""
    return np.deg2rad(range_deg / 2) * np.sin(np.linspace(0, 8 * np.pi, n_frames, endpoint=False))


def record_rotation(
    angle: np.ndarray, body: np.ndarray, rng: np.random.Generator, noise: float = NOISE_M, axis: np.ndarray = AXIS
) -> RotationRecord:
    """Return the record of angles (N,) with markers at (P, 3) relative to a point on the axis."""
    rotation = Rotation.from_rotvec(angle[:, None] * axis)
    positions = np.stack([rotation.apply(place) for place in body], axis=1) + POINT
    return RotationRecord(np.arange(len(angle)) / RATE_HZ, positions + noise * rng.normal(size=positions.shape), angle)


def direction_error(axis: np.ndarray) -> float:
    """Return the angle in degrees between an axis and the true axis, ignoring the sign."""
    return float(np.rad2deg(np.arcsin(min(1.0, float(np.linalg.norm(np.cross(axis, AXIS)))))))


def distance_error(point: np.ndarray) -> float:
    """Return the distance in mm of a point from the true axis."""
    return float(1000 * np.linalg.norm(np.cross(point - POINT, AXIS)))
