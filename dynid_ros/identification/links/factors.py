"""All equations of a fit, summed as they come: memory does not grow with the number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.normal_equations import JointGrams

PARTS = 5
"""Parts of a recording that are left out in turn."""
STRETCHES = 20
"""Of a recording, at most."""
SAMPLES_PER_STRETCH = 25


class Columns(Protocol):
    """Columns of the equations of several channels, such as the joints' torques.

    Attributes:
        of_joint: for each channel the (k_j,) columns that it can depend on.

    """

    of_joint: list[NDArray]

    def rows(self, q: NDArray, qd: NDArray, qdd: NDArray) -> list[NDArray]:
        """For each channel the matrix (N, k_j) of a motion (N, n)."""


AnyColumns = TypeVar("AnyColumns", bound=Columns)


class LinkFactors(JointGrams, Generic[AnyColumns]):
    """Sums of [Y_j τ_j]ᵀ [Y_j τ_j] and factors of them, by groups of samples.

    Groups make it possible to leave samples out, for cross-validation, and to see how far stretches of time agree, for
    errors that are correlated in time: 2 s holds the slow and 2 s + 1 the fast samples of stretch s.

    Args:
        columns: what the regressor consists of.
        recordings: number of samples of each recording; none has to be known better than to a factor.
        share: (n,) what each joint's equations are worth, all of full weight being one; or one number for all.

    Attributes:
        columns, share: as given.
        stretches: number of stretches of time of each recording; S in all.
        parts: (S,) which part of its recording each stretch belongs to.

    """

    def __init__(self, columns: AnyColumns, recordings: Sequence[int] | NDArray, share: float | NDArray = 1.0):
        self.columns, self.share = columns, share
        self.stretches = [int(np.clip(size // SAMPLES_PER_STRETCH, 1, STRETCHES)) for size in recordings]
        self.parts = np.concatenate([_parts(i, count) for i, count in enumerate(self.stretches)])
        self._widths = [len(own) for own in columns.of_joint]
        super().__init__(self._widths, 2 * len(self.parts))
        self._kinds: dict[int, JointGrams] = {}

    def add_kind(self, kind: int, rows: Sequence[NDArray], torque: NDArray) -> None:
        """Add samples to a kind of motion; arguments as those of `add`."""
        if kind not in self._kinds:
            self._kinds[kind] = JointGrams(self._widths)
        self._kinds[kind].add(0, rows, torque)

    @property
    def kinds(self) -> list[int]:
        """Kinds of motion that there are samples of."""
        return sorted(self._kinds)

    def kind_gram(self, kind: int, joint: int) -> NDArray:
        """[Y_j τ_j]ᵀ [Y_j τ_j], (k_j + 1, k_j + 1), of one kind of motion."""
        return self._kinds[kind].sums[joint][0]

    def norms(self, joint: int) -> NDArray:
        """(k_j,) norms of a joint's columns over all samples."""
        return np.sqrt(np.einsum("gkk->k", self.sums[joint])[:-1])

    def gram(self, group: int, joint: int) -> NDArray:
        """[Y_j τ_j]ᵀ [Y_j τ_j], (k_j + 1, k_j + 1), of one group."""
        return self.sums[joint][group]


def _parts(recording: int, stretches: int) -> NDArray:
    """Part of each stretch of a recording; those too short to be divided are left out in turn."""
    part = (np.arange(stretches) + 0.5) * PARTS / stretches
    return (part.astype(int) + (recording if stretches < PARTS else 0)) % PARTS
