"""Compute gradients by central differences."""

from collections.abc import Callable

import numpy as np


def numerical_gradient(function: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the gradient of a scalar function, in the shape of `at`."""
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        ahead = at.copy()
        behind = at.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (function(ahead) - function(behind)) / (2 * step)
    return gradient
