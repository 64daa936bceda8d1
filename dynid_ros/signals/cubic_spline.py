"""Cubic splines through samples; scipy.interpolate takes as long to import as a short recording to check."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_banded


class CubicSpline:
    """Cubic spline through samples, whose two first and two last pieces are one polynomial each ("not a knot").

    Beyond the ends, the outermost pieces continue (de Boor 1978, chapter IV).

    Args:
        knots: (N,) increasing places of the samples.
        values: (N, …) samples.

    Attributes:
        knots: (N,) places of the samples.
    """

    def __init__(self, knots: ArrayLike, values: ArrayLike) -> None:
        self.knots = np.asarray(knots, dtype=float)
        samples = np.asarray(values, dtype=float)
        self._shape = samples.shape[1:]
        samples = samples.reshape(len(samples), -1)
        steps = np.diff(self.knots)[:, None]
        secants = np.diff(samples, axis=0) / steps
        slopes = _slopes(steps, secants)
        bend = (slopes[:-1] + slopes[1:] - 2 * secants) / steps
        # Coefficients of the powers 3 to 0 of the distance from the knot before.
        self._coefficients = (bend / steps, (secants - slopes[:-1]) / steps - bend, slopes[:-1], samples[:-1])

    def __call__(self, places: ArrayLike, order: int = 0) -> NDArray:
        """Return the values (…, …) at places (…,), or their derivative of an order from 1 to 3."""
        at = np.asarray(places, dtype=float)
        flat = at.ravel()
        piece = np.clip(np.searchsorted(self.knots, flat, side="right") - 1, 0, len(self.knots) - 2)
        distance = (flat - self.knots[piece])[:, None]
        result = np.zeros((len(flat), self._coefficients[0].shape[1]))
        for power, coefficient in zip((3, 2, 1, 0), self._coefficients, strict=True):
            if power >= order:
                factor = float(np.prod(range(power - order + 1, power + 1)))
                result = result * distance + factor * coefficient[piece]
        return result.reshape((*at.shape, *self._shape))


def _slopes(steps: NDArray, secants: NDArray) -> NDArray:
    """Return the slopes (N, c) at the knots with which first and second derivatives are continuous.

    Args:
        steps: (N − 1, 1) distances of the knots.
        secants: (N − 1, c) slopes of the straight lines between the samples.
    """
    if len(steps) == 1:
        return np.concatenate([secants, secants])
    first = steps[0] + steps[1]
    last = steps[-1] + steps[-2]
    right = np.concatenate(
        [
            ((steps[0] + 2 * first) * steps[1] * secants[:1] + steps[0] ** 2 * secants[1:2]) / first,
            3 * (steps[1:] * secants[:-1] + steps[:-1] * secants[1:]),
            (steps[-1] ** 2 * secants[-2:-1] + (2 * last + steps[-1]) * steps[-2] * secants[-1:]) / last,
        ]
    )
    if len(steps) == 2:  # one parabola: both ends give the same condition
        middle = right[1:2] / (3 * first)
        return np.concatenate([2 * secants[:1] - middle, middle, 2 * secants[1:] - middle])
    diagonals = np.ones((3, len(steps) + 1))
    diagonals[0, 1] = first[0]
    diagonals[0, 2:] = steps[:-1, 0]
    diagonals[1] = np.r_[steps[1], 2 * (steps[:-1, 0] + steps[1:, 0]), steps[-2]]
    diagonals[2, :-2] = steps[1:, 0]
    diagonals[2, -2] = last[0]
    return solve_banded((1, 1), diagonals, right, overwrite_ab=True, overwrite_b=True, check_finite=False)
