"""The clock of a camera compared with that of a robot, from one motion that both have recorded."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.signals.lag import TINY, ShiftedCopies, compare
from dynid_ros.signals.low_pass import LowPass
from dynid_ros.signals.resampling import GapSpline, contiguous
from dynid_ros.signals.spectra import correlate, peaks

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
        """Return those of the shift, infinite if undetermined; `reach`: see `ShiftedCopies.standard_errors`."""
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


STEP = 0.02
"""Step of the grid, s."""
SPAN = 2
"""Half the steps over which speeds are taken: noise of the angles matters little, motion below 10 Hz is seen."""
SHORTEST_OVERLAP = 0.25
"""Smallest overlap, in parts of the shorter record: in less, motions correlate by chance."""
WORTH_A_LOOK = 0.2
"""Evidence for another offset, over that for the best, from which it is looked at closely."""
MOST = 20
"""Offsets that are looked at closely."""


def candidate_lags(reference: GapSpline, signal: GapSpline, longest: tuple[float, float]) -> NDArray:
    """Lags after which speeds match best, best first, s; empty if the records do not overlap.

    Of lag τ, the signal at time s after its first sample belongs to the reference at time s + τ after its first.
    Evidence is the log likelihood of gain · reference + noise over that of noise alone, of all columns; the sign of a
    gain does not matter here.

    Args:
        reference: n columns.
        signal: n columns.
        longest: smallest and largest lag to look for, s.
    """
    a, b = _speeds(reference), _speeds(signal)
    lags = np.arange(1 - len(b), len(a))
    count, evidence = np.zeros(len(lags)), np.zeros(len(lags))
    for x, y in zip(a.T, b.T, strict=True):
        (in_x, filled_x), (in_y, filled_y) = _filled(x), _filled(y)
        pairs = (in_x, in_y), (filled_x, filled_y), (filled_x**2, in_y), (in_x, filled_y**2)
        overlap, product, power_x, power_y = (correlate(p, q) for p, q in pairs)
        overlap = np.round(overlap)
        # Below this, the powers are what rounding left of the transform.
        floor = 1e-9 * np.sum(filled_x**2) * np.sum(filled_y**2)
        power = power_x * power_y
        correlation = product**2 / np.maximum(power, max(floor, TINY)) * (power > floor)
        evidence -= overlap * np.log1p(-np.clip(correlation, 0.0, 1 - 1e-9))
        count = np.maximum(count, overlap)
    shortest = SHORTEST_OVERLAP * min(len(a), len(b))
    allowed = (count >= shortest) & (lags * STEP >= longest[0] - STEP) & (lags * STEP <= longest[1] + STEP)
    evidence = np.where(allowed, evidence, 0.0)
    if not evidence.any():
        return np.zeros(0)
    found = peaks(np.concatenate([[0.0], evidence, [0.0]])) - 1
    found = found[evidence[found] >= WORTH_A_LOOK * evidence.max()]
    return lags[found[np.argsort(-evidence[found])][:MOST]] * STEP


def _filled(column: NDArray) -> tuple[NDArray, NDArray]:
    return np.isfinite(column).astype(float), np.nan_to_num(column)


def _speeds(record: GapSpline) -> NDArray:
    """(K, n) from the first to the last sample; NaN next to gaps."""
    grid = np.arange(record.time[0], record.time[-1], STEP)
    angles = record(grid)
    speeds = np.full_like(angles, np.nan)
    speeds[SPAN:-SPAN] = angles[2 * SPAN :] - angles[: -2 * SPAN]
    return speeds


CLOCK_DRIFT = 1e-4
"""By which two quartz clocks may differ: a drift not known to this is not distinguished from none."""
COARSEST = 0.02
"""Standard error of an offset that is stated, s."""
ROWS = 2000
"""Samples by which candidates are judged."""
NOISE = 1.6
"""Mean square of successive differences over the variance (von Neumann 1941): 2 for noise, less for motion."""
KINEMATIC = (
    "Offset by kinematics alone: links behind springs lag their motors, by about (viscous friction of the link) / "
    "stiffness and more by Coulomb friction; identify the joints' dynamics with the offset free."
)


class ClockAlignment(NamedTuple):
    """robot_time = camera_time + offset + drift · (camera_time − middle).

    Attributes:
        offset: s.
        drift: s per s; 0 if the record does not determine it.
        middle: of the camera's record, on its clock, s.
        standard_errors: (2,) of offset and drift; NaN for an undetermined drift. They allow for
            residuals that are correlated in time and between joints (if over 0.2 s, they come out 10 to 20 % small),
            not for the lag of links behind their motors.
        correlation: (n,) between link and motor angles; NaN for joints without samples.
        remarks: what to know, one sentence each.
    """

    offset: float
    drift: float
    middle: float
    standard_errors: NDArray
    correlation: NDArray
    remarks: tuple[str, ...]

    def to_robot(self, camera_time: ArrayLike) -> NDArray:
        """Times on the camera's clock as those on the robot's, s."""
        time = np.asarray(camera_time, dtype=float)
        return time + self.offset + self.drift * (time - self.middle)


def align_clocks(
    reference_time: ArrayLike,
    reference: ArrayLike,
    time: ArrayLike,
    values: ArrayLike,
    *,
    longest: float | None = None,
    drift: bool = True,
    cutoff: float | None = None,
) -> ClockAlignment:
    """Offset and drift between two clocks by kinematics alone: links as copies of their motors.

    Maximum likelihood of values_j(t) = gain_j · reference_j(robot time of t) + offset_j + noise, with gains, offsets
    and noise levels of all joints free; cubic splines between samples, so a fraction of a sample is resolved.

    **Behind a spring the link is no delayed copy of its motor.** Viscous friction v on the link's side of a stiffness k
    delays slow motion by v/k, Coulomb friction c by about 4 c / (π k) over the speed's amplitude, and near the
    resonance gain and phase differ altogether. A simulated link of v/k = 1.5 ms came out 1.6 ms late without and 2 to
    3 ms with Coulomb friction, a hundred standard errors of a stiff arm. So the result is for stiff joints, and a start
    for compliant ones: an identification of the joint's dynamics finds the offset with them.

    Args:
        reference_time: (N,) s, increasing, on the robot's clock.
        reference: (N, n) motor angles, rad or m.
        time: (M,) s, increasing, on the camera's clock, which may have started at any other time.
        values: (M, n) link angles, NaN where unknown; signs as the motors'.
        longest: largest offset to look for in either direction, s; None: wherever a quarter of the shorter record
            overlaps the other one.
        drift: whether to estimate the drift too. It is if the record determines it to 100 ppm.
        cutoff: Hz; only what is slower counts, which keeps a resonance out.

    Raises:
        RecordingError: the records do not overlap, no joint moves, the motions do not match, or a joint's angle has the
            wrong sign.
    """
    motor, _, turning = _record(reference_time, reference, cutoff, "motor angles")
    link, angles, swinging = _record(time, values, cutoff, "link angles")
    if motor.n_columns != link.n_columns:
        raise RecordingError(
            f"cannot align {link.n_columns} link angles with {motor.n_columns} motor angles: expected as many"
        )
    start, middle = motor.time[0] - link.time[0], float(np.mean(np.asarray(time, dtype=float)[[0, -1]]))
    some = slice(None, None, max(1, len(link.time) // ROWS))
    bounds = (-np.inf, np.inf) if longest is None else (-longest - start, longest - start)
    fits = [
        fit_outwards(motor, link.time[some], angles[some], start + lag, middle, drift=drift)
        for lag in candidate_lags(motor, link, bounds)
    ]
    fits = [fit for fit in fits if longest is None or abs(fit.shift[0]) <= longest]
    if not fits:
        raise RecordingError(_apart(motor, link, longest))
    moving = turning & swinging
    best, remarks = _choose(fits, moving, longest)
    reach = 0 if cutoff is None else int(2 / (cutoff * np.median(np.diff(link.time))))
    best, errors, more = _refine(motor, link.time, angles, best, middle, drift=drift, reach=reach)
    correlation = np.where(best.copies.n_samples > 0, best.copies.correlation, np.nan)
    remarks += [*more, *_doubts(correlation, moving), KINEMATIC]
    offset, rate = np.append(best.shift, 0.0)[:2]
    return ClockAlignment(float(offset), float(rate), middle, errors, correlation, tuple(remarks))


def _record(time: ArrayLike, values: ArrayLike, cutoff: float | None, name: str) -> tuple[GapSpline, NDArray, NDArray]:
    """A record, its values (M, n) at the times of its spline, and which joints move (n,)."""
    values = np.asarray(values, dtype=float)
    try:
        spline = GapSpline(time, values)
    except RecordingError as error:
        raise RecordingError(f"{name}: {error}") from error
    if cutoff is not None:
        step = float(np.median(np.diff(spline.time)))
        grid = np.arange(spline.time[0], spline.time[-1], step)
        values = _slow(grid, spline(grid), LowPass(cutoff, 1 / step))
        spline = GapSpline(grid, values)
    moving = np.array([_moves(column) for column in values.T])
    if not moving.any():
        slow = "" if cutoff is None else f" slower than {cutoff:g} Hz"
        raise RecordingError(
            f"no motion{slow} in the {name}: nothing aligns the clocks; record a motion of all joints, "
            "with dwells before and after"
        )
    return spline, values, moving


def _moves(angles: NDArray) -> bool:
    steps, known = np.diff(angles), angles[np.isfinite(angles)]
    steps = steps[np.isfinite(steps)]
    return bool(steps.size and np.mean(steps**2) < NOISE * np.var(known))


def _slow(grid: NDArray, values: NDArray, low_pass: LowPass) -> NDArray:
    """What passes, NaN where an end or a gap is near."""
    slow = np.full_like(values, np.nan)
    for column, result in zip(values.T, slow.T, strict=True):
        for rows in contiguous(grid, np.isfinite(column), 1 / low_pass.rate):
            inner = slice(low_pass.edge, len(rows) - low_pass.edge)
            if len(rows) > 2 * low_pass.edge:
                result[rows[inner]] = low_pass.filter(column[rows])[inner]
    return slow


def _choose(fits: list[ClockFit], moving: NDArray, longest: float | None) -> tuple[ClockFit, list[str]]:
    """The fit with most evidence; of several as good ones, e.g. periods apart, that of the smallest offset."""
    best = max(fits, key=lambda fit: fit.evidence)
    good = [best, *(fit for fit in fits if fit is not best and fit.as_good_as(best))]
    good = [fit for fit in good if not fit.mirrored.size] or good
    best = min(good, key=lambda fit: abs(fit.shift[0]))
    correlation = best.copies.correlation
    matching = np.max(correlation) > MATCHING or (moving.any() and np.all(correlation[moving] < -MATCHING))
    if not matching:
        where = "wherever the records overlap" if longest is None else f"within {longest:g} s"
        raise RecordingError(
            f"the motions do not match {where}: at the best offset, {best.shift[0]:.3f} s, no joint correlates by more "
            f"than {np.max(correlation):.2f}; give records of the same motion, joints in the same order, or a larger "
            "longest"
        )
    if best.mirrored.size:
        joints = ", ".join(f"{j + 1} (correlation {correlation[j]:.3f})" for j in best.mirrored)
        raise RecordingError(
            f"link angles with the wrong sign: joint {joints}, counted from 1; turn the axis around, or check the "
            "order of the joints"
        )
    offsets = np.unique(np.round([fit.shift[0] for fit in good], 3))
    if len(offsets) == 1:
        return best, []
    period = np.min(np.diff(offsets))
    return best, [
        f"Offset ambiguous: the motion repeats after {period:.3f} s, and neither its start nor its stop decides "
        f"between {len(offsets)} offsets from {offsets[0]:.3f} to {offsets[-1]:.3f} s. The smallest, "
        f"{best.shift[0]:.3f} s, was taken; record the standstill before or after the motion with both, or give a "
        f"longest below {period / 2:.3g} s."
    ]


def _refine(
    motor: GapSpline, time: NDArray, angles: NDArray, start: ClockFit, middle: float, *, drift: bool, reach: int
) -> tuple[ClockFit, NDArray, list[str]]:
    """With every sample, and the drift if the record determines it; with standard errors (2,) and remarks."""
    remarks = []
    if drift:
        fit = fit_clock(motor, time, angles, np.append(start.shift, 0.0)[:2], middle)
        errors = fit.standard_errors(reach)
        if errors[1] < CLOCK_DRIFT:
            if abs(fit.shift[1]) > CLOCK_DRIFT + 3 * errors[1]:
                remarks.append(
                    f"Drift of {1e6 * fit.shift[1]:.0f} ppm: quartz clocks differ by less; check the camera's rate."
                )
            return fit, errors, remarks
        remarks.append(
            f"Drift not determined, taken as 0: {time[-1] - time[0]:.3g} s determine it to "
            f"{1e6 * errors[1]:.0f} ppm, and "
            f"clocks differ by less than {1e6 * CLOCK_DRIFT:.0f} ppm; record longer."
        )
    fit = fit_clock(motor, time, angles, start.shift[:1], middle)
    (error,) = fit.standard_errors(reach)
    if not error < COARSEST:
        raise RecordingError(
            f"the motion does not determine the time, only to {error:.2g} s: at constant speed, one offset is like "
            "another; record a motion that starts, stops and turns"
        )
    return fit, np.array([error, np.nan]), remarks


def _doubts(correlation: NDArray, moving: NDArray) -> list[str]:
    """A remark if links go other ways than their motors."""
    joints = [f"{j + 1} ({correlation[j]:.2f})" for j in np.flatnonzero(moving & (correlation < MATCHING))]
    if not joints:
        return []
    return [
        f"Link angles hardly follow the motors (joint, counted from 1, and correlation): {', '.join(joints)}; check "
        "the order of the joints, or choose a cutoff well below the resonance."
    ]


def _apart(motor: GapSpline, link: GapSpline, longest: float | None) -> str:
    if longest is None:
        return "the motions do not match: no joint moves in both link angles and motor angles where the records overlap"
    start, end, robot_start, robot_end = *link.time[[0, -1]], *motor.time[[0, -1]]
    return (
        f"no best offset within {longest:g} s: the camera's record is from {start:.3f} to {end:.3f} s on its clock, "
        f"the robot's from {robot_start:.3f} to {robot_end:.3f} s; give a larger longest, or None for clocks that "
        "started at different times"
    )
