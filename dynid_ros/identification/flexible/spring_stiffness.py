"""What may be said of a stiffness: a value with an interval, or "undetermined" with bounds and the reason."""

import math
from dataclasses import dataclass

from dynid_ros.estimation.estimate import half_width

WIDEST = 3.0
"""Ratio of the ends of an interval above which a stiffness counts as undetermined: half an order of magnitude."""


@dataclass(frozen=True)
class Stiffness:
    """Stiffness of a joint, told by its compliance: that is what deflection over torque shows, and zero is rigid.

    Attributes:
        compliance: rad/(N m).
        compliance_interval: 95 %, rad/(N m).
        reason: why the stiffness is not determined; empty where it is.

    """

    compliance: float
    compliance_interval: tuple[float, float]
    reason: str

    @classmethod
    def of(cls, compliance: float, standard_error: float, freedom: float) -> "Stiffness":
        """Judge a compliance by its standard error, rad/(N m), of so many degrees of freedom."""
        half = float(half_width(standard_error, freedom))
        return cls.of_interval(compliance, (float(compliance - half), float(compliance + half)))

    @classmethod
    def of_interval(cls, compliance: float, interval: tuple[float, float]) -> "Stiffness":
        """Judge a compliance by its interval of 95 %, rad/(N m)."""
        low, high = interval
        if not math.isfinite(high - low):
            low, high, reason = -math.inf, math.inf, "the recording does not tell the compliance"
        elif high < 0:
            reason = "the joint seems to bend against the torque: something else moves the deflection"
        elif low <= 0:
            reason = "the compliance is not told from zero: the joint may be rigid"
        elif high > WIDEST * low:
            reason = f"the interval spans a factor of {high / low:.2g}"
        else:
            reason = ""
        return cls(float(compliance), (low, high), reason)

    @property
    def determined(self) -> bool:
        """Whether a value may be given."""
        return not self.reason

    @property
    def value(self) -> float:
        """N m/rad; NaN where undetermined."""
        return 1 / self.compliance if self.determined else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, N m/rad: with infinity where the joint may be rigid, from 0 where nothing bounds it from below."""
        low, high = self.compliance_interval
        return (1 / high if high > 0 else 0.0, 1 / low if low > 0 else math.inf)

    def __str__(self) -> str:
        """Sentence without a full stop."""
        low, high = self.interval
        if self.determined:
            return f"{self.value:.3g} N m/rad, 95 % interval {low:.3g} to {high:.3g}"
        if low == 0:
            return f"undetermined ({self.reason})"
        bound = f"at least {low:.3g} N m/rad" if math.isinf(high) else f"between {low:.3g} and {high:.3g} N m/rad"
        return f"undetermined, {bound} ({self.reason})"
