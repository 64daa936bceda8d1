"""Offset and drift between two clocks near a first guess: maximum likelihood, link angles as copies of motor angles."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.signals.gap_spline import GapSpline
from dynid_ros.signals.shifted_copies import ShiftedCopies, compare

MATCHING = 0.9
"""Correlation that the best matching joint must have: links follow their motors."""
MIRRORED = -0.5
"""Correlation below which a joint turns the wrong way."""
AS_GOOD = 1.2
"""Ratio of the residuals' variances up to which one fit is as good as another."""
WINDOW = 60.0
"""In such a time at the middle of a record, a drift moves nothing by more than a part of a period, s."""
LONGEST_STEP = 0.02
"""By which one iteration moves any sample, s."""
SINGULAR = 1e12
"""Condition number of the information on offset and drift."""


class ClockFit(NamedTuple):
    """Attributes: shift, offset (1,) or offset and drift (2,); copies, how well link angles then copy the motors'."""

    shift: NDArray
    copies: ShiftedCopies

    @property
    def evidence(self) -> float:
        """Log likelihood, times two, over that of motions that have nothing to do with each other."""
        unexplained = np.maximum(1 - self.copies.correlation**2, 1e-15)
        return -float(np.sum(self.copies.n_samples * np.log(unexplained)))

    @property
    def mirrored(self) -> NDArray:
        """Joints that turn the wrong way, counted from 0."""
        return np.flatnonzero(self.copies.correlation < MIRRORED)

    def as_good_as(self, other: "ClockFit") -> bool:
        """Whether no joint's residual is clearly larger."""
        seen = (self.copies.n_samples > 0) & (other.copies.n_samples > 0)
        return bool(np.all(self.copies.noise[seen] < AS_GOOD * other.copies.noise[seen]))

    def standard_errors(self, reach: int) -> NDArray:
        """Of the shift; infinite if the motion does not tell it. `reach`: see `ShiftedCopies.standard_errors`."""
        if not np.linalg.cond(self.copies.information) < SINGULAR:
            return np.full(len(self.shift), np.inf)
        return self.copies.standard_errors(reach)


def fit_clock(motor: GapSpline, time: NDArray, angles: NDArray, shift: NDArray, middle: float) -> ClockFit:
    """Gauss and Newton's iteration from a shift that is off by less than a quarter of a period.

    Args:
        motor: n angles on the one clock.
        time: (M,) s on the other.
        angles: (M, n), NaN where unknown.
        shift: (1,) offset, or (2,) offset and drift: s, and s per s since `middle`.
        middle: s.

    """
    factors = np.column_stack([np.ones(len(time)), time - middle])[:, : len(shift)]

    def compared(shift: NDArray) -> ShiftedCopies:
        at = time + factors @ shift
        return compare(motor(at), motor(at, 1), angles, factors)

    copies = compared(shift)
    for _ in range(15):
        if not np.linalg.cond(copies.information) < SINGULAR:
            break
        step = np.linalg.solve(copies.information, copies.score.sum(axis=0))
        step /= max(1.0, np.max(np.abs(factors @ step)) / LONGEST_STEP)
        shift = shift + step
        copies = compared(shift)
        if np.max(np.abs(factors @ step)) < 1e-8:
            break
    return ClockFit(shift, copies)


def fit_outwards(
    motor: GapSpline, time: NDArray, angles: NDArray, offset: float, middle: float, *, drift: bool
) -> ClockFit:
    """From the middle of a long record to its ends, which a drift carries more than a period off; as `fit_clock`."""
    shift, half = np.array([offset]), WINDOW / 2
    while drift and half < (time[-1] - time[0]) / 2:
        rows = np.abs(time - middle) <= half
        fit = fit_clock(motor, time[rows], angles[rows], np.append(shift, 0.0)[:2], middle)
        # At rest in the middle there is nothing to go by.
        if np.max(np.abs(fit.copies.correlation)) > MATCHING:
            shift = fit.shift
        half *= 2
    return fit_clock(motor, time, angles, shift, middle)
