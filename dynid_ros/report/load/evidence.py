"""What was measured of a load beside what the identified load says, over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.equations import Equations
from dynid_ros.identification.load.load_fit import LoadColumns
from dynid_ros.identification.load_result import LoadResult


@dataclass(frozen=True, eq=False)
class LoadEvidence:
    """All equations of a fit, without what is not the load: the arm, a tare, bias, offsets and friction.

    Attributes:
        recording: (M,) which one, counted from 0.
        time: (M,) s.
        measured: (M, c) torque of each joint, or wrench.
        load: (M, c) by the identified load.

    """

    recording: NDArray
    time: NDArray
    measured: NDArray
    load: NDArray

    @classmethod
    def of(
        cls, equations: Equations, columns: LoadColumns, result: LoadResult, tare: LoadResult | None = None
    ) -> LoadEvidence:
        """Of the equations that were fitted."""
        n = result.n_load
        size = 1 + max(int(own.max()) for own in columns.of_joint)
        load, rest = np.zeros(size), np.zeros(size)
        load[:n] = np.where(np.isfinite(result.parameters[:n]), result.parameters[:n], result.solution[:n])
        rest[columns.own[n:]] = result.solution[n:]
        if tare is not None:
            rest[:n] = np.nan_to_num(tare.body.parameters[:n])
        parts = []
        for block in equations.blocks(columns):
            own = zip(block.rows, columns.of_joint, strict=True)
            told = [[rows @ values[columns_] for values in (load, rest)] for rows, columns_ in own]
            of_load, of_rest = np.moveaxis(np.array(told), (1, 2), (0, 1))
            number = np.full(len(block.time), block.recording)
            parts.append((number, block.time, block.torque - of_rest, of_load))
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    @property
    def residual_rms(self) -> NDArray:
        """(c,) N m or N."""
        return np.sqrt(np.mean((self.measured - self.load) ** 2, axis=0))

    @property
    def measured_rms(self) -> NDArray:
        """(c,) N m or N."""
        return np.sqrt(np.mean(self.measured**2, axis=0))

    @property
    def explained(self) -> NDArray:
        """(c,) share of the mean square of what is measured; 0 where nothing is."""
        size = self.measured_rms
        return np.where(size > 0, 1 - (self.residual_rms / np.where(size > 0, size, 1.0)) ** 2, 0.0)

    @property
    def longest(self) -> slice:
        """Rows of the longest stretch of one recording without a gap."""
        step = float(np.median(np.diff(self.time))) if len(self.time) > 1 else 1.0
        ends = np.flatnonzero((np.diff(self.time) > 1.5 * abs(step)) | (np.diff(self.recording) != 0)) + 1
        stretches = [slice(*pair) for pair in zip([0, *ends], [*ends, len(self.time)], strict=True)]
        return max(stretches, key=lambda rows: rows.stop - rows.start)
