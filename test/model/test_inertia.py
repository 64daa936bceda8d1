"""The ten parameters, against sums over point masses."""

import numpy as np

from dynid_ros.model.inertia import transformed


def _of_points(masses: np.ndarray, points: np.ndarray) -> np.ndarray:
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, points, strict=True))
    return np.concatenate([[masses.sum()], masses @ points, inertia[np.triu_indices(3)]])


def test_transformed():
    rng = np.random.default_rng(0)
    masses, points = rng.uniform(0.1, 1.0, 8), rng.normal(size=(8, 3))
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    transform = np.eye(4)
    transform[:3, :3] = rotation * np.linalg.det(rotation)
    transform[:3, 3] = rng.normal(size=3)
    moved = points @ transform[:3, :3].T + transform[:3, 3]
    np.testing.assert_allclose(
        transformed(_of_points(masses, points), transform), _of_points(masses, moved), atol=1e-13
    )
