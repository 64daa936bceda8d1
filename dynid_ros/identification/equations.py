"""Equations Y x = τ of many samples, a block at a time, from whatever source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.normal_equations import AnyColumns, LinkFactors


@dataclass(frozen=True, eq=False)
class EquationBlock:
    """Equations of consecutive samples, filtered alike and decimated.

    Attributes:
        recording: which one it is of, counted from 0.
        time: (M,) s.
        speed: (M,) largest joint speed, each as a share of that joint's RMS.
        kind: (M,) kind of motion, see `MotionKinds`; None: not told apart.
        rows: for each joint (M, k_j).
        torque: (M, n).

    """

    recording: int
    time: NDArray
    speed: NDArray
    kind: NDArray | None
    rows: list[NDArray]
    torque: NDArray


class Equations(ABC, Generic[AnyColumns]):
    """Equations of one or more recordings.

    Attributes:
        sizes: equations per joint of each recording.
        spans: first and last time of each recording, s.
        fast: speed from which on a sample is fast, in units of `EquationBlock.speed`.
        share: (n,) what each joint's equations are worth, all of full weight being one; or one number for all.

    """

    sizes: Sequence[int] | NDArray
    spans: Sequence[tuple[float, float]]
    fast: float = np.inf
    share: float | NDArray = 1.0

    @property
    def noise_factor(self) -> float:
        """How many times as large independent noise is that tells as little as what the equations share of theirs."""
        return 1.0

    def loosened(self, noise: NDArray) -> Equations[AnyColumns]:  # noqa: ARG002 - for those who need it
        """The same, with less weight where more than noise (n,) is not known."""
        return self

    @abstractmethod
    def blocks(self, columns: AnyColumns) -> Iterator[EquationBlock]:
        """All equations, in flat memory."""

    def factors(self, columns: AnyColumns) -> LinkFactors[AnyColumns]:
        """Compressed equations."""
        factors = LinkFactors(columns, self.sizes, self.share)
        first = np.cumsum([0, *factors.stretches])
        for block in self.blocks(columns):
            recording = block.recording
            start, end = self.spans[recording]
            count = factors.stretches[recording]
            index = np.clip(((block.time - start) / (end - start) * count).astype(int), 0, count - 1)
            group = 2 * (first[recording] + index) + (block.speed >= self.fast)
            for labels, add in ((group, factors.add), (block.kind, factors.add_kind)):
                for label in () if labels is None else np.unique(labels):
                    own = np.flatnonzero(labels == label)
                    # Samples next to each other take no copy.
                    rows = slice(own[0], own[-1] + 1) if own[-1] - own[0] == len(own) - 1 else own
                    add(int(label), [matrix[rows] for matrix in block.rows], block.torque[rows])
        return factors
