"""Products of stacked vectors (..., 3, N)."""

import numpy as np


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross product (..., 3, N) along the axis before the last; `numpy.cross` takes several times as long."""
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        product[..., i, :] = a[..., j, :] * b[..., k, :] - a[..., k, :] * b[..., j, :]
    return product


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Scalar product (..., N) along the axis before the last."""
    return a[..., 0, :] * b[..., 0, :] + a[..., 1, :] * b[..., 1, :] + a[..., 2, :] * b[..., 2, :]
