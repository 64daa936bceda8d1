"""Equations of motion integrated over windows, which need no accelerations (Atkeson, An and Hollerbach 1986)."""

from collections.abc import Iterator

import numpy as np

from dynid_ros.identification.equations import EquationBlock
from dynid_ros.identification.links.equations import LinkEquations
from dynid_ros.identification.links.integral_form import integral_blocks
from dynid_ros.model.link_columns import LinkColumns

PERIODS = 1.0
"""Length of a window in periods of the cut-off: Hann's window of that length damps about as the low-pass does."""
STEPS = 14
"""Least samples from end to end of a window: with 7, Simpson's rule errs by 2 % of the torque, with 14 by 0.01 %."""


class IntegralEquations(LinkEquations[LinkColumns]):
    """As `LinkEquations`, with means over Hann windows in place of the low-pass."""

    @property
    def noise_factor(self) -> float:
        """Neighbouring windows share samples: means w have the variance ∫w², by half a window 4/3 of it."""
        return float(np.sqrt(4 / 3))

    def blocks(self, columns: LinkColumns) -> Iterator[EquationBlock]:
        """All equations, in flat memory."""
        friction = columns.friction([0] * len(columns.candidates))
        for owner, part in zip(self._owner, self.segments, strict=True):
            step = 1 / part.rate
            # Simpson's rule is best for even numbers.
            length = max(2 * round(PERIODS * part.rate / self.signals.cutoff / 2), STEPS)
            if length + 1 > len(part.time):
                continue
            done, window = 0, length * step
            motion = part.motion.position, part.motion.velocity
            for regressor, impulse in integral_blocks(
                columns.robot, friction, step, motion, part.torque, window=window
            ):
                # Hann's windows overlap by half.
                middle = np.minimum((done + np.arange(len(impulse)) + 1) * (length // 2), len(part.time) - 1)
                done += len(impulse)
                yield EquationBlock(
                    int(owner),
                    part.time[middle],
                    self._speed(part, middle),
                    self._kinds.of(*self._state(part, middle)),
                    columns.rows_of(regressor / (window / 2)),
                    impulse / (window / 2),
                )
