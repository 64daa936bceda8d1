"""A number that was identified, beside the truth."""

from dataclasses import dataclass

import numpy as np

from dynid_ros.report.formats import as_fine_as, significant


@dataclass(frozen=True)
class Found:
    """One number that was identified, beside the truth.

    Attributes:
        name: of what.
        unit: of all numbers.
        true: value.
        value: as identified; NaN if the data do not decide it.
        half: half of the 95 % interval.

    """

    name: str
    unit: str
    true: float
    value: float
    half: float

    @property
    def error(self) -> float:
        """Identified less true."""
        return self.value - self.true

    @property
    def decided(self) -> bool:
        """Whether the data decide it."""
        return bool(np.isfinite(self.value))

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return bool(abs(self.error) <= self.half)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """True and identified value, half interval and error as text."""
        if not self.decided:
            return significant(self.true), "–", "–", "–"
        finer = self.half / 10
        # not a zero with a sign
        true = self.true if abs(self.true) > finer / 100 else 0.0
        return (
            as_fine_as(true, finer),
            as_fine_as(self.value, finer),
            significant(self.half, 2),
            significant(self.error, 2),
        )
