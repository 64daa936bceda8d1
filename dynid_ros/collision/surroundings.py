"""What the moving links keep away from: floor, walls of a box, obstacles."""

from collections.abc import Sequence

import numpy as np

from dynid_ros.collision.bodies import Bodies
from dynid_ros.collision.checks import Checks, ObstacleChecks, Plane, PlaneChecks
from dynid_ros.collision.obstacles import Obstacle
from dynid_ros.collision.placements import BASE

STILL = 1e-9
"""A point that moves less stands still, m."""
PROBES = 16
"""Poses that tell whether two points always coincide."""


def floor_checks(bodies: Bodies, up: np.ndarray, height: float, points: np.ndarray) -> list[Checks]:
    """Moving ends of capsules above a floor at `height` along `up`; `points` (2 C, 3, N) in some poses."""
    told = f"'{{name}}' would be at height {{at:.3f}} m at {{time:.3f}} s, below floor_height {height:g} m"
    return _plane(bodies, points, Plane(up, height, 1.0, "the floor", told))


def box_checks(bodies: Bodies, lower: np.ndarray, upper: np.ndarray, points: np.ndarray) -> list[Checks]:
    """Moving ends of capsules inside the six faces of a box with these corners (3,) in the base frame."""
    checks: list[Checks] = []
    for axis, letter in enumerate("xyz"):
        for side, corner, sign in (("lower", lower, 1.0), ("upper", upper, -1.0)):
            told = f"'{{name}}' would reach {letter} = {{at:.3f}} m at {{time:.3f}} s, beyond {side} side "
            name = f"the {side} {letter} side of the box"
            plane = Plane(
                sign * np.eye(3)[axis], sign * corner[axis], sign, name, f"{told}{corner[axis]:g} m of the box"
            )
            checks += _plane(bodies, points, plane)
    return checks


def obstacle_checks(bodies: Bodies, obstacles: Sequence[Obstacle], clearance: float) -> list[Checks]:
    """Moving capsules clear of obstacles."""
    moving = np.flatnonzero(bodies.link != BASE)
    return [ObstacleChecks(bodies, moving, np.full(len(moving), clearance), obstacle) for obstacle in obstacles]


def _plane(bodies: Bodies, points: np.ndarray, plane: Plane) -> list[Checks]:
    if np.isneginf(plane.bound):
        return []
    ends = _distinct(bodies, points)
    n = len(bodies.link)
    return [PlaneChecks(bodies, ends % n, np.zeros(len(ends)), ends // n, plane)]


def _distinct(bodies: Bodies, points: np.ndarray) -> np.ndarray:
    """Ends, of 2 C, that move; of those that coincide in all poses with the same radius, that of the last capsule."""
    n = len(bodies.link)
    order = np.argsort(np.tile(np.arange(n), 2) * 2 + (np.arange(2 * n) < n))[::-1]
    keys = np.column_stack([np.tile(bodies.radius, 2), points[:, :, :PROBES].reshape(2 * n, -1)])[order]
    _, first = np.unique(np.round(keys, 9), axis=0, return_index=True)
    kept = np.sort(order[first])
    moving = np.ptp(points, axis=2).max(axis=1) > STILL
    return kept[moving[kept] & (np.tile(bodies.link, 2)[kept] != BASE)]
