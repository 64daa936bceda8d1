"""Equations of motion integrated over windows, which need no accelerations (Atkeson, An and Hollerbach 1986)."""

from collections.abc import Iterator

import numpy as np

from dynid_ros.identification.equations import EquationBlock
from dynid_ros.identification.integral_form import integral_blocks
from dynid_ros.identification.link_columns import LinkColumns
from dynid_ros.identification.link_equations import LinkEquations

PERIODS = 1.0
"""Length of a window in periods of the cut-off: Hann's window of that length damps about as the low-pass does."""


class IntegralEquations(LinkEquations):
    """As `LinkEquations`, with means over Hann windows in place of the low-pass."""

    def blocks(self, columns: LinkColumns) -> Iterator[EquationBlock]:
        """All equations, in flat memory."""
        window = PERIODS / self.signals.cutoff
        friction = columns.friction([0] * len(columns.candidates))
        for owner, part in zip(self._owner, self.segments, strict=True):
            step = 1 / part.rate
            size = round(window / step) + 1
            if size > len(part.time):
                continue
            done, area = 0, (size - 1) * step / 2
            motion = part.motion.position, part.motion.velocity
            for regressor, impulse in integral_blocks(
                columns.robot, friction, step, motion, part.torque, window=window
            ):
                # Hann's windows overlap by half.
                middle = np.minimum((done + np.arange(len(impulse)) + 1) * ((size - 1) // 2), len(part.time) - 1)
                done += len(impulse)
                yield EquationBlock(
                    int(owner),
                    part.time[middle],
                    self._speed(part)[middle],
                    columns.rows_of(regressor / area),
                    impulse / area,
                )
