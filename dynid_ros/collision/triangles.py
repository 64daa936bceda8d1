"""Triangles of boxes, cylinders and meshes, none of them large."""

import numpy as np

SIDES = 16
"""Of the prism about a cylinder."""


def box_faces(size: np.ndarray) -> np.ndarray:
    """Triangles (12, 3, 3) of a box about the origin with sides `size` (3,)."""
    triangles = []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (-0.5, 0.5):
            corners = np.zeros((4, 3))
            corners[:, axis] = side
            corners[:, u] = [-0.5, 0.5, 0.5, -0.5]
            corners[:, v] = [-0.5, -0.5, 0.5, 0.5]
            triangles += [corners[[0, 1, 2]], corners[[0, 2, 3]]]
    return np.array(triangles) * size


def cylinder_faces(radius: float, length: float) -> np.ndarray:
    """Triangles (4 SIDES, 3, 3) of a prism about a cylinder whose axis is z, the origin in its middle."""
    angles = np.arange(SIDES + 1) * (2.0 * np.pi / SIDES)
    rim = np.stack([np.cos(angles), np.sin(angles)], axis=1) * (radius / np.cos(np.pi / SIDES))
    low, high = (np.column_stack([rim, np.full(SIDES + 1, z)]) for z in (-length / 2, length / 2))
    centres = (np.array([0.0, 0.0, -length / 2]), np.array([0.0, 0.0, length / 2]))
    triangles = []
    for i in range(SIDES):
        triangles += [[low[i], low[i + 1], high[i]], [high[i], low[i + 1], high[i + 1]]]
        triangles += [[centres[0], low[i], low[i + 1]], [centres[1], high[i], high[i + 1]]]
    return np.array(triangles)


def divided(triangles: np.ndarray, longest: float) -> np.ndarray:
    """The same surface in triangles (F, 3, 3) with no edge above `longest`: long edges are halved, again and again."""
    done = []
    while len(triangles):
        edges = np.linalg.norm(triangles - np.roll(triangles, -1, axis=1), axis=2)
        short = edges.max(axis=1) <= longest
        done.append(triangles[short])
        rest, k = triangles[~short], edges[~short].argmax(axis=1)
        a, b, c = (rest[np.arange(len(rest)), (k + i) % 3] for i in range(3))
        middle = (a + b) / 2
        triangles = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    return np.concatenate(done) if done else triangles
