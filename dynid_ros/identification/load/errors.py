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
    total, ends = np.sum(grams, axis=0), slice(size, -1)
    half = half_inverse(total[:size, :size])
    inverse = half @ half.T
    moments = np.stack([gram[:size, -1] for gram in grams])
    if arm is None or arm.covariance is None:
        moved = gain_error * moments @ inverse
        return moved.T @ moved
    sensitivity = inverse @ total[:size, ends]
    if arm.gain_shifts is not None:
        moments = moments + np.stack([gram[:size, ends] @ arm.values for gram in grams])
        moved = gain_error * (moments @ inverse - arm.gain_shifts @ sensitivity.T)
    else:
        moved = gain_error * moments @ inverse
    return sensitivity @ arm.covariance @ sensitivity.T + moved.T @ moved
