"""Derivatives in time as banded matrices: seven samples, of sixth order, as `signals.motion.central_differences`."""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_coeffs

from dynid_ros.signals.derivatives import STENCIL


class Differences:
    """Weights of first and second derivative of N uniform samples.

    Attributes:
        first: (N,) first sample that the derivatives at each sample take.
        weights: (3, N, 7) of value, derivative, 1/s, and second derivative, 1/s², on seven samples from `first` on.

    """

    def __init__(self, n_samples: int, step: float) -> None:
        half = STENCIL // 2
        self.first = np.clip(np.arange(n_samples) - half, 0, n_samples - STENCIL)
        place = np.arange(n_samples) - self.first
        table = np.array(
            [
                [
                    savgol_coeffs(STENCIL, STENCIL - 1, deriv=order, delta=step, pos=pos, use="dot")
                    for pos in range(STENCIL)
                ]
                for order in (1, 2)
            ]
        )
        self.weights = np.concatenate([np.eye(STENCIL)[None], table])[:, place]

    def of(self, values: NDArray, order: int) -> NDArray:
        """Derivative (N, ...) of values (N, ...)."""
        samples = values[self.first[:, None] + np.arange(STENCIL)]
        return np.einsum("ks,ks...->k...", self.weights[order], samples)
