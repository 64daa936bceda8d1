"""Errors of a load that no residual shows: of the arm's model, and of the sensors' gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.links.covariance import half_inverse


class KnownColumns(Protocol):
    """Columns that are known, but not exactly: those of an arm's model, or of a sensor's gains."""

    @property
    def covariance(self) -> NDArray | None:
        """(a, a); None: they are exact."""

    @property
    def gain_shifts(self) -> NDArray | None:
        """(n, a) change of their values per relative error of each channel's gain; None: they do not change."""

    @property
    def values(self) -> NDArray:
        """(a,)."""


def known_errors(grams: Sequence[NDArray], size: int, gain_error: float, arm: KnownColumns | None) -> NDArray:
    """Covariance (k, k) of a solution x = N⁻¹ Aᵀ W (d − B δ) that comes from the arm's error δ and from wrong gains.

    A gain that is wrong by ε moves the whole torque of its channel, d + B β, β being the arm's parameters. But these
    were found with the same gain, and are wrong for it: what is common to the arm's torque then and now cancels.

    Args:
        grams: for each channel [A B d]ᵀ W [A B d], (k + a + 1, k + a + 1): columns that are fitted, columns of the
            arm, and the right-hand side.
        size: k.
        gain_error: standard deviation of the relative error of each channel's gain.
        arm: whose columns B are; None: there are none.

    """
    half = half_inverse(np.sum(grams, axis=0)[:size, :size])
    sides = known_sides(list(enumerate(grams)), len(grams), size, gain_error, arm)
    moved = half @ (half.T @ np.sum(sides, axis=0))
    return moved @ moved.T


def known_sides(
    grams: Sequence[tuple[int, NDArray]], channels: int, size: int, gain_error: float, arm: KnownColumns | None
) -> list[NDArray]:
    """Right-hand sides (k, m) that each of these errors adds to normal equations at one standard deviation.

    Args:
        grams: channel, and its [A B d]ᵀ W [A B d] in some of the data.
        channels: number c of them.
        size: k.
        gain_error: standard deviation of the relative error of each channel's gain.
        arm: whose columns B are; None: there are none.

    """
    ends, sides = slice(size, -1), []
    root = None if arm is None or arm.covariance is None else covariance_root(arm.covariance)
    for channel, gram in grams:
        gains = np.zeros((size, channels))
        gains[:, channel] = gram[:size, -1]
        if arm is None or root is None:
            sides.append(gain_error * gains)
            continue
        of_arm = gram[:size, ends]
        if arm.gain_shifts is not None:
            gains[:, channel] += of_arm @ arm.values
            gains -= of_arm @ arm.gain_shifts.T
        sides.append(np.hstack([of_arm @ root, gain_error * gains]))
    return sides


def covariance_root(covariance: NDArray) -> NDArray:
    """(k, k) whose product with its transpose is the covariance (k, k), which may be singular."""
    values, axes = np.linalg.eigh(covariance)
    return axes * np.sqrt(np.maximum(values, 0.0))
